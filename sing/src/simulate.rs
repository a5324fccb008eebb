//! `sing simulate`: runs a system on the simulated machine, once or for many seeds, and looks for runs that go wrong.
//!
//! A seed decides all that is open in a run: who goes on when, what fails, how long disks take. Its line has the hash of
//! everything that happened. A failing seed is printed as the command that repeats it, with as few faults as it needs
//! (`shrink`). Neighbours: `machine` (one run), `workload` (what runs for a seed, and its judgement). docs/simulation.md has
//! the whole picture. Deliberately not here: what a fault does, which is the machine's.

pub mod arguments;
mod dhcp;
mod ext2;
mod files;
mod frames;
mod installs;
mod kernel;
mod kills;
mod link;
pub mod machine;
mod network;
mod random;
mod shrink;
mod workload;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;

use package_build::Signer;

use crate::builder::UnsafeTests;
use crate::demo_disk;
use crate::failure::Outcome;
use crate::repository::Repository;
use crate::systems::{self, Platform, Ready};

use arguments::{SimulateArguments, WorkloadName};
use machine::{Case, DiskContent, End, Faults, Report, Run};
use workload::{Seen, Task};

/// The root of the system, without which it ends; the directory service, likewise; and the shell with the commands.
pub const SPARED: [&str; 3] = ["service-manager", "directory", "shell"];
/// Maximum failing seeds for which fewer faults are looked for.
const MAX_SHRUNK: usize = 3;
/// Makes the seed of the other machine at a link another one.
const OTHER_MACHINE: u64 = 1 << 40;
/// Faults after which a command of the shell may fail.
const HARMFUL: [&str; 6] = ["read-error", "write-error", "kill", "kill-call", "memory", "cut"];

/// What all runs have in common.
struct Simulation<'a> {
    ready: Ready,
    arguments: &'a SimulateArguments,
    disks: Vec<DiskContent>,
    signer: Signer,
}

/// What came of a seed.
struct Judged {
    seed: u64,
    run: Run,
    /// What is wrong.
    finding: Option<String>,
}

/// `sing simulate`. Returns 1 if a run went wrong.
///
/// # Errors
/// The system does not build, or the machine cannot be started.
pub fn simulate(repository: &Repository, arguments: &SimulateArguments) -> Outcome<u8> {
    let of_workload = arguments.workload.map(WorkloadName::system);
    let system = of_workload.or(arguments.system.as_deref()).unwrap_or(Path::new(systems::HOSTED));
    let manifest = repository.system_manifest(system)?;
    let unsafe_tests = arguments.workload.map_or(UnsafeTests::Refused, WorkloadName::unsafe_tests);
    let ready = systems::current(repository, &manifest, Platform::Simulated, unsafe_tests)?;
    let disks = match (&arguments.disk[..], arguments.workload) {
        (_, Some(_)) => Vec::new(),
        ([], None) => vec![DiskContent::File(demo_disk::path(repository)?)],
        (disks, None) => disks.iter().cloned().map(DiskContent::File).collect(),
    };
    let simulation = Simulation { ready, arguments, disks, signer: systems::signer(repository)? };
    let failed = simulation.run_all()?;
    for judged in failed.iter().take(MAX_SHRUNK) {
        simulation.report_failure(judged)?;
    }
    for judged in failed.iter().skip(MAX_SHRUNK) {
        println!("repeat: {}", simulation.command(judged.seed, &simulation.faults()));
    }
    Ok(u8::from(!failed.is_empty()))
}

impl Simulation<'_> {
    /// Runs all seeds, as many at once as the host has processors, and prints their lines in order; returns what failed.
    fn run_all(&self) -> Outcome<Vec<Judged>> {
        let seeds = self.arguments.seeds();
        let next = AtomicU64::new(seeds.start);
        let jobs = std::thread::available_parallelism().map_or(1, usize::from);
        let (sender, receiver) = mpsc::channel();
        let mut failed = Vec::new();
        std::thread::scope(|scope| {
            for _ in 0..jobs {
                let sender = sender.clone();
                let (next, end) = (&next, seeds.end);
                scope.spawn(move || {
                    loop {
                        let seed = next.fetch_add(1, Ordering::Relaxed);
                        // The receiver is gone after a failure.
                        if seed >= end || sender.send(self.judge(seed, &self.faults())).is_err() {
                            return;
                        }
                    }
                });
            }
            drop(sender);
            let mut waiting = BTreeMap::new();
            let mut printed = seeds.start;
            for judged in receiver {
                let judged = judged?;
                waiting.insert(judged.seed, judged);
                while let Some(judged) = waiting.remove(&printed) {
                    printed += 1;
                    self.print(&judged);
                    failed.extend(Some(judged).filter(|judged| judged.finding.is_some()));
                    if self.arguments.first && !failed.is_empty() {
                        next.store(seeds.end, Ordering::Relaxed);
                        return Ok(failed);
                    }
                }
            }
            Ok(failed)
        })
    }

    /// Returns the faults that the command line or the workload wants.
    fn faults(&self) -> Faults {
        let usual = self.arguments.workload.map_or("harmless", WorkloadName::faults);
        match (&self.arguments.exactly[..], &self.arguments.faults) {
            ([], Some(kinds)) => Faults::Kinds(kinds.clone()),
            ([], None) => Faults::Kinds(usual.to_owned()),
            (faults, _) => Faults::Exactly(faults.to_vec()),
        }
    }

    fn case(&self, seed: u64, faults: &Faults) -> Case {
        let spared: Vec<String> = match &self.arguments.spare[..] {
            [] => SPARED.map(str::to_owned).into(),
            spared => spared.to_vec(),
        };
        Case {
            seed,
            processors: self.arguments.processors(seed),
            faults: faults.clone(),
            parameters: self.arguments.commands.iter().map(|text| ("commands", text.clone())).collect(),
            disks: self.disks.clone(),
            spared,
            calm_after_s: None,
            keeps_disks: self.arguments.workload.is_some(),
            trace: self.arguments.trace.clone(),
        }
    }

    /// Runs a seed with these faults and judges it.
    fn judge(&self, seed: u64, faults: &Faults) -> Outcome<Judged> {
        let case = self.case(seed, faults);
        if let Some(workload) = self.arguments.workload {
            let (run, finding) = self.judge_task(&workload.task(seed, &self.signer), case)?;
            return Ok(Judged { seed, run, finding });
        }
        let run = machine::run(&self.ready, &case)?;
        let finding = machine_level(&run).or_else(|| run.report.as_ref().ok().and_then(status_of_commands));
        let finding = match finding {
            None if self.arguments.twice => differs(&run, &machine::run(&self.ready, &case)?),
            finding => finding,
        };
        Ok(Judged { seed, run, finding })
    }

    fn judge_task(&self, task: &Task, case: Case) -> Outcome<(Run, Option<String>)> {
        let usual = case.spared.clone();
        let spared = |names: &[&str]| usual.iter().cloned().chain(names.iter().map(|&name| name.to_owned())).collect();
        let (parameters, disks) = (task.parameters.clone(), task.disks.clone());
        let case = Case { parameters, disks, calm_after_s: task.calm_after_s, spared: spared(task.spared), ..case };
        let faults = Faults::Kinds("none".into());
        let calm = || Case { faults: faults.clone(), trace: None, keeps_disks: false, ..case.clone() };
        let other = task.other.as_ref().map(|other| {
            let (parameters, disks) = (other.parameters.clone(), other.disks.clone());
            Case { seed: case.seed ^ OTHER_MACHINE, parameters, disks, spared: spared(other.spared), ..case.clone() }
        });
        let run_once = || match &other {
            None => machine::run(&self.ready, &case),
            Some(other) => machine::run_linked(&self.ready, &[other.clone(), case.clone()]),
        };
        let run_calm = |parameters: &Vec<_>, disks: Vec<DiskContent>| {
            machine::run(&self.ready, &Case { parameters: parameters.clone(), disks, ..calm() })
        };
        let compared_with = task.compared_with.as_ref();
        let without = compared_with.map(|parameters| run_calm(parameters, case.disks.clone())).transpose()?;
        let run = run_once()?;
        let left = || run.disks.iter().cloned().map(DiskContent::of).collect();
        let afterwards = task.afterwards.as_ref().map(|parameters| run_calm(parameters, left())).transpose()?;
        let judge = |report: &Report| {
            let (without, afterwards) = (without.as_ref(), afterwards.as_ref());
            task.finding(&Seen { report, run: &run, without, afterwards })
        };
        let finding = machine_level(&run).or_else(|| run.report.as_ref().ok().and_then(judge));
        let finding = match finding {
            None if self.arguments.twice => differs(&run, &run_once()?),
            finding => finding,
        };
        Ok((run, finding))
    }

    /// Looks for fewer faults with which the seed fails, and prints the command that repeats it.
    fn report_failure(&self, judged: &Judged) -> Outcome<()> {
        let seed = judged.seed;
        let mut faults = self.faults();
        let mut finding = judged.finding.clone().unwrap_or_default();
        let wanted = without_numbers(&finding);
        if let (false, Ok(report)) = (self.arguments.no_shrink, &judged.run.report) {
            let fails = |some: &[String]| -> Outcome<bool> {
                let again = self.judge(seed, &Faults::Exactly(some.to_vec()))?.finding;
                let same = again.filter(|again| without_numbers(again) == wanted);
                Ok(same.inspect(|same| finding.clone_from(same)).is_some())
            };
            let smallest = shrink::smallest(&report.faults, fails)?;
            println!("seed {seed} fails with {} of its {} faults, too", smallest.len(), report.faults.len());
            faults = Faults::Exactly(smallest);
        }
        println!("seed {seed}: {finding}\nrepeat: {}", self.command(seed, &faults));
        Ok(())
    }

    /// Returns the command that repeats a run.
    fn command(&self, seed: u64, faults: &Faults) -> String {
        let mut words = vec!["cargo sing simulate".to_owned()];
        let arguments = self.arguments;
        words.extend(arguments.system.iter().map(|system| format!("--system {}", system.display())));
        words.extend(arguments.workload.map(|workload| format!("--workload {}", workload.name())));
        words.extend(arguments.disk.iter().map(|disk| format!("--disk {}", disk.display())));
        words.extend(arguments.spare.iter().map(|program| format!("--spare {program}")));
        // With all faults that the seed selects it fails, too.
        let faults = faults.option().or_else(|| self.faults().option()).unwrap_or_default();
        words.push(format!("--seed {seed} --processors {} {}", arguments.processors(seed), faults.join(" ")));
        words.extend(arguments.commands.iter().map(|commands| format!("-c '{}'", commands.replace('\'', "'\\''"))));
        words.join(" ")
    }

    fn print(&self, judged: &Judged) {
        let Judged { seed, run, finding } = judged;
        let is_single = self.arguments.seeds.is_none();
        if self.arguments.json {
            println!("{}", json_line(judged, self.arguments.processors(*seed)));
            return;
        }
        if is_single || finding.is_some() {
            print!("{}", run.text);
        }
        let processors = self.arguments.processors(*seed);
        match &run.report {
            Ok(report) => println!("{}", line(*seed, processors, report, run.host.as_millis())),
            Err(why) => println!("seed {seed}  {processors} processors  {why}"),
        }
        if let Some(finding) = finding {
            let killed = run.report.as_ref().map_or(String::new(), |report| report.killed.join(", "));
            let ended = if killed.is_empty() { killed } else { format!(" (ended by faults: {killed})") };
            println!("seed {seed}  FAILED: {finding}{ended}");
        }
    }
}

/// Returns the line of a run.
fn line(seed: u64, processors: u8, report: &Report, host_ms: u128) -> String {
    let Report { hash, virtual_ns, calls, events, end, status, faults, .. } = report;
    let end = match end {
        End::Off => format!("off with status {status}"),
        other => format!("{other:?}").to_lowercase(),
    };
    let counts = kinds_of(faults).into_iter().map(|(kind, count)| format!("{count} {kind}")).collect::<Vec<_>>();
    let seconds = *virtual_ns as f64 / 1e9;
    let faults = if counts.is_empty() { "no faults".to_owned() } else { counts.join(", ") };
    format!(
        "seed {seed}  {hash}  {processors} processors  {seconds:.3} s in {host_ms} ms  {calls} calls  {events} events  \
         {end}  {faults}"
    )
}

fn json_line(judged: &Judged, processors: u8) -> serde_json::Value {
    let Judged { seed, run, finding } = judged;
    let mut object = serde_json::json!({
        "seed": seed, "processors": processors, "host_ms": run.host.as_millis() as u64, "finding": finding,
    });
    if let Ok(Report { hash, virtual_ns, calls, events, end, status, faults, killed }) = &run.report {
        object["hash"] = hash.as_str().into();
        object["virtual_ns"] = (*virtual_ns).into();
        object["calls"] = (*calls).into();
        object["events"] = (*events).into();
        object["end"] = format!("{end:?}").to_lowercase().into();
        object["status"] = (*status).into();
        object["faults"] = faults.as_slice().into();
        object["killed"] = killed.as_slice().into();
    }
    object
}

/// Returns the numbers of faults by kind.
fn kinds_of(faults: &[String]) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for fault in faults {
        *counts.entry(fault.split_once(':').map_or(fault.as_str(), |(kind, _)| kind)).or_default() += 1;
    }
    counts
}

/// Returns what is wrong with the machine itself.
fn machine_level(run: &Run) -> Option<String> {
    match &run.report {
        Err(why) => Some(format!("the machine died: {why}")),
        Ok(Report { end: End::Stuck, .. }) => Some("everybody waits, and nothing will happen".into()),
        Ok(Report { end: End::Spin, .. }) => Some("processors spin for a lock that nobody releases".into()),
        Ok(Report { end: End::Late, .. }) => Some("it did not end within the limit of virtual time".into()),
        Ok(_) => None,
    }
}

/// Returns what is wrong with the exit status of the commands: it may be anything only after faults that they notice.
fn status_of_commands(report: &Report) -> Option<String> {
    let has_excuse = kinds_of(&report.faults).keys().any(|kind| HARMFUL.contains(kind));
    let is_wrong = report.end == End::Off && report.status != 0 && !has_excuse;
    is_wrong.then(|| format!("the commands ended with status {}", report.status))
}

/// Returns the text of a finding, by which two are the same.
fn without_numbers(finding: &str) -> String {
    finding.split(|character: char| character.is_ascii_digit()).collect()
}

/// Returns how two runs of one seed differ.
fn differs(one: &Run, other: &Run) -> Option<String> {
    let hash = |run: &Run| run.report.as_ref().map_or_else(Clone::clone, |report| report.hash.clone());
    let (one, other) = (hash(one), hash(other));
    (one != other).then(|| format!("two runs have different hashes, {one} and {other}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(end: End, status: u8, faults: &[&str]) -> Report {
        let faults = faults.iter().map(|&fault| fault.to_owned()).collect();
        Report {
            hash: "0a".into(),
            virtual_ns: 1_500_000_000,
            calls: 2,
            events: 3,
            end,
            status,
            faults,
            killed: Vec::new(),
        }
    }

    #[test]
    fn a_line_counts_the_faults_by_kind() {
        let report = report(End::Off, 0, &["kill:3", "delay:1", "kill:9"]);
        let expected =
            "seed 7  0a  2 processors  1.500 s in 70 ms  2 calls  3 events  off with status 0  1 delay, 2 kill";
        assert_eq!(line(7, 2, &report, 70), expected);
    }

    #[test]
    fn a_status_is_excused_by_faults_that_commands_notice() {
        assert!(status_of_commands(&report(End::Off, 1, &["preempt:1"])).is_some());
        assert!(status_of_commands(&report(End::Off, 1, &["kill:1"])).is_none());
        assert!(status_of_commands(&report(End::Off, 0, &[])).is_none());
    }
}
