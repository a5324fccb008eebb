//! Test programs: builds those of a `cargo test`, and runs several at a time.
//!
//! Cargo runs one after the other, of which most have a single long test and leave processors idle. Each gets from
//! here what cargo would give it: the folder of its crate, and the libraries of the compiler for tests of macros.
//! Deliberately not here: what their output means; see `test_output`.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::cargo;
use crate::failure::{Failure, Outcome};
use crate::progress::Progress;

/// Typical number of crates and programs that a build of tests reports.
const USUAL_STEPS: usize = 400;

/// What a build of tests came to.
pub(super) enum Built {
    /// All programs, in the order of their paths.
    Programs(Vec<Program>),
    /// A crate did not build: what cargo wrote.
    Failed(String),
}

/// A program with the tests of one target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Program {
    pub(super) path: PathBuf,
    /// Folder of its crate, the tests' working directory.
    pub(super) folder: PathBuf,
    /// Name of its target.
    pub(super) name: String,
    /// As cargo announces it: `unittests src/lib.rs` or `tests/all.rs`.
    source: String,
}

/// A program that has ended.
pub(super) struct Ended {
    /// Cargo's line that announces it, and then what it wrote.
    pub(super) output: String,
    pub(super) took: Duration,
}

#[derive(Deserialize)]
struct Artifact {
    executable: Option<PathBuf>,
    manifest_path: PathBuf,
    target: Target,
    profile: Profile,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
    src_path: PathBuf,
}

impl Program {
    /// Returns the program of an artifact; `None` for libraries, and for programs that tests start.
    fn of(artifact: Artifact) -> Option<Program> {
        let folder = artifact.manifest_path.parent()?.to_path_buf();
        let path = artifact.executable.filter(|_| artifact.profile.test)?;
        let source = artifact.target.src_path.strip_prefix(&folder).unwrap_or(&artifact.target.src_path);
        let is_integration = artifact.target.kind.iter().any(|kind| kind == "test");
        let unit = if is_integration { "" } else { "unittests " };
        let source = format!("{unit}{}", source.display());
        Some(Program { path, folder, name: artifact.target.name, source })
    }

    /// Returns a command that runs it, with the given settings in its environment.
    pub(super) fn command(&self, settings: &[(OsString, OsString)]) -> Command {
        let mut command = Command::new(&self.path);
        command.current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder);
        command.envs(settings.iter().map(|(name, value)| (name, value)));
        command
    }
}

/// Returns the environment that programs need beyond what the tool has: cargo, what it was given, and the path of the
/// compiler's libraries.
pub(super) fn settings(cargo: &Command) -> Vec<(OsString, OsString)> {
    let given = cargo.get_envs().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())));
    let cargo = ("CARGO".into(), cargos_path(cargo.get_program()));
    std::iter::once(cargo)
        .chain(given)
        .chain(compilers_libraries().map(|folders| ("LD_LIBRARY_PATH".into(), folders)))
        .collect()
}

/// Returns the path of a program: cargo tells tests its own, so that those that take `PATH` away find it.
fn cargos_path(program: &OsStr) -> OsString {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&folders).map(|folder| folder.join(program)).find(|path| path.is_file());
    found.map_or_else(|| program.into(), OsString::from)
}

/// Returns the search path for shared libraries with the compiler's own in front.
fn compilers_libraries() -> Option<OsString> {
    let output = Command::new("rustc").args(["--print", "target-libdir"]).output().ok()?;
    let folder = String::from_utf8(output.stdout).ok()?;
    let others = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let others = std::env::split_paths(&others).filter(|folder| !folder.as_os_str().is_empty());
    std::env::join_paths(std::iter::once(PathBuf::from(folder.trim())).chain(others)).ok()
}

/// Builds what `command`, a `cargo test`, would run.
///
/// # Errors
/// Cargo cannot be started.
pub(super) fn build(mut command: Command) -> Outcome<Built> {
    let cannot_start = |error: std::io::Error| Failure::new(format!("cannot start cargo test: {error}"));
    command.args(["--no-run", "--quiet", "--message-format=json-render-diagnostics"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(cannot_start)?;
    let errors = child.stderr.take().map(|errors| std::thread::spawn(|| read_all(errors)));
    let mut programs = read_programs(&mut child);
    let status = child.wait().map_err(cannot_start)?;
    let errors = errors.and_then(|reader| reader.join().ok()).unwrap_or_default();
    programs.sort_by(|one, other| (&one.folder, &one.path).cmp(&(&other.folder, &other.path)));
    Ok(if status.success() { Built::Programs(programs) } else { Built::Failed(errors) })
}

fn read_programs(child: &mut Child) -> Vec<Program> {
    let mut progress = Progress::new("tests", USUAL_STEPS);
    let mut programs = Vec::new();
    if let Some(output) = child.stdout.take() {
        cargo::follow(output, &mut progress, |line, progress| {
            let Ok(artifact) = serde_json::from_str::<Artifact>(line) else { return };
            progress.step(&artifact.manifest_path.to_string_lossy(), &artifact.target.name);
            programs.extend(Program::of(artifact));
        });
    }
    programs
}

fn read_all(mut reader: impl Read) -> String {
    let mut bytes = Vec::new();
    // What was read before an error is all there is to show.
    let _ = reader.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Runs programs, `at_once` at a time, and hands over each that has ended.
pub(super) fn run(
    root: &Path,
    programs: &[Program],
    at_once: usize,
    start: &(dyn Fn(&Program) -> Command + Sync),
    mut ended: impl FnMut(Ended),
) {
    let waiting: Mutex<VecDeque<&Program>> = Mutex::new(programs.iter().collect());
    let next = || waiting.lock().ok().and_then(|mut waiting| waiting.pop_front());
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            let sender = sender.clone();
            scope.spawn(move || {
                while let Some(program) = next() {
                    let began = Instant::now();
                    let shown = program.path.strip_prefix(root).unwrap_or(&program.path);
                    let heading = format!("     Running {} ({})", program.source, shown.display());
                    let output = format!("{heading}\n{}", output(start(program)));
                    if sender.send(Ended { output, took: began.elapsed() }).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        receiver.iter().for_each(&mut ended);
    });
}

/// Runs a program to its end. Returns what it wrote to both streams, in order.
fn output(mut command: Command) -> String {
    let run = || -> std::io::Result<String> {
        let (reader, writer) = std::io::pipe()?;
        command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
        let mut child = command.spawn()?;
        // The command holds the write ends; the reader sees end of file only after they are closed.
        drop(command);
        let mut output = read_all(reader);
        let status = child.wait()?;
        if !status.success() {
            output += &format!("\nended with {status}\n");
        }
        Ok(output)
    };
    run().unwrap_or_else(|error| format!("cannot be started: {error}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(name: &str) -> Program {
        Program { path: name.into(), folder: "/".into(), name: name.into(), source: format!("tests/{name}.rs") }
    }

    #[test]
    fn programs_run_at_the_same_time_and_each_is_told_as_cargo_does() {
        let folder = tempfile::tempdir().expect("a folder");
        // Each waits for the other.
        let script = "touch $1; until [ -e $2 ]; do sleep 0.01; done; echo test result: ok. >&2; exit $3";
        let start = |program: &Program| {
            let is_first = program.name == "one";
            let (own, other) = if is_first { ("one", "two") } else { ("two", "one") };
            let mut command = Command::new("sh");
            command.args(["-c", script, "sh", own, other, if is_first { "0" } else { "3" }]);
            command.current_dir(folder.path());
            command
        };
        let mut outputs = Vec::new();
        run(Path::new("/"), &[program("one"), program("two")], 2, &start, |ended| outputs.push(ended.output));
        outputs.sort();
        assert_eq!(outputs[0], "     Running tests/one.rs (one)\ntest result: ok.\n");
        assert!(outputs[1].starts_with("     Running tests/two.rs (two)\ntest result: ok.\n"), "{}", outputs[1]);
        assert!(outputs[1].contains("ended with exit status: 3"), "{}", outputs[1]);
    }

    #[test]
    fn a_program_that_cannot_be_started_is_told() {
        let mut outputs = Vec::new();
        let start = |program: &Program| Command::new(&program.path);
        run(Path::new("/"), &[program("/no/such/program")], 2, &start, |ended| outputs.push(ended.output));
        assert!(outputs[0].contains("cannot be started: "), "{}", outputs[0]);
    }

    #[test]
    fn artifacts_that_are_no_tests_are_no_programs() {
        let artifact = |kind: &str, test: bool, executable: &str| {
            let text = format!(
                r#"{{"executable":{executable},"manifest_path":"/r/lib/x/Cargo.toml","profile":{{"test":{test}}},
                "target":{{"name":"x","kind":["{kind}"],"src_path":"/r/lib/x/src/lib.rs"}}}}"#
            );
            Program::of(serde_json::from_str(&text).expect("an artifact"))
        };
        assert_eq!(artifact("lib", false, "null"), None);
        assert_eq!(artifact("bin", false, r#""/t/x""#), None);
        let unit = artifact("lib", true, r#""/t/x-1""#).expect("tests");
        assert_eq!((unit.source.as_str(), unit.folder.as_path()), ("unittests src/lib.rs", Path::new("/r/lib/x")));
        assert_eq!(artifact("test", true, r#""/t/x-1""#).expect("tests").source, "src/lib.rs");
    }
}
