//! `cargo sing test` in a clone: runs every tier of tests in turn and prints one line of counts at the end.
//!
//! Tiers: `unit` (house rules, unit and property tests, contract fixtures and compile-fail tests, all under `cargo
//! test`), `conformance` (SIPs on the hosted machine and on bare ones), `end-to-end` (the tool as users run it),
//! `fuzzing` (only if named, or with `--long`). Long tests follow those of their tier. Only the requirements of the
//! selected tests are built and, where permitted, installed. Deliberately not here: the tests.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use sing::builder::UnsafeTests;
use sing::command_line::TestArguments;
use sing::demo_disk;
use sing::domains::{self, Configuration};
use sing::failure::{Failure, Outcome};
use sing::host_tools::{self, Tool};
use sing::process::run_machine;
use sing::repository::Repository;
use sing::spelling;
use sing::systems::{self, Platform};
use sing::test::cargo_tests::CargoTests;
use sing::test::packages::TestedCrate;
use sing::test::{self, CONFORMANCE, END_TO_END, FUZZING, Selection, UNIT, again, run_tier, skipped};
use sing::test_output::{self, Counts, Verdict, took, verdict};
use sing::tool;

use crate::{fuzz, hostile, kills, needs, wasm_spec};

/// Timeout of a conformance run.
const CONFORMANCE_LIMIT: Duration = Duration::from_secs(600);
/// Processors of the hosted machines that the suite runs on.
const CONFORMANCE_PROCESSORS: [u32; 2] = [1, 2];
/// Kinds and processors of the bare machines; the others, slower and little more revealing, run with `--long`.
const BARE_CONFORMANCE: [(&str, u32); 2] = [("microvm", 1), ("microvm", 4)];
const LONG_BARE_CONFORMANCE: [(&str, u32); 2] = [("qemu", 1), ("qemu", 4)];
/// The same in other configurations of hardware domains: kind, processors, configuration.
const DOMAINS_CONFORMANCE: [(&str, u32, &str); 1] = [("microvm", 4, "hip-r3-s")];
const LONG_DOMAINS_CONFORMANCE: [(&str, u32, &str); 11] = [
    ("microvm", 1, "hip-r3-s"),
    ("qemu", 4, "hip-r3-s"),
    ("qemu", 2, "hip-r3"),
    ("microvm", 1, "hip-r3"),
    ("microvm", 4, "hip-r3"),
    ("microvm", 1, "hip-r0-s"),
    ("microvm", 4, "hip-r0-s"),
    ("microvm", 1, "hip-r0"),
    ("microvm", 4, "hip-r0"),
    ("microvm", 1, "sip-page"),
    ("microvm", 4, "sip-page"),
];
/// Those whose domains hold against any code, which the suite then tries.
const UNPRIVILEGED: &str = "hip-r3";
/// Those in which each process has a domain of its own.
const EACH: &str = "-s";
/// The same on the hosted machine: processors, configuration.
const HOSTED_DOMAINS_CONFORMANCE: [(u32, Configuration); 1] = [(2, Configuration::HipR3S)];
const LONG_HOSTED_DOMAINS_CONFORMANCE: [(u32, Configuration); 2] =
    [(1, Configuration::HipR3S), (2, Configuration::HipR3)];
/// File descriptor limit of the run with few host sockets.
const FEW_FILES: u32 = 200;
/// Fault injection: one in N socket requests fails; and the number of rounds.
const FAILING_SOCKETS: [(u32, u32); 4] = [(7, 60), (23, 60), (61, 60), (149, 60)];
const LONG_FAILING_SOCKETS: [(u32, u32); 3] = [(31, 3000), (97, 3000), (211, 3000)];
/// Marks the suite's lines about the longest kernel calls.
const LONGEST: &str = "longest stretch in ";
/// Memory for the ten thousand processes and twenty thousand threads of the suite.
pub const BARE_MEMORY: &str = "1536M";
/// Memory of the machine that runs out of it.
const SHORT_OF_MEMORY_MIB: &str = "32";
const LONG_CONFORMANCE_LIMIT: Duration = Duration::from_secs(2 * 3600);

/// `cargo sing test`. Returns 1 when a test failed.
///
/// # Errors
/// No test matches the given name.
pub fn test(repository: &Repository, arguments: &TestArguments) -> Outcome<u8> {
    let selection = Selection::read(arguments)?;
    let mut total = Counts::default();
    if selection.includes(UNIT) {
        total += run_tier(UNIT, || unit_tests(repository, &selection));
    }
    if selection.includes(CONFORMANCE) {
        total += run_tier(CONFORMANCE, || conformance(repository, &selection));
    }
    if selection.includes(END_TO_END) {
        total += run_tier(END_TO_END, || end_to_end(repository, &selection));
    }
    if selection.tier == Some(FUZZING) || selection.includes(FUZZING) && selection.long {
        total += run_tier(FUZZING, || fuzz::fuzz(repository, selection.name, selection.long));
    }
    test::print_total(&total);
    refuse_unknown_name(&selection, &total)?;
    Ok(u8::from(total.failed > 0))
}

/// Lists the fuzz targets if none matches the given name.
fn refuse_unknown_name(selection: &Selection<'_>, total: &Counts) -> Outcome<()> {
    let Some(name) = selection.name.filter(|_| selection.tier == Some(FUZZING) && total.is_of_no_test()) else {
        return test::refuse_unknown_name(selection, total);
    };
    let targets: Vec<&str> = fuzz::targets().collect();
    let otherwise = format!("use a part of one of: {}", targets.join(", "));
    Err(Failure::new(format!("no fuzz target name contains `{name}`"))
        .remedy(spelling::part_meant(name, targets, otherwise)))
}

/// Counts a suite that cannot run as one failure, so that the others still run.
pub fn suite(name: &str, outcome: Outcome<Counts>) -> Counts {
    outcome.unwrap_or_else(|failure| {
        println!("  FAILED {name}: {failure}");
        Counts::failed((name.into(), format!("cargo sing test {CONFORMANCE}")))
    })
}

fn unit_tests(repository: &Repository, selection: &Selection<'_>) -> Outcome<Counts> {
    let (all, metadata) = TestedCrate::all(repository)?;
    let wanted =
        |tested: &&TestedCrate| tested.name != END_TO_END && selection.name.is_none_or(|name| tested.may_have(name));
    let crates: Vec<&TestedCrate> = all.iter().filter(wanted).collect();
    let mut counts = Counts::default();
    if crates.is_empty() {
        return Ok(counts);
    }
    let left_out = needs::left_out(&crates, selection, &mut counts)?;
    let tests = CargoTests { repository, tier: UNIT, metadata: &metadata, crates, tool: None, left_out };
    counts += tests.run(selection)?;
    Ok(counts)
}

fn end_to_end(repository: &Repository, selection: &Selection<'_>) -> Outcome<Counts> {
    let (all, metadata) = TestedCrate::all(repository)?;
    let mut counts = Counts::default();
    let Some(tested) = all.iter().find(|tested| tested.name == END_TO_END) else {
        return Ok(skipped(END_TO_END, "no such crate"));
    };
    if selection.name.is_some_and(|name| !tested.may_have(name)) {
        return Ok(counts);
    }
    let tool = this_tool()?;
    let crates = vec![tested];
    let left_out = needs::left_out(&crates, selection, &mut counts)?;
    let tests = CargoTests { repository, tier: END_TO_END, metadata: &metadata, crates, tool: Some(&tool), left_out };
    counts += tests.run(selection)?;
    Ok(counts)
}

/// Returns the path of `sing`.
///
/// # Errors
/// It cannot be determined.
pub fn this_tool() -> Outcome<PathBuf> {
    tool::path().map_err(|error| Failure::new(format!("cannot find sing: {error}")))
}

/// Runs all suites of SIPs, those on bare machines beside the others; one that does not build does not stop the rest.
fn conformance(repository: &Repository, selection: &Selection<'_>) -> Outcome<Counts> {
    const BARE: &str = "conformance on bare machines";
    let qemu = host_tools::require(&Tool::QEMU);
    // Machines of both kinds wait a lot: for each other's threads, for timers, for the emulator.
    let (mut counts, bare) = std::thread::scope(|scope| {
        let bare = scope.spawn(|| match &qemu {
            Ok(_) => suite(BARE, bare_conformance(selection)),
            Err(failure) => skipped(BARE, &failure.to_string()),
        });
        let mut counts = suite(CONFORMANCE, hosted_conformance(repository, selection));
        counts += suite("services-check", services_check(repository, selection));
        counts += suite("network-check", network_check(repository, selection));
        counts += suite("adversary-check", adversary_check(repository, selection));
        counts += suite("hostile", hostile::check(repository, selection, qemu.as_ref().err()));
        counts += suite("wasm", wasm_spec::check(repository, selection, qemu.as_ref().err()));
        (counts, bare.join().unwrap_or_else(|_| suite(BARE, Err(Failure::new("the tests panicked")))))
    });
    counts += bare;
    if selection.long {
        counts += suite(kills::SUITE, kills::check(repository, selection, qemu.as_ref().err()));
    }
    Ok(counts)
}

/// Runs the conformance system: its primary program prints a verdict for each test.
fn hosted_conformance(repository: &Repository, selection: &Selection<'_>) -> Outcome<Counts> {
    let manifest = repository.system_manifest("conformance".as_ref())?;
    let ready = systems::prepare(repository, &manifest, Platform::Hosted, UnsafeTests::Allowed)?;
    let mut counts = Counts::default();
    for processors in CONFORMANCE_PROCESSORS {
        let mut command = Command::new(&ready.machine);
        command.arg("--system").arg(&ready.image).args(["--processors", &processors.to_string()]);
        command.arg("--simulated-device");
        if processors == 1 {
            // On one processor a long call delays every thread.
            command.args(["--parameter", "measure-calls=1"]);
        }
        if selection.long {
            command.args(["--parameter", "long=true"]);
        }
        if let Some(name) = selection.name {
            command.arg("--parameter").arg(format!("only={name}"));
        }
        counts += conformance_run(command, CONFORMANCE, selection, processors)?;
        let mut command = Command::new(&ready.machine);
        command.arg("--system").arg(&ready.image).args(["--processors", &processors.to_string()]);
        command.args(["--memory-mib", SHORT_OF_MEMORY_MIB, "--parameter", "short-of-memory=true"]);
        if let Some(name) = selection.name {
            command.arg("--parameter").arg(format!("only={name}"));
        }
        counts += conformance_run(command, CONFORMANCE, selection, processors)?;
    }
    let long: &[_] = if selection.long { &LONG_HOSTED_DOMAINS_CONFORMANCE } else { &[] };
    for &(processors, configuration) in HOSTED_DOMAINS_CONFORMANCE.iter().chain(long) {
        let manifest = domains::system_in(repository, &manifest, configuration)?;
        let ready = systems::prepare(repository, &manifest, Platform::Hosted, UnsafeTests::Allowed)?;
        let mut command = Command::new(&ready.machine);
        command.arg("--system").arg(&ready.image).args(["--processors", &processors.to_string()]);
        command.arg("--simulated-device");
        tell_domains(&mut command, configuration.word());
        if let Some(name) = selection.name {
            command.arg("--parameter").arg(format!("only={name}"));
        }
        let suite = format!("{CONFORMANCE} with --domains {}", configuration.word());
        counts += conformance_run(command, &suite, selection, processors)?;
    }
    Ok(counts)
}

/// Runs the conformance suite on machines in QEMU.
fn bare_conformance(selection: &Selection<'_>) -> Outcome<Counts> {
    let tool = this_tool()?;
    let long: &[_] = if selection.long { &LONG_BARE_CONFORMANCE } else { &[] };
    let mut counts = Counts::default();
    let run = |kind: &str, processors: u32| {
        let mut command = Command::new(&tool);
        command.args(["run", "--system", "conformance", "--allow-unsafe-tests", "--mem", BARE_MEMORY]);
        command.args(["--machine", kind, "--smp", &processors.to_string()]);
        if let Some(name) = selection.name {
            command.arg("--parameter").arg(format!("only={name}"));
        }
        command
    };
    for (kind, processors) in BARE_CONFORMANCE.iter().chain(long) {
        let mut command = run(kind, *processors);
        if selection.long {
            command.args(["--parameter", "long=true"]);
        }
        counts += conformance_run(command, &format!("conformance on {kind}"), selection, *processors)?;
    }
    let long: &[_] = if selection.long { &LONG_DOMAINS_CONFORMANCE } else { &[] };
    for (kind, processors, domains) in DOMAINS_CONFORMANCE.iter().chain(long) {
        let mut command = run(kind, *processors);
        command.args(["--domains", domains]);
        tell_domains(&mut command, domains);
        let suite = format!("conformance on {kind} with --domains {domains}");
        counts += conformance_run(command, &suite, selection, *processors)?;
    }
    Ok(counts)
}

/// Parameters that tell the suite what the configuration of domains is.
fn tell_domains(command: &mut Command, configuration: &str) {
    if configuration.starts_with(UNPRIVILEGED) {
        command.args(["--parameter", "domains=true"]);
    }
    if configuration.ends_with(EACH) {
        command.args(["--parameter", "own-domains=true"]);
    }
}

/// Runs the suite of the directory service and the service manager, with a disk.
fn services_check(repository: &Repository, selection: &Selection<'_>) -> Outcome<Counts> {
    let manifest = repository.system_manifest("services-check".as_ref())?;
    let ready = systems::prepare(repository, &manifest, Platform::Hosted, UnsafeTests::Refused)?;
    let mut disk = demo_disk::path(repository)?.into_os_string();
    disk.push(":ro");
    let mut counts = Counts::default();
    for processors in CONFORMANCE_PROCESSORS {
        let mut command = Command::new(&ready.machine);
        command.arg("--system").arg(&ready.image).args(["--processors", &processors.to_string()]);
        command.arg("--disk").arg(&disk);
        if let Some(name) = selection.name {
            command.arg("--parameter").arg(format!("commands={name}"));
        }
        counts += conformance_run(command, "services-check", selection, processors)?;
    }
    Ok(counts)
}

/// Runs the network suite over the stack of this system, then over the host's sockets: without limits, with few
/// descriptors, and with injected failures.
fn network_check(repository: &Repository, selection: &Selection<'_>) -> Outcome<Counts> {
    const SUITE: &str = "network-check";
    const OWN_STACK: &str = "network-check-stack";
    let manifest = repository.system_manifest(SUITE.as_ref())?;
    let ready = systems::prepare(repository, &manifest, Platform::Hosted, UnsafeTests::Refused)?;
    let machine = |ready: &systems::Ready, mut command: Command, processors: u32, commands: &str| {
        command.arg("--system").arg(&ready.image).args(["--processors", &processors.to_string()]);
        command.arg("--parameter").arg(format!("commands={commands}"));
        command
    };
    let own_stack = repository.system_manifest(OWN_STACK.as_ref())?;
    let own_stack = systems::prepare(repository, &own_stack, Platform::Hosted, UnsafeTests::Refused)?;
    let mut counts = Counts::default();
    for (suite, ready) in [(OWN_STACK, &own_stack), (SUITE, &ready)] {
        for processors in CONFORMANCE_PROCESSORS {
            let command = machine(ready, Command::new(&ready.machine), processors, selection.name.unwrap_or_default());
            counts += conformance_run(command, suite, selection, processors)?;
        }
    }
    if selection.name.is_some() {
        return Ok(counts);
    }
    let processors = CONFORMANCE_PROCESSORS[1];
    let mut limited = Command::new("sh");
    limited.args(["-c", &format!("ulimit -n {FEW_FILES} && exec \"$0\" \"$@\"")]).arg(&ready.machine);
    counts += conformance_run(machine(&ready, limited, processors, "crowded"), SUITE, selection, processors)?;
    let long: &[_] = if selection.long { &LONG_FAILING_SOCKETS } else { &[] };
    for (every, rounds) in FAILING_SOCKETS.iter().chain(long) {
        let mut command = machine(&ready, Command::new(&ready.machine), processors, &format!("failing {rounds}"));
        command.args(["--failing-sockets", &every.to_string()]);
        counts += conformance_run(command, SUITE, selection, processors)?;
    }
    Ok(counts)
}

/// Runs the suite of refused operations.
fn adversary_check(repository: &Repository, selection: &Selection<'_>) -> Outcome<Counts> {
    const SUITE: &str = "adversary-check";
    let manifest = repository.system_manifest(SUITE.as_ref())?;
    let ready = systems::prepare(repository, &manifest, Platform::Hosted, UnsafeTests::Refused)?;
    let mut counts = Counts::default();
    for processors in CONFORMANCE_PROCESSORS {
        let mut command = Command::new(&ready.machine);
        command.arg("--system").arg(&ready.image).args(["--processors", &processors.to_string()]);
        command.arg("--parameter").arg(format!("commands={}", selection.name.unwrap_or_default()));
        counts += conformance_run(command, SUITE, selection, processors)?;
    }
    Ok(counts)
}

/// Runs a suite once and counts its verdicts.
///
/// # Errors
/// The machine cannot be started.
pub fn conformance_run(command: Command, suite: &str, selection: &Selection<'_>, processors: u32) -> Outcome<Counts> {
    let limit = if selection.long { LONG_CONFORMANCE_LIMIT } else { CONFORMANCE_LIMIT };
    let began = Instant::now();
    let output = run_machine(command, limit)?;
    let mut counts = Counts::default();
    let mut sum = None;
    for line in output.text.lines() {
        sum = test_output::sum(line).or(sum);
        match verdict(line) {
            Some(Verdict::Passed(_)) => counts.passed += 1,
            Some(Verdict::Failed(name, why)) => {
                println!("  FAILED {suite}: {name} with {processors} processors: {why}");
                counts += Counts::failed(again(CONFORMANCE, suite, name));
            }
            Some(Verdict::Skipped(name, why)) => {
                println!("  skipped {name}: {why}");
                counts.skipped += 1;
            }
            None if line.contains(LONGEST) => println!("  {line}"),
            None => {}
        }
    }
    if let Some((passed, failed)) = sum {
        add_dropped(&mut counts, suite, passed, failed);
    }
    if let Some(problem) = output.problem.filter(|_| counts.failed == 0) {
        println!("{}", last_lines(&output.text, 20));
        println!("  FAILED {suite}: {problem}");
        counts += Counts::failed(again(CONFORMANCE, suite, selection.name.unwrap_or_default()));
    } else if counts == Counts::default() && selection.name.is_none() {
        println!("  FAILED {suite}: the runner printed no verdict");
        counts += Counts::failed(again(CONFORMANCE, suite, ""));
    }
    if selection.name.is_none() {
        println!("  {suite} with {processors} processors: {counts}{}", took(began));
    }
    Ok(counts)
}

/// Adds tests whose verdicts the machine dropped, by the suite's own sum.
fn add_dropped(counts: &mut Counts, suite: &str, passed: u64, failed: u64) {
    let dropped = passed.saturating_sub(counts.passed);
    if dropped > 0 {
        println!("  {suite}: {dropped} passed without a line: the machine dropped debug output");
        counts.passed = passed;
    }
    for _ in counts.failed..failed {
        println!("  FAILED {suite}: a test whose line the machine dropped");
        *counts += Counts::failed(again(CONFORMANCE, suite, ""));
    }
}

fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_no_target_has_is_no_success() {
        let none = Counts { skipped: 2, groups: 2, ..Counts::default() };
        let selection = |tier, name| Selection { tier, name, long: false };
        let refused = refuse_unknown_name(&selection(Some(FUZZING), Some("pakage")), &none).expect_err("it has none");
        let text = refused.to_string();
        assert_eq!(text, "no fuzz target name contains `pakage`; did you mean `package`?");
        let refused = refuse_unknown_name(&selection(Some(FUZZING), Some("x")), &none).expect_err("it has none");
        let all = fuzz::targets().collect::<Vec<_>>().join(", ");
        assert_eq!(refused.to_string(), format!("no fuzz target name contains `x`; use a part of one of: {all}."));
        assert_eq!(refuse_unknown_name(&selection(Some(FUZZING), None), &none), Ok(()));
        assert!(refuse_unknown_name(&selection(None, Some("certificats")), &none).is_err());
    }

    #[test]
    fn verdicts_that_were_dropped_are_counted_by_the_suites_sum() {
        let mut counts = Counts { passed: 3, ..Counts::failed(("a".into(), "b".into())) };
        add_dropped(&mut counts, "hostile", 3, 1);
        assert_eq!((counts.passed, counts.failed), (3, 1));
        add_dropped(&mut counts, "hostile", 5, 2);
        assert_eq!((counts.passed, counts.failed, counts.failures.len()), (5, 2, 2));
    }

    #[test]
    fn a_suite_that_cannot_run_is_one_failure_with_its_reason() {
        let counts = suite("network-check", Err(Failure::new("programs did not build")));
        assert_eq!((counts.failed, counts.failures.len()), (1, 1));
        assert_eq!(suite("network-check", Ok(Counts::default())), Counts::default());
    }
}
