//! The workload `kernel`: a part of the conformance suite, which checks channels, loans, principals and the life of
//! processes from inside and counts the kernel's objects after each test, on processors that take turns at random.
//!
//! Deliberately not here: the checks, which are those of `tests/conformance`.

use super::machine::{End, Report};

/// Beginnings of the names of tests, one for each run. Not among them are tests of programs that compute for ever, of a
/// lack of memory, of hardware that the machine has not, and of tens of thousands of calls. Their number is odd, so that
/// each meets each number of processors.
const PARTS: [&str; 25] = [
    "mutex: contended",
    "event: ",
    "wait any: ",
    "wait set: receive",
    "loan: passes while",
    "loan: returned again",
    "loan: comes",
    "loan: nested",
    "loan: returned to",
    "loan: lends",
    "loan: the borrower",
    "endpoint: serves",
    "endpoint: in ",
    "endpoint: taken",
    "endpoint: the ",
    "endpoint: moves",
    "closed: ",
    "death: ",
    "process: children",
    "process: grandchildren",
    "process: a released child",
    "principal: ",
    "delegation: ",
    "send: ",
    "message: ",
];

/// Returns the parameters of the suite.
pub fn parameters(seed: u64) -> Vec<(&'static str, String)> {
    vec![("only", PARTS[(seed % PARTS.len() as u64) as usize].to_owned())]
}

/// Returns which tests a run failed.
///
/// # Errors
/// What failed.
pub fn judge(report: &Report, console: &str) -> Result<(), String> {
    let failed = |line: &&str| line.contains(" ... FAILED: ");
    match console.lines().find(failed) {
        Some(line) => Err(line.trim().to_owned()),
        None if report.end != End::Off || report.status != 0 => {
            Err(format!("the suite ended by {:?} with status {}", report.end, report.status))
        }
        None if !console.contains(" ... ok") => Err("no test was run".into()),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_test_and_a_suite_without_tests_are_found() {
        let report = |end, status| {
            let (hash, faults) = (String::new(), Vec::new());
            Report { hash, virtual_ns: 0, calls: 0, events: 0, end, status, faults, killed: Vec::new() }
        };
        let good = "test loan: a ... ok (1 ms)\n1 passed, 0 failed\n";
        assert_eq!(judge(&report(End::Off, 0), good), Ok(()));
        let bad = "test loan: a ... ok (1 ms)\ntest loan: b ... FAILED: 2 channels are left\n";
        assert!(judge(&report(End::Off, 1), bad).is_err_and(|what| what.contains("2 channels are left")));
        assert!(judge(&report(End::Off, 0), "0 passed, 0 failed\n").is_err());
        assert!(judge(&report(End::Restart, 0), good).is_err());
    }
}
