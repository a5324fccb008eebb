//! Long tests: `sing test --long` runs tests that take minutes one by one, each in its own process, and reports which
//! one is running, for how long, and how many remain.
//!
//! They are the `#[ignore]`d tests. Run one at a time, they do not compete for the machine, and the figures that each
//! prints are shown when it has ended. Deliberately not here: the tests.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::failure::{Failure, Outcome};
use crate::test_output::Counts;

use super::programs::{self, Built, Program};

/// Interval of progress reports while a test runs.
const TOLD_EVERY: Duration = Duration::from_secs(60);
/// Timeout for a test, without the soak time.
const LIMIT: Duration = Duration::from_secs(5400);
/// Environment variable with the minutes of the soak, 60 by default.
const SOAK_MINUTES: &str = "SING_SOAK_MINUTES";
/// Maximum lines of a test's output shown.
const MAX_LINES: usize = 40;

/// One long test.
#[derive(Debug, PartialEq, Eq)]
struct LongTest {
    program: Program,
    /// Crate and name, for display.
    shown: String,
    name: String,
}

/// Builds what `command`, a `cargo test` for some packages of a tier, would run, and runs its long tests: those whose
/// names contain `name`, if given, and none of `left_out`.
///
/// # Errors
/// The tests do not build.
pub fn run(command: Command, tier: &str, name: Option<&str>, left_out: &[String]) -> Outcome<Counts> {
    let settings = programs::settings(&command);
    let built = match programs::build(command)? {
        Built::Programs(built) => built,
        Built::Failed(errors) => return Err(Failure::new("the tests did not build").details(errors)),
    };
    let mut tests = Vec::new();
    for program in &built {
        let found = long_tests(program, &settings)?;
        tests.extend(found.into_iter().filter(|test| name.is_none_or(|name| test.name.contains(name))));
    }
    let all = tests.len();
    tests.retain(|test| !left_out.iter().any(|part| test.name.contains(part)));
    let mut counts = Counts { skipped: (all - tests.len()) as u64, ..Counts::default() };
    if tests.is_empty() {
        return Ok(counts);
    }
    println!("  {} tests that take minutes:", tests.len());
    for test in &tests {
        println!("    {}", test.shown);
    }
    for (number, test) in (1..).zip(&tests) {
        println!("  {number} of {}: {} ...", tests.len(), test.shown);
        let started = Instant::now();
        let mut process = test.program.command(&settings);
        process.args(["--exact", &test.name, "--ignored", "--nocapture", "--color", "never"]);
        let end = watch(process, &test.shown)?;
        let took = in_words(started.elapsed());
        for line in &end.lines {
            println!("    {line}");
        }
        if end.problem.is_none() {
            println!("    passed after {took}");
            counts.passed += 1;
        } else {
            println!("  FAILED {} after {took}: {}", test.shown, end.problem.unwrap_or_default());
            counts += Counts::failed((test.shown.clone(), format!("cargo sing test --long {tier}:{}", test.name)));
        }
    }
    Ok(counts)
}

/// The result of a test.
struct End {
    /// The last lines of its output.
    lines: Vec<String>,
    problem: Option<String>,
}

/// Runs a test to completion, with a progress report every minute.
fn watch(mut process: Command, shown: &str) -> Outcome<End> {
    let cannot_start = |error: std::io::Error| Failure::new(format!("{shown} cannot be started: {error}"));
    let (reader, writer) = std::io::pipe().map_err(cannot_start)?;
    process.stdin(Stdio::null()).stdout(writer.try_clone().map_err(cannot_start)?).stderr(writer);
    let mut child = process.spawn().map_err(cannot_start)?;
    // The command holds the write ends; the reader sees end of file only after they are closed.
    drop(process);
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(reader).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    let started = Instant::now();
    let mut told = started;
    let limit = LIMIT + soak_time(std::env::var(SOAK_MINUTES).ok().as_deref());
    let mut lines = Vec::new();
    loop {
        match receiver.recv_timeout(TOLD_EVERY.saturating_sub(told.elapsed())) {
            Ok(line) => lines.extend(worth_showing(&line).then_some(line)),
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Err(mpsc::RecvTimeoutError::Timeout) if started.elapsed() > limit => {
                // It may have exited meanwhile.
                let _ = child.kill();
                let _ = child.wait();
                let problem = Some(format!("timed out after {}", in_words(limit)));
                return Ok(End { lines: last(lines), problem });
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {
                told = Instant::now();
                println!("    running for {}", in_words(started.elapsed()));
            }
        }
    }
    let status = child.wait().map_err(cannot_start)?;
    Ok(End { lines: last(lines), problem: (!status.success()).then(|| format!("it ended with {status}")) })
}

/// Returns the time to add to the limit for a soak of this many minutes.
fn soak_time(minutes: Option<&str>) -> Duration {
    Duration::from_secs(
        minutes.and_then(|minutes| minutes.parse::<u32>().ok()).map_or(0, |minutes| u64::from(minutes) * 60),
    )
}

/// Returns whether a line is more than the harness's own report.
fn worth_showing(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && !["running ", "test "].iter().any(|start| line.starts_with(start))
}

fn last(mut lines: Vec<String>) -> Vec<String> {
    lines.drain(..lines.len().saturating_sub(MAX_LINES));
    lines
}

/// Formats a time: `75 s`, `12 min 5 s`.
fn in_words(time: Duration) -> String {
    match time.as_secs() {
        seconds if seconds < 120 => format!("{seconds} s"),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

/// Returns a program's ignored tests.
fn long_tests(program: &Program, settings: &[(OsString, OsString)]) -> Outcome<Vec<LongTest>> {
    let output = program.command(settings).args(["--list", "--ignored"]).output();
    let output = output
        .map_err(|error| Failure::new(format!("the tests in {} cannot be listed: {error}", program.path.display())))?;
    let of = program.folder.file_name().unwrap_or_default().to_string_lossy();
    let listed = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(names(&listed)
        .map(|name| LongTest {
            program: program.clone(),
            shown: format!("{of}/{}: {name}", program.name),
            name: name.to_string(),
        })
        .collect())
}

/// Returns the names in the harness's list, without helpers that other tests run in a process of their own.
fn names(listed: &str) -> impl Iterator<Item = &str> {
    let names = listed.lines().filter_map(|line| line.strip_suffix(": test"));
    names.filter(|name| {
        let own = name.rsplit("::").next().unwrap_or(name);
        !own.starts_with("child_") && !own.ends_with("_child")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_other_tests_run_is_no_test() {
        let listed = "child_panics: test\ncrash::for_long: test\nkernel_fault_child: test\n\n3 tests, 0 benchmarks\n";
        assert_eq!(names(listed).collect::<Vec<_>>(), ["crash::for_long"]);
    }

    #[test]
    fn a_test_is_watched_to_its_end() {
        let mut process = Command::new("sh");
        process.args(["-c", "echo; echo running 1 test; echo 12 crashes; echo so it is >&2; exit 3"]);
        let end = watch(process, "a test").expect("there is a shell");
        assert_eq!(end.lines, ["12 crashes", "so it is"]);
        assert!(end.problem.is_some_and(|problem| problem.contains('3')));
    }

    #[test]
    fn a_soak_of_a_day_is_let_end() {
        assert_eq!(soak_time(Some("1440")), Duration::from_secs(86_400));
        assert_eq!([soak_time(None), soak_time(Some("a day"))], [Duration::ZERO; 2]);
    }

    #[test]
    fn times_are_in_words() {
        assert_eq!([75, 725].map(|seconds| in_words(Duration::from_secs(seconds))), ["75 s", "12 min 5 s"]);
    }
}
