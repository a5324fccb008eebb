//! Programs in C, compiled for the host by the scripts that make their modules: what they take without WebAssembly.
//!
//! They run as processes of Linux, and do nothing but compute. Where there is no C compiler, their column stays empty.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use sing::failure::{Failure, Outcome};
use sing::process::run_machine_with;
use sing::repository::Repository;

use super::compute::{PROGRAMS, Program};
use crate::bench::LIMIT;

/// Output folder.
const FOLDER: &str = "bench-wasm-native";

/// The programs, by name.
pub struct Host {
    programs: BTreeMap<&'static str, PathBuf>,
}

impl Host {
    /// Compiles what was not compiled before; says what cannot be.
    pub fn build(repository: &Repository) -> Host {
        let mut programs = BTreeMap::new();
        for program in &PROGRAMS {
            match built(repository, program) {
                Ok(path) => _ = programs.insert(program.name, path),
                Err(failure) => eprintln!("sing: without {} on the host: {failure}", program.name),
            }
        }
        Host { programs }
    }

    /// Runs a program with its work; returns nanoseconds and what it printed.
    ///
    /// # Errors
    /// It fails.
    pub fn run(&self, repository: &Repository, program: &Program) -> Outcome<Option<(u64, String)>> {
        let Some(path) = self.programs.get(program.name) else { return Ok(None) };
        let work = repository.base().join("benches/wasm").join(program.work);
        let mut command = Command::new(path);
        command.args(program.words);
        let mut input = Stdio::null();
        if program.is_input {
            input = File::open(&work).map_err(|error| Failure::file("read", &work, &error))?.into();
        } else {
            command.arg(&work);
        }
        let start = Instant::now();
        let output = run_machine_with(command, input, LIMIT)?;
        let nanoseconds = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        match output.problem {
            None => Ok(Some((nanoseconds, output.text))),
            Some(problem) => Err(Failure::new(format!("{} on the host: {problem}", program.name)).details(output.text)),
        }
    }
}

/// Compiles a program by its port's script, unless it was compiled by the same script.
fn built(repository: &Repository, program: &Program) -> Outcome<PathBuf> {
    let script = repository.base().join("ports").join(program.port).join("build.sh");
    let path = repository.output(FOLDER).join(program.name);
    let time = |path: &PathBuf| path.metadata().and_then(|metadata| metadata.modified()).ok();
    if time(&path).is_some_and(|made| time(&script).is_some_and(|changed| changed < made)) {
        return Ok(path);
    }
    let folder = repository.output(FOLDER);
    std::fs::create_dir_all(&folder).map_err(|error| Failure::file("make the folder", &folder, &error))?;
    eprintln!("sing: compiling {} for the host", program.name);
    let output = Command::new(&script).arg("--native").arg(&path).stdin(Stdio::null()).output();
    let output = output.map_err(|error| Failure::file("start", &script, &error))?;
    if output.status.success() && path.is_file() {
        return Ok(path);
    }
    Err(Failure::new("it does not compile")
        .details(String::from_utf8_lossy(&output.stderr).into_owned())
        .remedy("install a C compiler, and go online for its sources"))
}
