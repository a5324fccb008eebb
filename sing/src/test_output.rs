//! Reads what test programs print: Rust's test harness under `cargo test`, and the conformance runner,
//! which prints lines of the same form (`test NAME ... ok`, `test NAME ... FAILED: why`).
//!
//! Deliberately not here: starting them; see `test`.

use std::ops::AddAssign;

/// A test that failed: its name, and the command that runs it again.
pub type FailedTest = (String, String);

/// How many tests did what.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Tests that passed.
    pub passed: u64,
    /// Tests that failed.
    pub failed: u64,
    /// Tests that were left out.
    pub skipped: u64,
    /// How many of these are no tests but groups of them, of which it is not known what is in them.
    pub groups: u64,
    /// Those that failed; the failures of a part whose names are not known are counted alone.
    pub failures: Vec<FailedTest>,
}

impl Counts {
    /// One test that failed.
    pub fn failed(test: FailedTest) -> Counts {
        Counts { failed: 1, failures: vec![test], ..Counts::default() }
    }

    /// What failed, once more at the end of all, with the commands that run it again; nothing when all is well.
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

    /// Whether no test was found at all.
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

/// The plain line at the end of all tests.
impl std::fmt::Display for Counts {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

/// What a line of output is for the reader.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// A program with a suite is started.
    SuiteBegins,
    /// A suite is over: its name and counts.
    SuiteEnded(String, Counts),
    /// The suite before had begun and gave no result.
    SuiteLost(String),
    /// A test failed: its suite and its name.
    TestFailed(String, String),
    /// Part of the account of a failure; to be shown.
    Failure,
    /// Nothing that needs showing while all is well.
    Chatter,
}

/// Reads the output of `cargo test`, line by line.
#[derive(Debug, Default)]
pub struct CargoTestReader {
    suite: String,
    /// A suite has begun and has not ended.
    is_open: bool,
    has_begun: bool,
    in_failures: bool,
}

impl CargoTestReader {
    /// Takes the next line.
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

    /// Whether a suite has begun, so that all are built.
    pub fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// The suite that gave no result by the end of the output.
    pub fn lost(&self) -> Option<String> {
        self.is_open.then(|| self.suite.clone())
    }
}

/// The name in `test NAME ... FAILED`.
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

/// `ok. 5 passed; 0 failed; 2 ignored; 0 measured; 1 filtered out; ...`; what a filter left out is not counted.
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

/// What a line of the conformance runner says.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict<'a> {
    /// The test of this name passed.
    Passed(&'a str),
    /// The test of this name failed, and why.
    Failed(&'a str, &'a str),
    /// The test of this name was left out, and why.
    Skipped(&'a str, &'a str),
}

/// The programs that say verdicts.
const SUITES: [&str; 5] = ["conformance", "services-check", "network-check", "adversary-check", "hostile-check"];

/// Reads a line `test NAME ... VERDICT`; others are none.
pub fn verdict(line: &str) -> Option<Verdict<'_>> {
    // Lines of the debug output begin with the name of the program.
    let line = line.trim();
    let said = SUITES.iter().find_map(|program| line.strip_prefix(program)?.strip_prefix(": "));
    let line = said.unwrap_or(line);
    let (name, verdict) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let reason = |rest: &'static str| verdict.strip_prefix(rest).map(|why| why.trim_start_matches(':').trim());
    // A time may follow: `ok (12 ms)`.
    if verdict == "ok" || verdict.starts_with("ok (") {
        Some(Verdict::Passed(name))
    } else if let Some(why) = reason("FAILED") {
        Some(Verdict::Failed(name, why))
    } else {
        reason("skipped").or_else(|| reason("ignored")).map(|why| Verdict::Skipped(name, why))
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
        // What a test printed is not taken for a verdict.
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
