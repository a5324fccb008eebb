//! The conformance suite's kills, a thousand in each ABI function and in copies of each size, in every configuration of
//! hardware domains.
//!
//! The suite itself kills a few in each run. Deliberately not here: the kills, which are the suite's.

use std::process::Command;

use sing::builder::UnsafeTests;
use sing::domains::{self, Configuration};
use sing::failure::{Failure, Outcome};
use sing::repository::Repository;
use sing::systems::{self, Platform};
use sing::test::{CONFORMANCE, Selection, skipped};
use sing::test_output::Counts;

use crate::test::{BARE_MEMORY, conformance_run, this_tool};

/// Name of the suite.
pub const SUITE: &str = "kills";
/// Part of the tests' names.
const TESTS: &str = "killed in";
/// Kills of each function and each kind of copy. On one processor the killer runs when a quantum of its victim is over.
const KILLS: u32 = 1000;
const KILLS_ON_ONE: u32 = 100;

const HOSTED: [(u32, Configuration); 3] =
    [(2, Configuration::SipPhys), (2, Configuration::HipR3), (2, Configuration::HipR3S)];
const BARE: [(u32, Configuration, u32); 8] = [
    (4, Configuration::SipPhys, KILLS),
    (4, Configuration::SipPage, KILLS),
    (4, Configuration::HipR0, KILLS),
    (4, Configuration::HipR0S, KILLS),
    (4, Configuration::HipR3, KILLS),
    (4, Configuration::HipR3S, KILLS),
    (1, Configuration::SipPhys, KILLS_ON_ONE),
    (1, Configuration::HipR3S, KILLS_ON_ONE),
];

/// Runs them all, or those with the selected name.
///
/// # Errors
/// A machine cannot be started.
pub fn check(repository: &Repository, selection: &Selection<'_>, no_qemu: Option<&Failure>) -> Outcome<Counts> {
    let only = selection.name.unwrap_or(TESTS);
    if !only.contains(TESTS) {
        return Ok(Counts::default());
    }
    let mut counts = Counts::default();
    let manifest = repository.system_manifest(CONFORMANCE.as_ref())?;
    for (processors, configuration) in HOSTED {
        let manifest = domains::system_in(repository, &manifest, configuration)?;
        let ready = systems::prepare(repository, &manifest, Platform::Hosted, UnsafeTests::Allowed)?;
        let mut command = Command::new(&ready.machine);
        command.arg("--system").arg(&ready.image).args(["--processors", &processors.to_string()]);
        command.arg("--simulated-device");
        counts += run(command, selection, (processors, configuration), KILLS, "the hosted machine")?;
    }
    if let Some(failure) = no_qemu {
        return Ok(counts + skipped("kills on bare machines", &failure.to_string()));
    }
    for (processors, configuration, kills) in BARE {
        let mut command = Command::new(this_tool()?);
        command.args(["run", "--system", CONFORMANCE, "--allow-unsafe-tests", "--mem", BARE_MEMORY]);
        command.args(["--machine", "microvm", "--smp", &processors.to_string(), "--domains", configuration.word()]);
        counts += run(command, selection, (processors, configuration), kills, "microvm")?;
    }
    Ok(counts)
}

fn run(
    mut command: Command,
    selection: &Selection<'_>,
    (processors, configuration): (u32, Configuration),
    kills: u32,
    machine: &str,
) -> Outcome<Counts> {
    command.arg("--parameter").arg(format!("kills={kills}"));
    command.arg("--parameter").arg(format!("only={}", selection.name.unwrap_or(TESTS)));
    let suite = format!("{SUITE} on {machine} with --domains {}", configuration.word());
    let begun = std::time::Instant::now();
    let counts = conformance_run(command, &suite, selection, processors)?;
    println!("  {suite}: {kills} of each with {processors} processors in {} s", begun.elapsed().as_secs());
    Ok(counts)
}
