//! Builds and runs the tests of crates of the workspace and parses their output.
//!
//! A crate that does not build does not stop the tests of others: it fails with the compiler's error, its dependents
//! fail with that reason, and the rest runs. Deliberately not here: which crates are selected; see `packages`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use serde::Deserialize;

use super::packages::{self, TestedCrate};
use super::programs::{self, Built, Program};
use super::{END_TO_END, Selection, again, long};
use crate::cargo::{self, Metadata};
use crate::failure::{Failure, Outcome};
use crate::repository::Repository;
use crate::test_output::{CargoTestReader, Counts, Line, took};

/// End-to-end tests per processor that run at the same time.
const TESTS_PER_PROCESSOR: usize = 2;
/// Lines of a build's output shown when the error is unknown.
const TAIL_LINES: usize = 60;

/// Crates to test, and how.
#[derive(Clone)]
pub struct CargoTests<'a> {
    /// The repository with the workspace.
    pub repository: &'a Repository,
    /// Their tier.
    pub tier: &'static str,
    /// All crates of the workspace.
    pub metadata: &'a Metadata,
    /// The selected crates, not empty.
    pub crates: Vec<&'a TestedCrate>,
    /// The tool, for tests that start it.
    pub tool: Option<&'a Path>,
    /// Substrings of the names of tests to skip.
    pub left_out: Vec<String>,
}

/// Kinds of tests that cargo knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// Unit and integration tests.
    Tests,
    /// Code in the documentation.
    Documentation,
}

impl What {
    /// Returns cargo's option for them.
    fn option(self) -> &'static str {
        match self {
            What::Tests => "--tests",
            What::Documentation => "--doc",
        }
    }
}

impl<'a> CargoTests<'a> {
    /// Runs the selected tests, then the long ones if requested.
    ///
    /// # Errors
    /// Cargo cannot be started, or the tests do not build and the crate at fault is unknown.
    pub fn run(mut self, selection: &Selection<'_>) -> Outcome<Counts> {
        let (documented, tested): (Vec<_>, Vec<_>) =
            (self.with(TestedCrate::has_documented_code), self.with(TestedCrate::has_tests));
        self.crates = tested;
        let mut counts = self.run_those_that_build(What::Tests, selection)?;
        // By itself, since it takes the documentation of each crate apart, whether there is code in it or not.
        let documentation = CargoTests { crates: documented, ..self.clone() };
        counts += documentation.run_those_that_build(What::Documentation, selection)?;
        if self.crates.is_empty() {
            return Ok(counts);
        }
        if selection.long {
            // They follow below.
            counts.skipped = 0;
            counts += long::run(self.command("test"), self.tier, selection.name, &self.left_out)?;
        } else if counts.skipped > 0 {
            println!("skipped {} tests: they take minutes; run them with --long", counts.skipped);
        }
        Ok(counts)
    }

    /// Returns the crates of which this holds.
    fn with(&self, holds: impl Fn(&TestedCrate) -> bool) -> Vec<&'a TestedCrate> {
        self.crates.iter().copied().filter(|tested| holds(tested)).collect()
    }

    /// Runs the tests of all crates that build.
    fn run_those_that_build(&self, what: What, selection: &Selection<'_>) -> Outcome<Counts> {
        if self.crates.is_empty() {
            return Ok(Counts::default());
        }
        let output = match self.run_short(what, selection)? {
            Ran::Tests(counts) => return Ok(counts),
            Ran::BuildFailed(output) => output,
        };
        let mut rest = self.clone();
        let broken = rest.leave_out_what_does_not_build(&output)?;
        if rest.crates.is_empty() {
            return Ok(broken);
        }
        match rest.run_short(what, selection)? {
            Ran::Tests(counts) => Ok(broken + counts),
            Ran::BuildFailed(output) => Err(did_not_build(&output)),
        }
    }

    /// Returns a cargo command over the crates.
    fn command(&self, subcommand: &str) -> Command {
        let mut command = cargo::command(self.repository);
        command.args([subcommand, "--color", "never", "--manifest-path"]);
        command.arg(self.repository.root().join("Cargo.toml"));
        for tested in &self.crates {
            command.args(["--package", specification(self.metadata, &tested.name)]);
        }
        if let Some(tool) = self.tool {
            command.env("SING", tool);
        }
        command
    }

    /// Returns the number of tests that run at the same time, unless it is left to cargo: end-to-end tests mostly wait
    /// for machines that they started.
    fn test_threads(&self) -> Option<usize> {
        let is_left_to_cargo = self.tier != END_TO_END || std::env::var_os("RUST_TEST_THREADS").is_some();
        (!is_left_to_cargo).then_some(processors() * TESTS_PER_PROCESSOR)
    }

    /// Builds and runs the tests; shows one line per suite and the details of each failure.
    fn run_short(&self, what: What, selection: &Selection<'_>) -> Outcome<Ran> {
        match what {
            What::Tests => self.run_programs(selection),
            What::Documentation => self.run_documentation(selection),
        }
    }

    /// Builds the test programs and runs them, one for each processor at a time; end-to-end tests run side by side
    /// within their program, and build systems.
    fn run_programs(&self, selection: &Selection<'_>) -> Outcome<Ran> {
        let mut command = self.command("test");
        command.arg(What::Tests.option());
        let settings = programs::settings(&command);
        let programs = match programs::build(command)? {
            Built::Programs(programs) => programs,
            Built::Failed(errors) => return Ok(Ran::BuildFailed(last(&errors))),
        };
        let start = |program: &Program| {
            let mut command = program.command(&settings);
            command.args(selection.name).args(self.harness_arguments());
            command
        };
        let mut suites = Suites::new(self.tier);
        let at_once = if self.tier == END_TO_END { 1 } else { processors() };
        programs::run(self.repository.root(), &programs, at_once, &start, |ended| {
            suites.began = Instant::now().checked_sub(ended.took).unwrap_or(suites.began);
            ended.output.lines().for_each(|line| suites.read(line));
            suites.end();
        });
        Ok(Ran::Tests(suites.total))
    }

    /// Runs the code of the documentation under `cargo test`, which alone can.
    fn run_documentation(&self, selection: &Selection<'_>) -> Outcome<Ran> {
        let mut command = self.command("test");
        command.arg(What::Documentation.option()).arg("--no-fail-fast").args(selection.name);
        command.arg("--").args(self.harness_arguments());
        let cannot_start = |error: std::io::Error| Failure::new(format!("cannot start cargo test: {error}"));
        // One pipe for both streams keeps suite names and results in order.
        let (reader, writer) = std::io::pipe().map_err(cannot_start)?;
        command.stdin(Stdio::null()).stdout(writer.try_clone().map_err(cannot_start)?).stderr(writer);
        let mut child = command.spawn().map_err(cannot_start)?;
        // The command holds the write ends; the reader sees end of file only after they are closed.
        drop(command);
        let mut suites = Suites::new(self.tier);
        BufReader::new(reader).lines().map_while(Result::ok).for_each(|line| suites.read(&line));
        let status = child.wait().map_err(cannot_start)?;
        suites.end();
        match status.success() || suites.total.failed > 0 {
            true => Ok(Ran::Tests(suites.total)),
            false if suites.parser.has_begun() => Err(did_not_build(&tail(&suites.chatter))),
            false => Ok(Ran::BuildFailed(tail(&suites.chatter))),
        }
    }

    /// Returns arguments for test programs.
    fn harness_arguments(&self) -> Vec<String> {
        let skipped = self.left_out.iter().flat_map(|part| ["--skip".to_string(), part.clone()]);
        let threads = self.test_threads().map(|threads| format!("--test-threads={threads}"));
        skipped.chain(threads).collect()
    }

    /// Builds all tests that can be built, counts each crate that cannot as failed, and excludes it.
    fn leave_out_what_does_not_build(&mut self, output: &str) -> Outcome<Counts> {
        let mut command = self.command("build");
        command.args(["--tests", "--keep-going", "--quiet", "--message-format=json"]);
        // With the tests' profile, so that nothing is built twice.
        command.args(["--profile", "test"]).stdin(Stdio::null()).stderr(Stdio::null());
        let built = command.output().map_err(|error| Failure::new(format!("cannot start cargo: {error}")))?;
        let found = Broken::read(&String::from_utf8_lossy(&built.stdout), self.metadata);
        let mut reasons = packages::untestable(self.metadata, &found.errors, &found.without_library);
        reasons.retain(|name, _| self.crates.iter().any(|tested| tested.name == *name));
        if reasons.is_empty() {
            return Err(did_not_build(output));
        }
        let mut counts = Counts::default();
        for (name, reason) in &reasons {
            println!("  FAILED {name}: {reason}");
            counts += Counts::failed((format!("{name}: does not build"), format!("cargo test --package {name}")));
        }
        self.crates.retain(|tested| !reasons.contains_key(&tested.name));
        Ok(counts)
    }
}

/// Returns cargo's package id specification of a workspace crate; an external crate may have the same name.
fn specification<'a>(metadata: &'a Metadata, name: &'a str) -> &'a str {
    metadata.packages.iter().find(|package| package.name == name).map_or(name, |package| &package.id)
}

fn did_not_build(output: &str) -> Failure {
    Failure::new("the tests did not build, or a test program terminated early").details(output.to_string())
}

/// Reads the output of test programs, and shows one line per suite and the details of each failure.
struct Suites {
    tier: &'static str,
    parser: CargoTestReader,
    /// When the current suite began.
    began: Instant,
    total: Counts,
    /// Lines since the last suite ended, shown if this one does not.
    chatter: Vec<String>,
}

impl Suites {
    fn new(tier: &'static str) -> Suites {
        let (parser, total) = (CargoTestReader::default(), Counts::default());
        Suites { tier, parser, began: Instant::now(), total, chatter: Vec::new() }
    }

    fn read(&mut self, line: &str) {
        match self.parser.read(line) {
            Line::SuiteEnded(suite, counts) => {
                if counts != Counts::default() {
                    println!("  {suite}: {counts}{}", took(self.began));
                }
                self.began = Instant::now();
                self.total += counts;
                self.chatter.clear();
            }
            Line::TestFailed(suite, name) => self.total.failures.push(again(self.tier, &suite, &name)),
            Line::SuiteLost(suite) => self.lose(&suite),
            Line::Failure => println!("{line}"),
            Line::SuiteBegins | Line::Chatter => self.chatter.push(line.to_string()),
        }
    }

    /// Counts a suite that gave no result by the end of the output as failed.
    fn end(&mut self) {
        if let Some(suite) = self.parser.lost() {
            self.lose(&suite);
            self.parser = CargoTestReader::default();
        }
    }

    fn lose(&mut self, suite: &str) {
        println!("{}\n  FAILED {suite}: test program terminated early", tail(&self.chatter));
        self.total += Counts::failed(again(self.tier, suite, ""));
        self.chatter.clear();
    }
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Returns the last lines of a text.
fn last(text: &str) -> String {
    tail(&text.lines().map(String::from).collect::<Vec<_>>())
}

fn tail(lines: &[String]) -> String {
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}

/// The result of a `cargo test`.
enum Ran {
    /// The tests ran.
    Tests(Counts),
    /// None ran; holds the end of cargo's output.
    BuildFailed(String),
}

/// Crates that do not build, from cargo's messages.
#[derive(Debug, Default)]
struct Broken {
    /// Compiler errors by package name.
    errors: BTreeMap<String, String>,
    /// Those whose library, as used by dependents, was not built.
    without_library: BTreeSet<String>,
}

#[derive(Deserialize)]
struct Message {
    reason: String,
    package_id: Option<String>,
    target: Option<MessageTarget>,
    message: Option<Diagnostic>,
    profile: Option<Profile>,
}

#[derive(Deserialize)]
struct MessageTarget {
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct Diagnostic {
    level: String,
    rendered: Option<String>,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

impl Broken {
    fn read(output: &str, metadata: &Metadata) -> Broken {
        let mut broken = Broken::default();
        let mut libraries = BTreeSet::new();
        let mut suspects = BTreeSet::new();
        for message in output.lines().filter_map(|line| serde_json::from_str::<Message>(line).ok()) {
            let Some(package) =
                metadata.packages.iter().find(|package| Some(&package.id) == message.package_id.as_ref())
            else {
                continue;
            };
            let kinds = message.target.map(|target| target.kind).unwrap_or_default();
            // Dependents use neither programs nor tests.
            let is_used = !kinds.iter().any(|kind| ["bin", "test", "bench", "example"].contains(&kind.as_str()));
            match (message.reason.as_str(), message.message) {
                ("compiler-artifact", _) if is_used && message.profile.is_some_and(|profile| !profile.test) => {
                    libraries.insert(package.name.clone());
                }
                ("compiler-message", Some(told)) if told.level.starts_with("error") => {
                    let text = told.rendered.unwrap_or_default();
                    broken.errors.entry(package.name.clone()).or_insert_with(|| text.trim_end().to_string());
                    if is_used {
                        suspects.insert(package.name.clone());
                    }
                }
                _ => {}
            }
        }
        broken.without_library = suspects.difference(&libraries).cloned().collect();
        broken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_of_the_workspace_is_not_taken_for_one_of_its_name_from_elsewhere() {
        let package = r#"{"id":"path+file:///r/apps/log#0.1.0","name":"log","version":"0.1.0","license":null,"source":null,
            "manifest_path":"/r/apps/log/Cargo.toml","edition":"2024","targets":[],"dependencies":[]}"#;
        let metadata = format!(r#"{{"packages":[{package}],"resolve":null,"workspace_members":[]}}"#);
        let metadata: Metadata = serde_json::from_str(&metadata).expect("metadata");
        assert_eq!(specification(&metadata, "log"), "path+file:///r/apps/log#0.1.0");
    }

    #[test]
    fn what_does_not_build_is_read_from_cargos_messages() {
        let package = |name: &str| {
            format!(
                r#"{{"id":"path+{name}","name":"{name}","version":"0.1.0","license":null,"source":null,
                "manifest_path":"/{name}/Cargo.toml","edition":"2024","targets":[],"dependencies":[]}}"#
            )
        };
        let names = ["library", "tests", "both", "fine"].map(package).join(",");
        let metadata: Metadata =
            serde_json::from_str(&format!(r#"{{"packages":[{names}],"resolve":null,"workspace_members":[]}}"#))
                .expect("metadata");
        let error = |name: &str, kind: &str, text: &str| {
            format!(
                r#"{{"reason":"compiler-message","package_id":"path+{name}","target":{{"kind":["{kind}"]}},"message":{{"level":"error","rendered":"{text}"}}}}"#
            )
        };
        let artifact = |name: &str, test: bool| {
            format!(
                r#"{{"reason":"compiler-artifact","package_id":"path+{name}","target":{{"kind":["lib"]}},"profile":{{"test":{test}}}}}"#
            )
        };
        let output = [
            "no message".into(),
            error("library", "lib", "first"),
            error("library", "lib", "second"),
            error("tests", "test", "in a test"),
            error("both", "lib", "in its unit tests"),
            artifact("both", false),
            artifact("fine", true),
            r#"{"reason":"build-finished","success":false}"#.into(),
        ];
        let broken = Broken::read(&output.join("\n"), &metadata);
        let told: Vec<(&str, &str)> = broken.errors.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        assert_eq!(told, [("both", "in its unit tests"), ("library", "first"), ("tests", "in a test")]);
        assert_eq!(broken.without_library, BTreeSet::from(["library".to_string()]));
    }
}
