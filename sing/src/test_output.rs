//! Parses the output of test programs: Rust's test harness under `cargo test`, and the conformance runner, which
//! prints lines of the same form (`test NAME ... ok`, `test NAME ... FAILED: why`).
//!
//! Deliberately not here: starting them; see `test`.

use std::ops::AddAssign;
use std::time::Instant;

/// A failed test: its name, and the command that reruns it.
pub type FailedTest = (String, String);

/// Test counts by result.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Tests that passed.
    pub passed: u64,
    /// Tests that failed.
    pub failed: u64,
    /// Skipped tests.
    pub skipped: u64,
    /// Number of these that are groups with unknown contents rather than single tests.
    pub groups: u64,
    /// The failed tests; failures without a known name are only counted.
    pub failures: Vec<FailedTest>,
}

impl Counts {
    /// Counts of one failed test.
    pub fn failed(test: FailedTest) -> Counts {
        Counts { failed: 1, failures: vec![test], ..Counts::default() }
    }

    /// Lists the failures with the commands that rerun them, for the end of a run; empty if there are none.
    pub fn failures_in_words(&self) -> String {
        let mut lines: Vec<String> = Vec::new();
        for (name, command) in &self.failures {
            lines.push(format!("  {name}\n    {command}"));
        }
        match lines.is_empty() {
            true => String::new(),
            false => format!("failed:\n{}\n", lines.join("\n")),
        }
    }

    /// Returns whether no test was found.
    pub fn is_of_no_test(&self) -> bool {
        self.passed + self.failed + self.skipped == self.groups
    }
}

impl std::ops::Add for Counts {
    type Output = Counts;
    fn add(mut self, other: Counts) -> Counts {
        self += other;
        self
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
        self.groups += other.groups;
        self.failures.extend(other.failures);
    }
}

/// Formats the summary line of a run.
impl std::fmt::Display for Counts {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

/// Meaning of an output line.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// A test program starts.
    SuiteBegins,
    /// A suite has ended: its name and counts.
    SuiteEnded(String, Counts),
    /// The previous suite began but gave no result.
    SuiteLost(String),
    /// A test failed: its suite and its name.
    TestFailed(String, String),
    /// Part of a failure's details; to be shown.
    Failure,
    /// Needs no showing unless something fails.
    Chatter,
}

/// Parses the output of `cargo test`, line by line.
#[derive(Debug, Default)]
pub struct CargoTestReader {
    suite: String,
    /// A suite has begun and has not ended.
    is_open: bool,
    has_begun: bool,
    in_failures: bool,
}

impl CargoTestReader {
    /// Parses the next line.
    pub fn read(&mut self, line: &str) -> Line {
        let trimmed = line.trim();
        let begun = match (trimmed.strip_prefix("Running "), trimmed.strip_prefix("Doc-tests ")) {
            (Some(rest), _) => Some(suite_name(rest)),
            (None, Some(name)) => Some(format!("{name} (documentation)")),
            (None, None) => None,
        };
        if let Some(suite) = begun.filter(|_| !self.in_failures) {
            return self.begin(suite);
        } else if let Some(result) = trimmed.strip_prefix("test result: ") {
            (self.in_failures, self.is_open) = (false, false);
            return Line::SuiteEnded(self.suite.clone(), counts_of_result(result));
        } else if let Some(name) = failed_test(trimmed).filter(|_| !self.in_failures) {
            return Line::TestFailed(self.suite.clone(), name.to_string());
        } else if trimmed == "failures:" {
            self.in_failures = true;
        }
        let is_error = trimmed.starts_with("error") || trimmed.starts_with("warning: unused");
        if self.in_failures || is_error { Line::Failure } else { Line::Chatter }
    }

    fn begin(&mut self, suite: String) -> Line {
        let before = std::mem::replace(&mut self.suite, suite);
        self.has_begun = true;
        match std::mem::replace(&mut self.is_open, true) {
            true => Line::SuiteLost(before),
            false => Line::SuiteBegins,
        }
    }

    /// Returns whether a suite has begun, which means that all are built.
    pub fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Returns the suite that had given no result by the end of the output.
    pub fn lost(&self) -> Option<String> {
        self.is_open.then(|| self.suite.clone())
    }
}

/// Returns the name in `test NAME ... FAILED`.
fn failed_test(line: &str) -> Option<&str> {
    let name = line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?;
    Some(name.strip_suffix(" - should panic").unwrap_or(name))
}

/// `unittests src/lib.rs (target/debug/deps/abi-0123)` is `abi src/lib.rs`.
fn suite_name(running: &str) -> String {
    let (what, program) = running.split_once(" (").unwrap_or((running, ""));
    let program = program.trim_end_matches(')').rsplit('/').next().unwrap_or_default();
    let package = program.rsplit_once('-').map_or(program, |(package, _)| package);
    format!("{package} {}", what.trim_start_matches("unittests ")).trim().to_string()
}

/// Parses `ok. 5 passed; 0 failed; 2 ignored; 0 measured; 1 filtered out; ...`; filtered tests are not counted.
fn counts_of_result(result: &str) -> Counts {
    let mut counts = Counts::default();
    for part in result.split_once(". ").map_or(result, |(_, counts)| counts).split(';') {
        let mut words = part.split_whitespace();
        let (Some(number), Some(what)) = (words.next().and_then(|number| number.parse().ok()), words.next()) else {
            continue;
        };
        match what {
            "passed" => counts.passed = number,
            "failed" => counts.failed = number,
            "ignored" => counts.skipped = number,
            _ => {}
        }
    }
    counts
}

/// A result line of the conformance runner.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict<'a> {
    /// The test of this name passed.
    Passed(&'a str),
    /// The test of this name failed, with the reason.
    Failed(&'a str, &'a str),
    /// The test of this name was skipped, with the reason.
    Skipped(&'a str, &'a str),
}

/// The programs that print verdicts.
const SUITES: [&str; 6] =
    ["conformance", "services-check", "network-check", "adversary-check", "hostile-check", "wasm-spec"];

/// Parses a line `test NAME ... VERDICT`; `None` for others.
pub fn verdict(line: &str) -> Option<Verdict<'_>> {
    let line = said(line);
    let (name, verdict) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let reason = |rest: &'static str| verdict.strip_prefix(rest).map(|why| why.trim_start_matches(':').trim());
    // A duration may follow: `ok (12 ms)`.
    if verdict == "ok" || verdict.starts_with("ok (") {
        Some(Verdict::Passed(name))
    } else if let Some(why) = reason("FAILED") {
        Some(Verdict::Failed(name, why))
    } else {
        reason("skipped").or_else(|| reason("ignored")).map(|why| Verdict::Skipped(name, why))
    }
}

/// Parses a suite's own sum, `N passed, N failed`: its passed and failed tests. A machine whose debug output is not read
/// fast enough drops lines of it, so that some verdicts may be missing.
pub fn sum(line: &str) -> Option<(u64, u64)> {
    let (passed, rest) = said(line).split_once(" passed, ")?;
    let (failed, _) = rest.split_once(" failed")?;
    Some((passed.parse().ok()?, failed.parse().ok()?))
}

/// Returns what a suite said: debug output prefixes each line with the program's name.
fn said(line: &str) -> &str {
    let line = line.trim();
    SUITES.iter().find_map(|program| line.strip_prefix(program)?.strip_prefix(": ")).unwrap_or(line)
}

/// Returns the time since `began` for the end of a line, such as ` in 12 s`; nothing below a second.
pub fn took(began: Instant) -> String {
    match began.elapsed().as_secs() {
        0 => String::new(),
        seconds => format!(" in {seconds} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suite_is_named_and_counted() {
        let mut reader = CargoTestReader::default();
        assert_eq!(reader.read("     Running unittests src/lib.rs (target/debug/deps/hal_api-9f)"), Line::SuiteBegins);
        assert_eq!(reader.read("test a ... ok"), Line::Chatter);
        let counts = Counts { passed: 5, failed: 1, skipped: 2, ..Counts::default() };
        assert_eq!(
            reader.read(
                "test result: FAILED. 5 passed; 1 failed; 2 ignored; 0 measured; 3 filtered out; finished in 0.00s"
            ),
            Line::SuiteEnded("hal_api src/lib.rs".into(), counts.clone())
        );
        assert_eq!(counts.to_string(), "5 passed, 1 failed, 2 skipped");
    }

    #[test]
    fn a_suites_sum_is_read_with_and_without_its_name() {
        assert_eq!(sum("hostile-check: 65 passed, 0 failed"), Some((65, 0)));
        assert_eq!(sum("545 passed, 1 failed, 2 skipped"), Some((545, 1)));
        for other in ["test a ... ok", "stranger: 1 passed, 0 failed", "all passed, 0 failed"] {
            assert_eq!(sum(other), None, "{other}");
        }
    }

    #[test]
    fn groups_that_are_left_out_are_no_tests() {
        let mut counts = Counts::default();
        assert!(counts.is_of_no_test());
        counts += Counts { skipped: 1, groups: 1, ..Counts::default() };
        assert!(counts.is_of_no_test());
        for found in [
            Counts { passed: 1, ..Counts::default() },
            Counts { failed: 1, ..Counts::default() },
            Counts { skipped: 1, ..Counts::default() },
        ] {
            let mut both = counts.clone();
            both += found.clone();
            assert!(!both.is_of_no_test(), "{found:?}");
        }
        assert_eq!(counts.to_string(), "0 passed, 0 failed, 1 skipped");
    }

    #[test]
    fn a_failed_test_is_named_with_its_suite() {
        let mut reader = CargoTestReader::default();
        reader.read("     Running unittests src/lib.rs (target/debug/deps/abi-9f)");
        let failed = |name: &str| Line::TestFailed("abi src/lib.rs".into(), name.into());
        assert_eq!(reader.read("test table::tests::rows ... FAILED"), failed("table::tests::rows"));
        assert_eq!(reader.read("test limits - should panic ... FAILED"), failed("limits"));
        reader.read("failures:");
        // A test's own output is not taken for a verdict.
        assert_eq!(reader.read("test other ... FAILED"), Line::Failure);
        assert_eq!(reader.read("Running away"), Line::Failure);
    }

    #[test]
    fn a_suite_whose_program_ended_early_is_lost() {
        let mut reader = CargoTestReader::default();
        assert!(!reader.has_begun());
        reader.read("     Running unittests src/lib.rs (target/debug/deps/abi-9f)");
        assert!(reader.has_begun());
        reader.read("test a ... ok");
        let next = reader.read("     Running tests/b.rs (target/debug/deps/b-9f)");
        assert_eq!(next, Line::SuiteLost("abi src/lib.rs".into()));
        assert_eq!(reader.lost(), Some("b tests/b.rs".into()));
        reader.read("test result: ok. 1 passed; 0 failed");
        assert_eq!(reader.lost(), None);
    }

    #[test]
    fn what_failed_is_repeated_with_its_command() {
        let mut counts = Counts { passed: 3, ..Counts::default() };
        assert_eq!(counts.failures_in_words(), "");
        counts += Counts::failed(("abi src/lib.rs: a".into(), "cargo sing test unit:a".into()));
        assert_eq!(counts.failures_in_words(), "failed:\n  abi src/lib.rs: a\n    cargo sing test unit:a\n");
        assert_eq!(counts.to_string(), "3 passed, 1 failed, 0 skipped");
    }

    #[test]
    fn the_account_of_a_failure_is_shown_until_the_result() {
        let mut reader = CargoTestReader::default();
        assert_eq!(reader.read("failures:"), Line::Failure);
        assert_eq!(reader.read("thread 'a' panicked"), Line::Failure);
        assert!(matches!(reader.read("test result: FAILED. 0 passed; 1 failed"), Line::SuiteEnded(..)));
        assert_eq!(reader.read("anything"), Line::Chatter);
        assert_eq!(reader.read("error[E0308]: mismatched types"), Line::Failure);
    }

    #[test]
    fn the_conformance_runner_is_understood() {
        assert_eq!(verdict("test quota::memory ... ok"), Some(Verdict::Passed("quota::memory")));
        assert_eq!(verdict("test a ... FAILED: no epitaph"), Some(Verdict::Failed("a", "no epitaph")));
        assert_eq!(verdict("test a ... skipped: takes minutes"), Some(Verdict::Skipped("a", "takes minutes")));
        assert_eq!(verdict("test a"), None);
        assert_eq!(verdict("tested a ... ok"), None);
    }
}
