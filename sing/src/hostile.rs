//! The part of `sing test` that runs hostile programs: `tests/hostile/run`, in the system `hostile`.
//!
//! Deliberately not here: which programs there are and how each must end; `tests/hostile/check` knows.

use std::process::Command;
use std::time::SystemTime;

use crate::builder::UnsafeTests;
use crate::failure::{Failure, Outcome};
use crate::repository::Repository;
use crate::systems::{self, Platform, Ready};
use crate::test::{Selection, conformance_run, skipped, this_tool};
use crate::test_output::Counts;

const SUITE: &str = "hostile";
const PROCESSORS: u32 = 2;
/// Memory of the machine on which most attempts are made.
const USUAL_MEMORY_MIB: u32 = 512;
/// Those that take what memory there is are made on machines of each of these sizes.
const MEMORY_MIB: [u32; 2] = [128, 1024];

/// The program that calls the runtime in random order, and the seeds with which it does so each time.
const FUZZER: &str = "hostile-fuzzer";
const FUZZED: &str = "fuzz 1 300";
/// How long it does so with `--long`.
const LONG_FUZZED_SECONDS: u32 = 3600;

/// One start of a machine: its memory, and the parameter that says which attempts are made.
struct Start {
    memory_mib: u32,
    parameter: String,
}

/// Runs the hostile programs, hosted and on a bare machine, unless there is no QEMU for one.
///
/// # Errors
/// The system does not build, or a machine cannot be started.
pub fn check(repository: &Repository, selection: &Selection<'_>, no_qemu: Option<&Failure>) -> Outcome<Counts> {
    let manifest = repository.system_manifest(SUITE.as_ref())?;
    let ready = systems::prepare(repository, &manifest, Platform::Hosted, UnsafeTests::Refused)?;
    let starts = starts(selection.name.unwrap_or_default());
    let mut counts = Counts::default();
    for Start { memory_mib, parameter } in &starts {
        let mut command = Command::new(&ready.machine);
        command.arg("--system").arg(&ready.image).args(["--processors", &PROCESSORS.to_string()]);
        command.args(["--memory-mib", &memory_mib.to_string(), "--parameter", parameter]);
        counts += conformance_run(command, &format!("{SUITE} with {memory_mib} MiB"), selection, PROCESSORS)?;
    }
    counts += fuzz(&ready, selection)?;
    if let Some(failure) = no_qemu {
        return Ok(counts + skipped("hostile programs on bare machines", &failure.to_string()));
    }
    let tool = this_tool()?;
    for Start { memory_mib, parameter } in &starts {
        let mut command = Command::new(&tool);
        command.args(["run", "--system", SUITE, "--machine", "microvm", "--smp", &PROCESSORS.to_string()]);
        command.args(["--mem", &format!("{memory_mib}M"), "--parameter", parameter]);
        let suite = format!("{SUITE} on microvm with {memory_mib} MiB");
        counts += conformance_run(command, &suite, selection, PROCESSORS)?;
    }
    Ok(counts)
}

/// Runs fuzzers on the hosted machine: always the same seeds, and with `--long` an hour of others.
fn fuzz(ready: &Ready, selection: &Selection<'_>) -> Outcome<Counts> {
    let mut counts = Counts::default();
    if selection.name.is_some_and(|name| !FUZZER.contains(name)) {
        return Ok(counts);
    }
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let long = selection.long.then(|| format!("fuzz {since_1970} for {LONG_FUZZED_SECONDS}"));
    for request in std::iter::once(FUZZED.to_owned()).chain(long) {
        let mut command = Command::new(&ready.machine);
        command.arg("--system").arg(&ready.image).args(["--processors", &PROCESSORS.to_string()]);
        command.args(["--memory-mib", &USUAL_MEMORY_MIB.to_string()]);
        command.arg("--parameter").arg(format!("commands={request}"));
        counts += conformance_run(command, FUZZER, selection, PROCESSORS)?;
    }
    Ok(counts)
}

/// What is started for the attempts with `name` in their names.
fn starts(name: &str) -> Vec<Start> {
    let usual = Start { memory_mib: USUAL_MEMORY_MIB, parameter: format!("commands={name}") };
    let sizes = MEMORY_MIB.map(|memory_mib| Start { memory_mib, parameter: format!("commands=memory {name}") });
    std::iter::once(usual).chain(sizes).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::repository::read_text;

    /// A hostile program that no system installs or no attempt names would never run.
    #[test]
    fn every_hostile_program_is_installed_and_attempted() {
        let repository = Repository::find().expect("tests run inside the repository");
        let read = |path: &str| read_text(&repository.root().join(path)).expect("a file of the repository");
        let (system, attempts) = (read("systems/hostile.toml"), read("tests/hostile/check/src/attempts.rs"));
        let folders = std::fs::read_dir(repository.root().join("tests/hostile/run")).expect("the programs");
        let names: BTreeSet<String> =
            folders.flatten().map(|entry| format!("\"hostile-{}\"", entry.file_name().to_string_lossy())).collect();
        assert!(!names.is_empty(), "there are hostile programs");
        for name in names {
            assert!(system.contains(&name), "systems/hostile.toml does not install {name}");
            assert!(attempts.contains(&name), "tests/hostile/check/src/attempts.rs has no attempt of {name}");
        }
    }
}
