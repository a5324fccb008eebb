//! Runs `spin` on a model, within bounds of time and memory.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use lang::Event;

use crate::failure::{Failure, Outcome};
use crate::host_tools::{self, Tool};
use crate::process::{self, MachineOutput};

/// Most memory of a search, in MiB.
const MEMORY_MIB: u32 = 1024;
/// Timeout of each of the programs.
const LIMIT: Duration = Duration::from_secs(60);

/// Result of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// All states were seen, and none is a deadlock.
    None,
    /// The steps to a deadlock: one of the shortest ways.
    Deadlock(Vec<Event>),
    /// Not all states could be seen, for this reason.
    Undecided(String),
}

/// Returns the path of `spin`.
///
/// # Errors
/// It is not installed; the remedy tells how to get it.
pub fn spin() -> Outcome<PathBuf> {
    host_tools::find(Tool::SPIN.program).ok_or_else(|| {
        Failure::new("`spin`, which searches a circle of waits for deadlocks, is not installed")
            .remedy(host_tools::remedy(&Tool::SPIN))
    })
}

/// Searches a model for a deadlock.
///
/// # Errors
/// `spin` or a C compiler is missing, or does not accept the model.
pub fn search(spin: &Path, model: &str) -> Outcome<Found> {
    let folder = tempfile::tempdir().map_err(|error| Failure::file("create", &std::env::temp_dir(), &error))?;
    let folder = folder.path();
    let file = folder.join("model.pml");
    std::fs::write(&file, model).map_err(|error| Failure::file("write", &file, &error))?;
    let run = |program: &Path, arguments: &[&str]| -> Outcome<MachineOutput> {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(folder);
        process::run_machine(command, LIMIT)
    };
    let made = run(spin, &["-a", "model.pml"])?;
    refuse("`spin` does not accept the model", &made)?;
    let memory = format!("-DMEMLIM={MEMORY_MIB}");
    let compiler = host_tools::find("cc").ok_or_else(|| {
        Failure::new("no C compiler, with which `spin` makes its search, is installed")
            .remedy("install `cc`: the package `gcc` or `clang`")
    })?;
    // Breadth first, so that what is found is short.
    let made = run(&compiler, &["-w", "-O1", "-DSAFETY", "-DBFS", "-DCOLLAPSE", &memory, "-o", "pan", "pan.c"])?;
    refuse("the search that `spin` made does not compile", &made)?;
    let searched = run(&folder.join("pan"), &[])?;
    if searched.text.contains("assertion violated") {
        return Err(Failure::new("a queue of the model holds more messages than its contract allows")
            .details(searched.text)
            .remedy("report this as an error of the contract compiler"));
    }
    if searched.text.contains("invalid end state (at depth") {
        let replayed = run(spin, &["-t", "model.pml"])?;
        return Ok(Found::Deadlock(replayed.text.lines().filter_map(Event::read).collect()));
    }
    if let Some(problem) = searched.problem {
        return Ok(Found::Undecided(format!("the search {problem}")));
    }
    if searched.text.contains("errors: 0") && !searched.text.contains("not completed") {
        return Ok(Found::None);
    }
    Ok(Found::Undecided(format!("the search needs more than {MEMORY_MIB} MiB of memory")))
}

fn refuse(what: &str, output: &MachineOutput) -> Outcome<()> {
    match output.problem {
        None => Ok(()),
        Some(_) => Err(Failure::new(what).details(output.text.clone()).remedy("report this with the system's name")),
    }
}
