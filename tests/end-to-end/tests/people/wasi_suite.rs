//! The test suite of WASI, as built by its makers: each module runs as a sealed process in one hosted machine.
//!
//! `wasi_suite.toml` lists the modules that do not pass, each with its reason; one of them that passes is an error too.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use end_to_end::{Format, Image, built_system, finish, repository, sing};
use serde::Deserialize;

test_needs::needs!(WasiTestsuite, E2fsprogs);

/// Folder of the suite, from the root of the repository.
const SUITE: &str = "../shared/wasi-testsuite/tests";
/// Number of modules in it.
const MODULES: usize = 72;
/// Most of it is for compiling the modules.
const LIMIT: Duration = Duration::from_secs(600);
/// What the script prints before and after the output of a module.
const BEGIN: &str = "@begin ";
const END: &str = "@end ";

/// What the suite says of a module.
#[derive(Debug, Default, Deserialize)]
struct Expectation {
    /// Folder that it sees as `/`.
    root: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    exit_code: i32,
    stdout: Option<String>,
}

/// A module.
struct Case {
    /// Name of its file, without `.wasm`.
    name: String,
    path: PathBuf,
    expected: Expectation,
}

#[derive(Deserialize)]
struct Exceptions {
    exception: Vec<Exception>,
}

/// A module that does not pass.
#[derive(Deserialize)]
struct Exception {
    name: String,
    reason: String,
}

impl Case {
    /// Name of the program that the tool makes of it.
    fn program(&self) -> String {
        self.name.to_ascii_lowercase().replace('_', "-")
    }

    /// The command that runs it.
    fn command(&self) -> String {
        let mut command = format!("{} --no-working-folder", self.program());
        if self.expected.root.is_some() {
            let _ = write!(command, " --dir /fs/disk0/{}::/", self.program());
        }
        for (name, value) in &self.expected.env {
            let _ = write!(command, " --env {}", quoted(&format!("{name}={value}")));
        }
        let words = self.expected.args.iter().map(|word| format!(" {}", quoted(word)));
        command + " --" + &words.collect::<String>()
    }

    /// Why its result is wrong, if it is.
    fn problem(&self, results: &BTreeMap<String, (String, i32)>) -> Option<String> {
        let Some((output, status)) = results.get(&self.program()) else { return Some("it did not run".into()) };
        let Expectation { exit_code, stdout, .. } = &self.expected;
        if status != exit_code {
            return Some(format!("it ended with {status}, not {exit_code}"));
        }
        stdout
            .as_ref()
            .filter(|stdout| *stdout != output)
            .map(|stdout| format!("it printed {output:?}, not {stdout:?}"))
    }
}

/// A word of the shell.
fn quoted(word: &str) -> String {
    assert!(!word.contains('\''), "{word:?} needs other quotes");
    format!("'{word}'")
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for language in ["assemblyscript", "c", "rust"] {
        let folder = repository().join(SUITE).join(language).join("testsuite/wasm32-wasip1");
        let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let paths = entries.map(|entry| entry.expect("an entry").path());
        for path in paths.filter(|path| path.extension().is_some_and(|extension| extension == "wasm")) {
            let expected = match std::fs::read(path.with_extension("json")) {
                Ok(json) => serde_json::from_slice(&json).unwrap_or_else(|error| panic!("{}: {error}", path.display())),
                Err(_) => Expectation::default(),
            };
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            cases.push(Case { name, path, expected });
        }
    }
    cases.sort_by(|left, right| left.name.cmp(&right.name));
    cases
}

/// A disk with a folder for each module that sees one, as the suite wants it.
fn disk(cases: &[Case]) -> Image {
    let source = tempfile::tempdir().expect("a folder");
    for case in cases {
        if let Some(root) = &case.expected.root {
            copy(&case.path.with_file_name(root), &source.path().join(case.program()));
        }
    }
    Image::of(source.path(), Format::default())
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::write(to, std::fs::read(entry.path()).expect("a file")).expect("a file");
        }
    }
}

/// Output and status of each program.
fn results(output: &str) -> BTreeMap<String, (String, i32)> {
    let parts = output.split(BEGIN).skip(1);
    let result = |part: &str| {
        let (name, rest) = part.split_once('\n')?;
        let (output, status) = rest.rsplit_once(END)?;
        Some((name.to_string(), (output.to_string(), status.trim().parse().ok()?)))
    };
    parts.filter_map(result).collect()
}

#[test]
fn the_modules_of_the_wasi_suite_pass() {
    let cases = cases();
    assert_eq!(cases.len(), MODULES, "modules in {SUITE}");
    let exceptions: Exceptions = toml::from_str(include_str!("wasi_suite.toml")).expect("a list");
    let disk = disk(&cases);
    // Builds the compiler in advance, so that it does not count against the timeout.
    built_system("wasm");
    let mut command = Command::new(sing());
    command.arg("run").current_dir(repository()).arg("--disk").arg(disk.path());
    let mut script = String::new();
    for case in &cases {
        command.arg("--wasm").arg(&case.path);
        let _ = writeln!(script, "echo '{BEGIN}{}'; {}; echo \"{END}$?\"", case.program(), case.command());
    }
    command.arg("-c").arg(&script);
    let run = finish(command, &script, LIMIT);
    let results = results(&run.text());
    let mut problems = Vec::new();
    for case in &cases {
        let exception = exceptions.exception.iter().find(|exception| exception.name == case.name);
        match (case.problem(&results), exception) {
            (None, None) | (Some(_), Some(_)) => {}
            (Some(problem), None) => problems.push(format!("{}: {problem}", case.name)),
            (None, Some(Exception { name, reason })) => problems.push(format!("{name} passes, but: {reason}")),
        }
    }
    let unknown = |exception: &&Exception| !cases.iter().any(|case| case.name == exception.name);
    problems
        .extend(exceptions.exception.iter().filter(unknown).map(|exception| format!("no module {}", exception.name)));
    assert!(problems.is_empty(), "{}\n{run}", problems.join("\n"));
    disk.check();
}
