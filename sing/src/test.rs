//! `sing test`: runs the tests of a workspace crate by crate and prints a summary line; also the code shared with the
//! tests of the system itself in `xtask`.
//!
//! Failures are listed again at the end, with the commands that rerun them. Long tests, which take minutes, follow on
//! request ([`long`]). Deliberately not here: the other tiers of the system's tests.

pub mod cargo_tests;
mod long;
pub mod needs;
pub mod packages;
mod programs;

use std::time::Instant;

use crate::command_line::TestArguments;
use crate::failure::{Failure, Outcome};
use crate::repository::Repository;
use crate::spelling;
use crate::test_output::{Counts, FailedTest, took};

use cargo_tests::CargoTests;
use packages::TestedCrate;

/// Tests of single crates.
pub const UNIT: &str = "unit";
/// Suites that are SIPs.
pub const CONFORMANCE: &str = "conformance";
/// The crate of end-to-end tests; it runs last, because it builds and starts systems itself.
pub const END_TO_END: &str = "end-to-end";
/// Fuzz targets; unit tests replay their seeds and findings, so short runs leave fuzzing out.
pub const FUZZING: &str = "fuzzing";
/// All tiers, in order.
pub const TIERS: [&str; 4] = [UNIT, CONFORMANCE, END_TO_END, FUZZING];

/// The tests to run.
pub struct Selection<'a> {
    /// The only tier to run, if one is given.
    pub tier: Option<&'a str>,
    /// Substring that the tests' names must contain.
    pub name: Option<&'a str>,
    /// Whether to include long tests.
    pub long: bool,
}

impl<'a> Selection<'a> {
    /// Reads the selection from the command line.
    ///
    /// # Errors
    /// It names an unknown tier.
    pub fn read(arguments: &'a TestArguments) -> Outcome<Selection<'a>> {
        let (tier, name) = arguments.filter.as_deref().map_or((None, None), tier_and_name);
        refuse_unknown_tier(name)?;
        Ok(Selection { tier, name, long: arguments.long })
    }

    /// Returns whether the tier is selected.
    pub fn includes(&self, tier: &str) -> bool {
        self.tier.is_none_or(|selected| selected == tier)
    }
}

/// `sing test` in a separate workspace. Returns 1 if a test failed.
///
/// # Errors
/// No test matches the given name.
pub fn test(repository: &Repository, arguments: &TestArguments) -> Outcome<u8> {
    let selection = Selection::read(arguments)?;
    let mut total = Counts::default();
    if selection.includes(UNIT) {
        total += run_tier(UNIT, || unit_tests(repository, &selection));
    }
    print_total(&total);
    refuse_unknown_name(&selection, &total)?;
    Ok(u8::from(total.failed > 0))
}

fn unit_tests(repository: &Repository, selection: &Selection<'_>) -> Outcome<Counts> {
    let (all, metadata) = TestedCrate::all(repository)?;
    let may_have = |tested: &&TestedCrate| selection.name.is_none_or(|name| tested.may_have(name));
    let crates: Vec<&TestedCrate> = all.iter().filter(may_have).collect();
    if crates.is_empty() {
        return Ok(Counts::default());
    }
    let left_out = Vec::new();
    CargoTests { repository, tier: UNIT, metadata: &metadata, crates, tool: None, left_out }.run(selection)
}

/// Lists the failures and prints the totals.
pub fn print_total(total: &Counts) {
    print!("{}", total.failures_in_words());
    println!("{total}");
}

/// Refuses a misspelt tier before a name, before anything is built. A misspelt tier alone is taken for part of a test
/// name; the failure says so.
fn refuse_unknown_tier(name: Option<&str>) -> Outcome<()> {
    let Some(filter) = name else { return Ok(()) };
    // Test paths contain double colons.
    let before_name = filter.split_once(':').filter(|(_, name)| !name.starts_with(':')).map(|(tier, _)| tier);
    let Some(meant) = diagnostics::nearest(before_name.unwrap_or(filter), TIERS) else { return Ok(()) };
    match before_name {
        Some(tier) => {
            Err(Failure::new(format!("unknown test tier `{tier}`")).remedy(spelling::meant(tier, TIERS, String::new())))
        }
        None => {
            eprintln!("sing: `{filter}` is not a tier; selecting tests by name; did you mean `{meant}`?");
            Ok(())
        }
    }
}

/// Ensures that a misspelt name does not report success.
///
/// # Errors
/// A name was given, and no test matches it.
pub fn refuse_unknown_name(selection: &Selection<'_>, total: &Counts) -> Outcome<()> {
    let Some(name) = selection.name.filter(|_| total.is_of_no_test()) else { return Ok(()) };
    let otherwise = format!("check the spelling, or name a tier: {}", TIERS.join(", "));
    Err(Failure::new(format!("no runnable test name contains `{name}`"))
        .remedy(spelling::meant(name, TIERS, otherwise)))
}

/// Splits a filter: `TIER`, `TIER:NAME`, or a substring of test names.
fn tier_and_name(filter: &str) -> (Option<&str>, Option<&str>) {
    let (tier, name) = filter.split_once(':').map_or((filter, None), |(tier, name)| (tier, Some(name)));
    if TIERS.contains(&tier) { (Some(tier), name) } else { (None, Some(filter)) }
}

/// Runs a tier, and prints how many of its tests passed and how long it took. One that cannot run counts as one failure,
/// so that the others still run.
pub fn run_tier(name: &str, run: impl FnOnce() -> Outcome<Counts>) -> Counts {
    let began = Instant::now();
    match run() {
        Ok(counts) => {
            println!("{name}: {counts}{}", took(began));
            counts
        }
        Err(failure) => {
            println!("{name}: {failure}");
            Counts::failed((name.into(), format!("cargo sing test {name}")))
        }
    }
}

/// Returns a failed test, identified by tier, suite and name, with the command that reruns it.
pub fn again(tier: &str, suite: &str, name: &str) -> FailedTest {
    // When a program ends early, the failing test is unknown.
    if name.is_empty() {
        return (suite.into(), format!("cargo sing test {tier}"));
    }
    let filter = format!("{tier}:{name}");
    let is_plain = filter.chars().all(|letter| letter.is_ascii_alphanumeric() || "_-:./".contains(letter));
    let filter = if is_plain { filter } else { format!("'{}'", filter.replace('\'', "'\\''")) };
    (format!("{suite}: {name}"), format!("cargo sing test {filter}"))
}

/// Counts a group of tests that cannot run here, and prints why.
pub fn skipped(what: &str, why: &str) -> Counts {
    println!("skipped {what}: {why}");
    Counts { skipped: 1, groups: 1, ..Counts::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_a_tier_or_a_name_or_both() {
        for (filter, tier, name) in [
            ("unit", Some("unit"), None),
            ("fuzzing:ext2", Some("fuzzing"), Some("ext2")),
            ("web_curl", None, Some("web_curl")),
            ("web_curl::ranges", None, Some("web_curl::ranges")),
            ("units", None, Some("units")),
        ] {
            assert_eq!(tier_and_name(filter), (tier, name), "{filter}");
        }
    }

    #[test]
    fn a_mistyped_tier_is_told_before_anything_is_built() {
        for (filter, told) in [
            ("unti:manifest", Some("unknown test tier `unti`; did you mean `unit`?")),
            ("fuzzign:package", Some("unknown test tier `fuzzign`; did you mean `fuzzing`?")),
            // These may be test names.
            ("unti", None),
            ("units::tests", None),
            ("web_curl::ranges", None),
            ("hole: in a file", None),
        ] {
            let (tier, name) = tier_and_name(filter);
            assert_eq!(tier, None, "{filter}");
            assert_eq!(refuse_unknown_tier(name).err().map(|failure| failure.to_string()).as_deref(), told, "{filter}");
        }
        assert_eq!(refuse_unknown_tier(None), Ok(()));
    }

    #[test]
    fn a_name_that_no_test_has_is_no_success() {
        let none = Counts { skipped: 2, groups: 2, ..Counts::default() };
        let selection = |tier, name| Selection { tier, name, long: false };
        let refused = refuse_unknown_name(&selection(None, Some("certificats")), &none).expect_err("it has none");
        assert!(refused.to_string().contains("no runnable test name contains `certificats`"), "{refused}");
        assert_ne!(refused.status(), 0);
        // A whole tier, and tests that exist.
        assert_eq!(refuse_unknown_name(&selection(Some(FUZZING), None), &none), Ok(()));
        for found in [Counts { passed: 1, ..none.clone() }, Counts { skipped: 3, ..none }] {
            assert_eq!(refuse_unknown_name(&selection(None, Some("certificates")), &found), Ok(()));
        }
    }

    #[test]
    fn the_command_that_runs_a_failed_test_again_selects_it() {
        for (tier, name, command) in [
            (UNIT, "check::flow::a", "cargo sing test unit:check::flow::a"),
            (CONFORMANCE, "hole: it's gone", "cargo sing test 'conformance:hole: it'\\''s gone'"),
            (END_TO_END, "", "cargo sing test end-to-end"),
        ] {
            assert_eq!(again(tier, "suite", name).1, command);
        }
        assert_eq!(tier_and_name("unit:check::flow::a"), (Some("unit"), Some("check::flow::a")));
        assert_eq!(again(UNIT, "lang src/lib.rs", "a").0, "lang src/lib.rs: a");
    }
}
