//! `sing test`: every tier of tests, one after the other, with one line of counts at the end.
//!
//! Tiers: `unit` (house rules, unit and property tests, contract fixtures and compile-fail tests, all
//! under `cargo test`), `conformance` (SIPs on the hosted machine and on bare ones), `end-to-end` (this tool as people
//! use it), `fuzzing` (only when asked for, or for long). Tests that take minutes follow those of their tier; see
//! `long`. Only what the selected tests need is built and, where that is allowed, installed. What failed is named once
//! more at the end, with the commands that run it again. Deliberately not here: the tests.

mod cargo_tests;
mod packages;

use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use crate::builder::UnsafeTests;
use crate::command_line::TestArguments;
use crate::demo_disk;
use crate::failure::{Failure, Outcome};
use crate::fuzz;
use crate::host_tools::{self, Tool};
use crate::hostile;
use crate::repository::Repository;
use crate::spelling;
use crate::systems::{self, Platform};
use crate::test_output::{Counts, FailedTest, Verdict, verdict};

use cargo_tests::CargoTests;
use packages::TestedCrate;

/// The crate of end-to-end tests; it runs after the rest, because it builds and starts systems itself.
const END_TO_END: &str = "end-to-end";
/// Parts of the crate's tests that need Linux's own file system tools have this in their names.
const NEEDS_E2FSPROGS: &str = "e2fsprogs";
/// Likewise those that need its tools for FAT; also tests outside that crate.
const NEEDS_DOSFSTOOLS: &str = "dosfstools";
/// Likewise those that need its tool for partition tables.
const NEEDS_SFDISK: &str = "sfdisk";
/// Likewise those that need clients of web servers, or a server to try our own client with.
const CLIENTS: [(&str, Tool); 8] = [
    ("curl", Tool::CURL),
    ("wget", Tool::WGET),
    ("wrk", Tool::WRK),
    ("python", Tool::PYTHON),
    ("python_requests", Tool::REQUESTS),
    ("chromium", Tool::CHROMIUM),
    ("tshark", Tool::TSHARK),
    ("dnsmasq", Tool::DNSMASQ),
];
/// Likewise those that make network namespaces.
const NEEDS_NETNS: &str = "netns";
/// Likewise those that need QEMU.
const NEEDS_QEMU: &str = "qemu";
/// Fuzz targets; unit tests replay what they begin with and found, so that they are left out of short runs.
const FUZZING: &str = "fuzzing";
/// Tests of single crates.
const UNIT: &str = "unit";
/// Suites that are SIPs.
const CONFORMANCE: &str = "conformance";
const TIERS: [&str; 4] = [UNIT, CONFORMANCE, END_TO_END, FUZZING];
/// A conformance run that takes longer has hung.
const CONFORMANCE_LIMIT: Duration = Duration::from_secs(600);
/// The suite runs on machines of these sizes.
const CONFORMANCE_PROCESSORS: [u32; 2] = [1, 2];
/// And on bare machines of these kinds and sizes; the others take longer and show little more.
const BARE_CONFORMANCE: [(&str, u32); 2] = [("microvm", 1), ("microvm", 4)];
const LONG_BARE_CONFORMANCE: [(&str, u32); 2] = [("qemu", 1), ("qemu", 4)];
/// Sockets of the host, and whatever else the machine has open, where there are to be few.
const FEW_FILES: u32 = 200;
/// One of so many requests for sockets fails, where they are to fail, and how often all is tried.
const FAILING_SOCKETS: [(u32, u32); 4] = [(7, 60), (23, 60), (61, 60), (149, 60)];
const LONG_FAILING_SOCKETS: [(u32, u32); 3] = [(31, 3000), (97, 3000), (211, 3000)];
/// What the suite says of calls that kept their processor long.
const LONGEST: &str = "longest stretch in ";
/// Memory for the ten thousand processes of the suite.
const BARE_MEMORY: &str = "1152M";
/// Memory of the machine on which memory runs out.
const SHORT_OF_MEMORY_MIB: &str = "32";
const LONG_CONFORMANCE_LIMIT: Duration = Duration::from_secs(2 * 3600);

/// What to run.
pub struct Selection<'a> {
    tier: Option<&'a str>,
    /// What is in the names of the tests that are wanted.
    pub name: Option<&'a str>,
    /// Whether tests that take minutes are wanted.
    pub long: bool,
}

impl Selection<'_> {
    fn includes(&self, tier: &str) -> bool {
        self.tier.is_none_or(|selected| selected == tier)
    }
}

/// `sing test`. Returns 1 when a test failed.
///
/// # Errors
/// No test is of the name that was given.
pub fn test(repository: &Repository, arguments: &TestArguments) -> Outcome<u8> {
    let filter = arguments.filter.as_deref();
    let (tier, name) = filter.map_or((None, None), tier_and_name);
    refuse_unknown_tier(name)?;
    let selection = Selection { tier, name, long: arguments.long };
    let mut total = Counts::default();
    if selection.includes(UNIT) {
        total += run_tier(UNIT, unit_tests(repository, &selection));
    }
    // The rest are tests of the system.
    if selection.includes(CONFORMANCE) && !repository.is_own() {
        total += run_tier(CONFORMANCE, conformance(repository, &selection));
    }
    if selection.includes(END_TO_END) && !repository.is_own() {
        total += run_tier(END_TO_END, end_to_end(repository, &selection));
    }
    if (tier == Some(FUZZING) || selection.includes(FUZZING) && selection.long) && !repository.is_own() {
        total += run_tier(FUZZING, fuzz::fuzz(repository, selection.name, selection.long));
    }
    print!("{}", total.failures_in_words());
    println!("{total}");
    refuse_unknown_name(&selection, &total)?;
    Ok(u8::from(total.failed > 0))
}

/// Whoever misspells a tier before a name is told so before anything is built; and whoever misspells a tier alone, that
/// it is taken for a part of names.
fn refuse_unknown_tier(name: Option<&str>) -> Outcome<()> {
    let Some(filter) = name else { return Ok(()) };
    // Paths of tests have two colons.
    let before_name = filter.split_once(':').filter(|(_, name)| !name.starts_with(':')).map(|(tier, _)| tier);
    let Some(meant) = diagnostics::nearest(before_name.unwrap_or(filter), TIERS) else { return Ok(()) };
    match before_name {
        Some(tier) => Err(Failure::new(format!("there is no tier `{tier}` of tests")).remedy(spelling::meant(
            tier,
            TIERS,
            String::new(),
        ))),
        None => {
            eprintln!(
                "sing: `{filter}` is no tier, so tests with it in their names are looked for; did you mean `{meant}`?"
            );
            Ok(())
        }
    }
}

/// Whoever misspells a name is not told that all is well.
fn refuse_unknown_name(selection: &Selection<'_>, total: &Counts) -> Outcome<()> {
    let Some(name) = selection.name.filter(|_| total.is_of_no_test()) else { return Ok(()) };
    let (what, remedy) = match selection.tier {
        Some(FUZZING) => {
            let targets: Vec<&str> = fuzz::targets().collect();
            let otherwise = format!("give a part of one of: {}", targets.join(", "));
            ("fuzz target", spelling::part_meant(name, targets, otherwise))
        }
        _ => {
            let otherwise = format!("check the spelling, or name a tier: {}", TIERS.join(", "));
            ("test that can run here", spelling::meant(name, TIERS, otherwise))
        }
    };
    Err(Failure::new(format!("no {what} has `{name}` in its name")).remedy(remedy))
}

/// What a filter asks for: `TIER`, `TIER:NAME`, or what is in the names of tests.
fn tier_and_name(filter: &str) -> (Option<&str>, Option<&str>) {
    let (tier, name) = filter.split_once(':').map_or((filter, None), |(tier, name)| (tier, Some(name)));
    if TIERS.contains(&tier) { (Some(tier), name) } else { (None, Some(filter)) }
}

/// A tier that cannot run counts as one failure, so that the others still run.
fn run_tier(name: &str, outcome: Outcome<Counts>) -> Counts {
    match outcome {
        Ok(counts) => {
            println!("{name}: {counts}");
            counts
        }
        Err(failure) => {
            println!("{name}: {failure}");
            Counts::failed((name.into(), format!("cargo sing test {name}")))
        }
    }
}

/// A suite of a tier that cannot run fails, so that the others still run.
pub fn suite(name: &str, outcome: Outcome<Counts>) -> Counts {
    outcome.unwrap_or_else(|failure| {
        println!("  FAILED {name}: {failure}");
        Counts::failed((name.into(), format!("cargo sing test {CONFORMANCE}")))
    })
}

/// A test that failed, by its name in a suite of a tier, with the command that runs it again.
pub fn again(tier: &str, suite: &str, name: &str) -> FailedTest {
    // Of a program that ended early it is not known which test was at fault.
    if name.is_empty() {
        return (suite.into(), format!("cargo sing test {tier}"));
    }
    let filter = format!("{tier}:{name}");
    let is_plain = filter.chars().all(|letter| letter.is_ascii_alphanumeric() || "_-:./".contains(letter));
    let filter = if is_plain { filter } else { format!("'{}'", filter.replace('\'', "'\\''")) };
    (format!("{suite}: {name}"), format!("cargo sing test {filter}"))
}

/// Counts a group of tests that cannot run here, and says why.
pub fn skipped(what: &str, why: &str) -> Counts {
    println!("skipped {what}: {why}");
    Counts { skipped: 1, groups: 1, ..Counts::default() }
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
    let needs = |mark: &str| crates.iter().any(|tested| tested.may_need(selection.name, mark));
    let left_out = without_dosfstools(needs, &mut counts);
    let tests = CargoTests { repository, tier: UNIT, metadata: &metadata, crates, tool: None, left_out };
    counts += tests.run(selection)?;
    Ok(counts)
}

/// What is in the names of tests that need Linux's tools for FAT, where those are not there.
fn without_dosfstools(needs: impl Fn(&str) -> bool, counts: &mut Counts) -> Vec<&'static str> {
    if !needs(NEEDS_DOSFSTOOLS) || host_tools::ensure(&Tool::MKFS_FAT) && host_tools::ensure(&Tool::MCOPY) {
        return Vec::new();
    }
    *counts += skipped("tests of FAT disks", "install dosfstools and mtools to run them");
    vec![NEEDS_DOSFSTOOLS]
}

fn end_to_end(repository: &Repository, selection: &Selection<'_>) -> Outcome<Counts> {
    let (all, metadata) = TestedCrate::all(repository)?;
    let mut counts = Counts::default();
    let Some(tested) = all.iter().find(|tested| tested.name == END_TO_END) else {
        return Ok(skipped(END_TO_END, "there is no crate of them"));
    };
    if selection.name.is_some_and(|name| !tested.may_have(name)) {
        return Ok(counts);
    }
    let needs = |mark: &str| tested.may_need(selection.name, mark);
    let mut left_out = without_dosfstools(needs, &mut counts);
    if needs(NEEDS_E2FSPROGS) && !host_tools::ensure(&Tool::MKE2FS) {
        counts += skipped("end-to-end tests on disks made by mke2fs", "install e2fsprogs to run them");
        left_out.push(NEEDS_E2FSPROGS);
    }
    if needs(NEEDS_SFDISK) && !host_tools::ensure(&Tool::SFDISK) {
        counts += skipped("end-to-end tests of partitions", &host_tools::remedy(&Tool::SFDISK));
        left_out.push(NEEDS_SFDISK);
    }
    for (name, tool) in CLIENTS.into_iter().filter(|(name, _)| needs(name)) {
        let is_there = match name {
            "python_requests" => host_tools::ensure_requests(),
            "chromium" => host_tools::find(tool.program).is_some(),
            _ => host_tools::ensure(&tool),
        };
        if !is_there {
            counts += skipped(&format!("end-to-end tests with {name}"), &host_tools::remedy(&tool));
            left_out.push(name);
        }
    }
    if needs(NEEDS_NETNS) && !host_tools::can_make_networks() {
        counts +=
            skipped("end-to-end tests with Linux's network stack", "run them as root, on a host with TAP interfaces");
        left_out.push(NEEDS_NETNS);
    }
    if needs(NEEDS_QEMU)
        && let Err(failure) = host_tools::require(&Tool::QEMU)
    {
        counts += skipped("end-to-end tests of bare machines", &failure.to_string());
        left_out.push(NEEDS_QEMU);
    }
    let tool = this_tool()?;
    let crates = vec![tested];
    let tests = CargoTests { repository, tier: END_TO_END, metadata: &metadata, crates, tool: Some(&tool), left_out };
    counts += tests.run(selection)?;
    Ok(counts)
}

/// The path of this tool.
///
/// # Errors
/// The host does not tell.
pub fn this_tool() -> Outcome<PathBuf> {
    std::env::current_exe().map_err(|error| Failure::new(format!("this tool cannot be found: {error}")))
}

/// Runs all suites that are SIPs; one whose system does not build does not keep the others from running.
fn conformance(repository: &Repository, selection: &Selection<'_>) -> Outcome<Counts> {
    let mut counts = suite(CONFORMANCE, hosted_conformance(repository, selection));
    let qemu = host_tools::require(&Tool::QEMU);
    counts += match &qemu {
        Ok(_) => suite("conformance on bare machines", bare_conformance(selection)),
        Err(failure) => skipped("conformance on bare machines", &failure.to_string()),
    };
    counts += suite("services-check", services_check(repository, selection));
    counts += suite("network-check", network_check(repository, selection));
    counts += suite("adversary-check", adversary_check(repository, selection));
    counts += suite("hostile", hostile::check(repository, selection, qemu.as_ref().err()));
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
            // On one processor whatever keeps it keeps everybody.
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
    Ok(counts)
}

/// Runs the same suite on machines in QEMU.
fn bare_conformance(selection: &Selection<'_>) -> Outcome<Counts> {
    let tool = this_tool()?;
    let long: &[_] = if selection.long { &LONG_BARE_CONFORMANCE } else { &[] };
    let mut counts = Counts::default();
    for (kind, processors) in BARE_CONFORMANCE.iter().chain(long) {
        let mut command = Command::new(&tool);
        command.args(["run", "--system", "conformance", "--allow-unsafe-tests", "--mem", BARE_MEMORY]);
        command.args(["--machine", kind, "--smp", &processors.to_string()]);
        if selection.long {
            command.args(["--parameter", "long=true"]);
        }
        if let Some(name) = selection.name {
            command.arg("--parameter").arg(format!("only={name}"));
        }
        counts += conformance_run(command, &format!("conformance on {kind}"), selection, *processors)?;
    }
    Ok(counts)
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

/// Runs the suite of network stacks over the host's sockets: with as many as there are, with few, and with some that
/// fail.
fn network_check(repository: &Repository, selection: &Selection<'_>) -> Outcome<Counts> {
    const SUITE: &str = "network-check";
    let manifest = repository.system_manifest(SUITE.as_ref())?;
    let ready = systems::prepare(repository, &manifest, Platform::Hosted, UnsafeTests::Refused)?;
    let machine = |mut command: Command, processors: u32, commands: &str| {
        command.arg("--system").arg(&ready.image).args(["--processors", &processors.to_string()]);
        command.arg("--parameter").arg(format!("commands={commands}"));
        command
    };
    let mut counts = Counts::default();
    for processors in CONFORMANCE_PROCESSORS {
        let command = machine(Command::new(&ready.machine), processors, selection.name.unwrap_or_default());
        counts += conformance_run(command, SUITE, selection, processors)?;
    }
    if selection.name.is_some() {
        return Ok(counts);
    }
    let processors = CONFORMANCE_PROCESSORS[1];
    let mut limited = Command::new("sh");
    limited.args(["-c", &format!("ulimit -n {FEW_FILES} && exec \"$0\" \"$@\"")]).arg(&ready.machine);
    counts += conformance_run(machine(limited, processors, "crowded"), SUITE, selection, processors)?;
    let long: &[_] = if selection.long { &LONG_FAILING_SOCKETS } else { &[] };
    for (every, rounds) in FAILING_SOCKETS.iter().chain(long) {
        let mut command = machine(Command::new(&ready.machine), processors, &format!("failing {rounds}"));
        command.args(["--failing-sockets", &every.to_string()]);
        counts += conformance_run(command, SUITE, selection, processors)?;
    }
    Ok(counts)
}

/// Runs the suite of what is refused.
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

/// One run of a suite, whose verdicts are counted.
///
/// # Errors
/// The machine cannot be started.
pub fn conformance_run(command: Command, suite: &str, selection: &Selection<'_>, processors: u32) -> Outcome<Counts> {
    let limit = if selection.long { LONG_CONFORMANCE_LIMIT } else { CONFORMANCE_LIMIT };
    let output = run_machine(command, limit)?;
    let mut counts = Counts::default();
    for line in output.text.lines() {
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
    if let Some(problem) = output.problem.filter(|_| counts.failed == 0) {
        println!("{}", last_lines(&output.text, 20));
        println!("  FAILED {suite}: {problem}");
        counts += Counts::failed(again(CONFORMANCE, suite, selection.name.unwrap_or_default()));
    } else if counts == Counts::default() && selection.name.is_none() {
        println!("  FAILED {suite}: the runner printed no verdict");
        counts += Counts::failed(again(CONFORMANCE, suite, ""));
    }
    Ok(counts)
}

/// What a machine printed, and what was wrong with its end.
pub struct MachineOutput {
    /// Its standard output and debug output.
    pub text: String,
    /// None when it ended with status 0 in time.
    pub problem: Option<String>,
}

/// Runs a machine, or whatever else is measured or tested, to its end, or ends it when it takes longer than `limit`.
///
/// # Errors
/// It cannot be started.
pub fn run_machine(mut command: Command, limit: Duration) -> Outcome<MachineOutput> {
    let program = PathBuf::from(command.get_program());
    let cannot_start = |error: std::io::Error| Failure::file("start", &program, &error);
    // The debug output, on which a suite without a console prints, and standard output are one stream.
    let (output, input) = std::io::pipe().map_err(cannot_start)?;
    let errors = input.try_clone().map_err(cannot_start)?;
    let mut child = command.stdin(Stdio::null()).stdout(input).stderr(errors).spawn().map_err(cannot_start)?;
    // The command holds the writing ends too; with them the stream would never end.
    drop(command);
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let mut output = output;
        // What was read before a failure still counts.
        let _ = output.read_to_end(&mut bytes);
        let _ = sender.send(bytes);
    });
    let bytes = match receiver.recv_timeout(limit) {
        Ok(bytes) => bytes,
        Err(_) => {
            // It may have ended by itself in the meantime.
            let _ = child.kill();
            let _ = child.wait();
            let text = receiver.recv().map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
            return Ok(MachineOutput { text, problem: Some(format!("no end after {} seconds", limit.as_secs())) });
        }
    };
    let status = child.wait().map_err(cannot_start)?;
    let problem = (!status.success()).then(|| format!("{} ended with {status}", program.display()));
    Ok(MachineOutput { text: String::from_utf8_lossy(&bytes).into_owned(), problem })
}

fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_a_tier_or_a_name_or_both() {
        for (filter, tier, name) in [
            ("unit", Some("unit"), None),
            ("fuzzing:ext2", Some("fuzzing"), Some("ext2")),
            ("web_curl", None, Some("web_curl")),
            ("web_curl::ranges", None, Some("web_curl::ranges")),
            ("units", None, Some("units")),
        ] {
            assert_eq!(tier_and_name(filter), (tier, name), "{filter}");
        }
    }

    #[test]
    fn a_mistyped_tier_is_told_before_anything_is_built() {
        for (filter, told) in [
            ("unti:manifest", Some("there is no tier `unti` of tests; did you mean `unit`?")),
            ("fuzzign:package", Some("there is no tier `fuzzign` of tests; did you mean `fuzzing`?")),
            // These may be names.
            ("unti", None),
            ("units::tests", None),
            ("web_curl::ranges", None),
            ("hole: in a file", None),
        ] {
            let (tier, name) = tier_and_name(filter);
            assert_eq!(tier, None, "{filter}");
            assert_eq!(refuse_unknown_tier(name).err().map(|failure| failure.to_string()).as_deref(), told, "{filter}");
        }
        assert_eq!(refuse_unknown_tier(None), Ok(()));
    }

    #[test]
    fn a_name_that_no_test_has_is_no_success() {
        let none = Counts { skipped: 2, groups: 2, ..Counts::default() };
        let selection = |tier, name| Selection { tier, name, long: false };
        let refused = refuse_unknown_name(&selection(None, Some("certificats")), &none).expect_err("it has none");
        assert!(refused.to_string().contains("no test that can run here has `certificats` in its name"), "{refused}");
        assert_ne!(refused.status(), 0);
        let refused = refuse_unknown_name(&selection(Some(FUZZING), Some("pakage")), &none).expect_err("it has none");
        let text = refused.to_string();
        assert_eq!(text, "no fuzz target has `pakage` in its name; did you mean `package`?");
        let refused = refuse_unknown_name(&selection(Some(FUZZING), Some("x")), &none).expect_err("it has none");
        assert!(refused.to_string().contains("give a part of one of: automaton, "), "{refused}");
        // All of a tier, and tests that there are.
        assert_eq!(refuse_unknown_name(&selection(Some(FUZZING), None), &none), Ok(()));
        for found in [Counts { passed: 1, ..none.clone() }, Counts { skipped: 3, ..none }] {
            assert_eq!(refuse_unknown_name(&selection(None, Some("certificates")), &found), Ok(()));
        }
    }

    #[test]
    fn the_command_that_runs_a_failed_test_again_selects_it() {
        for (tier, name, command) in [
            (UNIT, "check::flow::a", "cargo sing test unit:check::flow::a"),
            (CONFORMANCE, "hole: it's gone", "cargo sing test 'conformance:hole: it'\\''s gone'"),
            (END_TO_END, "", "cargo sing test end-to-end"),
        ] {
            assert_eq!(again(tier, "suite", name).1, command);
        }
        assert_eq!(tier_and_name("unit:check::flow::a"), (Some("unit"), Some("check::flow::a")));
        assert_eq!(again(UNIT, "lang src/lib.rs", "a").0, "lang src/lib.rs: a");
    }

    #[test]
    fn a_suite_that_cannot_run_is_one_failure_with_its_reason() {
        let counts = suite("network-check", Err(Failure::new("programs did not build")));
        assert_eq!((counts.failed, counts.failures.len()), (1, 1));
        assert_eq!(suite("network-check", Ok(Counts::default())), Counts::default());
    }

    #[test]
    fn what_cannot_be_started_is_named() {
        let failure =
            run_machine(Command::new("/no/such/fuzzer"), Duration::from_secs(5)).err().expect("there is none");
        assert!(failure.to_string().starts_with("cannot start /no/such/fuzzer: "), "{failure}");
        let output = run_machine(Command::new("false"), Duration::from_secs(60)).expect("it can be started");
        assert!(output.problem.is_some_and(|problem| problem.starts_with("false ended with ")));
    }
}
