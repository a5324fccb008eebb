//! wasmtime, by a program of a workspace of its own, which this bench alone builds: 200 crates that nothing else needs.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sing::cargo;
use sing::failure::{Failure, Outcome};
use sing::process::run_machine_with;
use sing::repository::Repository;

use super::compute::Program;
use crate::bench::LIMIT;
use crate::bench::table::{Figures, figures};

/// The workspace.
const WORKSPACE: &str = "benches/wasmtime/Cargo.toml";
const PROGRAM: &str = "bench-wasmtime";
/// Crates that its build compiles, about.
const CRATES: usize = 180;

/// The program that runs modules in wasmtime.
pub struct Wasmtime {
    program: PathBuf,
    /// The folder with the programs' work.
    work: PathBuf,
}

impl Wasmtime {
    /// Builds it; says why there is none if that fails, since everything else can be measured without it.
    pub fn build(repository: &Repository) -> Option<Wasmtime> {
        match built(repository) {
            Ok(program) => Some(Wasmtime { program, work: repository.base().join("benches/wasm") }),
            Err(failure) => {
                eprintln!("sing: without the figures of wasmtime: {failure}");
                None
            }
        }
    }

    /// Runs a module, the kernels' or a program's with its work; returns what was printed.
    ///
    /// # Errors
    /// It cannot be started, or fails.
    pub fn run(&self, is_checked: bool, module: &Path, program: Option<&Program>) -> Outcome<String> {
        let mut command = Command::new(&self.program);
        command.arg("run").args(is_checked.then_some("--checks"));
        command.args(program.map(|_| "--dir")).args(program.map(|_| &self.work)).arg(module);
        let mut input = Stdio::null();
        if let Some(program) = program {
            command.args(program.words);
            let work = self.work.join(program.work);
            if program.is_input {
                input = File::open(&work).map_err(|error| Failure::file("read", &work, &error))?.into();
            } else {
                command.arg(program.work);
            }
        }
        self.finished(command, input)
    }

    /// Nanoseconds of starting a pooled instance to its end, or the memory of many that are alive.
    ///
    /// # Errors
    /// It cannot be started, or fails.
    pub fn pooled(&self, task: &str, module: &Path, count: u32) -> Outcome<Figures> {
        let mut command = Command::new(&self.program);
        command.arg(task).arg(module).arg(count.to_string());
        self.finished(command, Stdio::null()).map(|text| figures(&text))
    }

    fn finished(&self, command: Command, input: Stdio) -> Outcome<String> {
        let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        let output = run_machine_with(command, input, LIMIT)?;
        match output.problem {
            None => Ok(output.text),
            Some(problem) => {
                Err(Failure::new(format!("`{PROGRAM} {}`: {problem}", words.join(" "))).details(output.text))
            }
        }
    }
}

fn built(repository: &Repository) -> Outcome<PathBuf> {
    let manifest = repository.base().join(WORKSPACE);
    let mut fetch = cargo::command(repository);
    fetch.args(["fetch", "--quiet", "--locked", "--manifest-path"]).arg(&manifest).stderr(Stdio::piped());
    eprintln!("sing: wasmtime is downloaded and built if it was not before ({WORKSPACE})");
    let fetched = fetch.output().map_err(|error| Failure::new(format!("cannot start cargo: {error}")))?;
    if !fetched.status.success() {
        return Err(Failure::new("its crates cannot be downloaded")
            .details(String::from_utf8_lossy(&fetched.stderr).into_owned())
            .remedy(format!("go online, and try `cargo fetch --manifest-path {WORKSPACE}`")));
    }
    let mut command = cargo::command(repository);
    command.args(["build", "--release", "--locked", "--manifest-path"]).arg(&manifest);
    command.arg("--target-dir").arg(repository.cargo_target());
    let made = cargo::build(command, "wasmtime, to measure beside", CRATES)?;
    made.get(PROGRAM).cloned().ok_or_else(|| Failure::new(format!("cargo produced no program {PROGRAM}")))
}
