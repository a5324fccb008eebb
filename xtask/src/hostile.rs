//! The part of `sing test` that runs hostile programs: `tests/hostile/run`, in the system `hostile`.
//!
//! Deliberately not here: the programs and how each must end; see `tests/hostile/check`.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use crate::test::{conformance_run, this_tool};
use sing::builder::UnsafeTests;
use sing::domains::{self, Configuration};
use sing::failure::{Failure, Outcome};
use sing::process::run_machine;
use sing::repository::Repository;
use sing::systems::{self, Platform, Ready};
use sing::test::{Selection, skipped};
use sing::test_output::Counts;

const SUITE: &str = "hostile";
const PROCESSORS: u32 = 2;
/// Memory of the machine for most attempts.
const USUAL_MEMORY_MIB: u32 = 512;
/// Memory sizes for attempts that exhaust memory.
const MEMORY_MIB: [u32; 2] = [128, 1024];

/// Configurations of hardware domains and processors of bare machines; those after the first with `--long`.
const BARE: [(&str, u32); 12] = [
    ("sip-phys", PROCESSORS),
    ("sip-phys", 1),
    ("sip-phys", 4),
    ("sip-page", 4),
    ("hip-r0", 1),
    ("hip-r0", 4),
    ("hip-r0-s", 1),
    ("hip-r0-s", 4),
    ("hip-r3", 1),
    ("hip-r3", 4),
    ("hip-r3-s", 1),
    ("hip-r3-s", 4),
];

/// The fuzzer of the runtime, and its seeds in each run.
const FUZZER: &str = "hostile-fuzzer";
const FUZZED: &str = "fuzz 1 300";
/// Its duration with `--long`.
const LONG_FUZZED_SECONDS: u32 = 3600;

/// The program that forges debug lines, and the word that marks them.
const FORGER: &str = "hostile-forged-lines";
const FORGED: &str = "forged";
/// The program that writes more debug output than a pipe holds.
const FLOODER: &str = "hostile-flood";
/// Timeout of either; bare machines may be emulated.
const LIMIT: Duration = Duration::from_secs(300);

/// One start of a machine: its memory, and the parameter that selects attempts.
struct Start {
    memory_mib: u32,
    parameter: String,
}

/// Runs the hostile programs, hosted and, if there is QEMU, on a bare machine.
///
/// # Errors
/// The system does not build, or a machine cannot be started.
pub fn check(repository: &Repository, selection: &Selection<'_>, no_qemu: Option<&Failure>) -> Outcome<Counts> {
    let manifest = repository.system_manifest(SUITE.as_ref())?;
    let ready = systems::prepare(repository, &manifest, Platform::Hosted, UnsafeTests::Refused)?;
    let starts = starts(selection.name.unwrap_or_default());
    let mut counts = Counts::default();
    for start in &starts {
        let (command, memory_mib) = (hosted(&ready, start), start.memory_mib);
        counts += conformance_run(command, &format!("{SUITE} with {memory_mib} MiB"), selection, PROCESSORS)?;
    }
    counts += forged_lines(hosted(&ready, &usual(FORGER)), SUITE, selection)?;
    counts += unread(hosted(&ready, &usual(FLOODER)), SUITE, selection)?;
    counts += fuzz(&ready, selection)?;
    if selection.long {
        let manifest = domains::system_in(repository, &manifest, Configuration::HipR3S)?;
        let ready = systems::prepare(repository, &manifest, Platform::Hosted, UnsafeTests::Refused)?;
        for start in &starts {
            let suite = format!("{SUITE} with {} MiB and --domains hip-r3-s", start.memory_mib);
            counts += conformance_run(hosted(&ready, start), &suite, selection, PROCESSORS)?;
        }
    }
    if let Some(failure) = no_qemu {
        return Ok(counts + skipped("hostile programs on bare machines", &failure.to_string()));
    }
    let tool = this_tool()?;
    let bare_in = |Start { memory_mib, parameter }: &Start, (domains, processors): (&str, u32)| {
        let mut command = Command::new(&tool);
        command.args(["run", "--system", SUITE, "--machine", "microvm", "--smp", &processors.to_string()]);
        command.args(["--mem", &format!("{memory_mib}M"), "--parameter", parameter, "--domains", domains]);
        command
    };
    let configurations = if selection.long { &BARE[..] } else { &BARE[..1] };
    for &(domains, processors) in configurations {
        for start in &starts {
            let suite = format!("{SUITE} on microvm with {} MiB and --domains {domains}", start.memory_mib);
            counts += conformance_run(bare_in(start, (domains, processors)), &suite, selection, processors)?;
        }
    }
    let bare = |start: &Start| bare_in(start, BARE[0]);
    let suite = format!("{SUITE} on microvm");
    counts += forged_lines(bare(&usual(FORGER)), &suite, selection)?;
    Ok(counts + unread(bare(&usual(FLOODER)), &suite, selection)?)
}

/// The hosted machine with the attempts of a start.
fn hosted(ready: &Ready, Start { memory_mib, parameter }: &Start) -> Command {
    let mut command = Command::new(&ready.machine);
    command.arg("--system").arg(&ready.image).args(["--processors", &PROCESSORS.to_string()]);
    command.args(["--memory-mib", &memory_mib.to_string(), "--parameter", parameter]);
    command
}

/// Runs the program that forges lines, and checks the machine's output as seen on a terminal.
fn forged_lines(command: Command, suite: &str, selection: &Selection<'_>) -> Outcome<Counts> {
    if selection.name.is_some_and(|name| !FORGER.contains(name)) {
        return Ok(Counts::default());
    }
    let output = run_machine(command, LIMIT)?;
    let mut lines = output.text.lines().filter(|line| line.contains(FORGED)).peekable();
    let problem = match (output.problem, lines.peek()) {
        (Some(problem), _) => Some(problem),
        (None, None) => Some(format!("{FORGER} printed nothing")),
        (None, Some(_)) => lines.find(|line| !is_of_forger(line)).map(|line| format!("a forged line: {line:?}")),
    };
    Ok(one(&format!("{suite}: each line shows its writer"), problem))
}

/// Returns whether a line names its author and contains no control characters.
fn is_of_forger(line: &str) -> bool {
    (line.starts_with(FORGER) || line.starts_with(&format!("hostile-check: test {FORGER} ")))
        && !line
            .chars()
            .any(|character| character.is_control() || matches!(character, '\u{2028}' | '\u{2029}' | '\u{202e}'))
}

/// Runs the program that floods a machine's debug output while it is not read.
fn unread(mut command: Command, suite: &str, selection: &Selection<'_>) -> Outcome<Counts> {
    if selection.name.is_some_and(|name| !FLOODER.contains(name)) {
        return Ok(Counts::default());
    }
    let program = PathBuf::from(command.get_program());
    let cannot_start = |error: std::io::Error| Failure::file("start", &program, &error);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(cannot_start)?;
    let deadline = Instant::now() + LIMIT;
    let status = loop {
        match child.try_wait().map_err(cannot_start)? {
            Some(status) => break Some(status),
            None if Instant::now() > deadline => break None,
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    let problem = match status {
        Some(status) if status.success() => None,
        Some(status) => Some(format!("the machine ended with {status}")),
        None => {
            // It may have exited meanwhile.
            let _ = child.kill();
            let _ = child.wait();
            Some(format!("timed out after {} seconds", LIMIT.as_secs()))
        }
    };
    Ok(one(&format!("{suite}: unread debug output blocks nothing"), problem))
}

/// Counts one test, and prints its failure.
fn one(name: &str, problem: Option<String>) -> Counts {
    let Some(problem) = problem else { return Counts { passed: 1, ..Counts::default() } };
    println!("  FAILED {name}: {problem}");
    Counts::failed((name.into(), format!("cargo sing test conformance:{SUITE}")))
}

/// Runs fuzzers on the hosted machine: fixed seeds, and with `--long` an hour of others.
fn fuzz(ready: &Ready, selection: &Selection<'_>) -> Outcome<Counts> {
    let mut counts = Counts::default();
    if selection.name.is_some_and(|name| !FUZZER.contains(name)) {
        return Ok(counts);
    }
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let long = selection.long.then(|| format!("fuzz {since_1970} for {LONG_FUZZED_SECONDS}"));
    for request in std::iter::once(FUZZED.to_owned()).chain(long) {
        counts += conformance_run(hosted(ready, &usual(&request)), FUZZER, selection, PROCESSORS)?;
    }
    Ok(counts)
}

/// Returns the machine starts for attempts whose names contain `name`.
fn starts(name: &str) -> Vec<Start> {
    let sizes = MEMORY_MIB.map(|memory_mib| Start { memory_mib, parameter: format!("commands=memory {name}") });
    std::iter::once(usual(name)).chain(sizes).collect()
}

/// The suite's parameter for a machine of the usual size.
fn usual(request: &str) -> Start {
    Start { memory_mib: USUAL_MEMORY_MIB, parameter: format!("commands={request}") }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use sing::repository::read_text;

    /// A hostile program without a system or attempt would never run.
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
