//! The workload `installs`: packages are installed, upgraded and removed while the power fails and programs end at any
//! ABI call. A change is whole or not at all, and one that was acknowledged stays.
//!
//! The machine starts once more from what is left on the disk, without faults; the versions that it then has must be those
//! after some commands not before the last acknowledged one. Key type: [`Story`]. Deliberately not here: the machine.

use std::collections::BTreeSet;

use manifest_model::{Category, Code, Manifest, Version};
use package_build::{Signer, build_package};

use super::ext2::{self, Files};
use super::machine::{End, Report};
use super::random::Random;

/// Programs that are installed; their packages are named after them.
const NAMES: [&str; 2] = ["alpha", "beta"];
/// Versions of each, from 1 on.
const VERSIONS: u8 = 4;
const COMMANDS: usize = 10;
/// Maximum lines of comments in a script, so that packages take more than one block of the disk.
const MAX_LINES: usize = 300;
/// Programs that no fault ends: changes are acknowledged through them.
pub const SPARED: &[&str] = &["echo", "console"];

/// Faults after which a command may fail.
const HARMFUL: [&str; 5] = ["kill:", "kill-call:", "memory:", "read-error:", "write-error:"];
/// In the report of a change that lasts.
const KEPT: &str = "kept in ";
/// Last command of each start.
const VERIFIED: &str = "verified";

/// The installed version of each program; 0 if it is not installed.
type Versions = [u8; NAMES.len()];

/// One change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    Install(u8),
    Upgrade(u8),
    Uninstall,
}

impl Change {
    /// Returns the version after the change of an installed one, or `None` if it is refused.
    fn of(self, installed: u8) -> Option<u8> {
        match self {
            Change::Install(version) => (installed == 0).then_some(version),
            Change::Upgrade(version) => (installed != 0 && installed < version).then_some(version),
            Change::Uninstall => (installed != 0).then_some(0),
        }
    }

    fn command(self, name: &str) -> String {
        match self {
            Change::Install(version) => format!("install /fs/disk0/{name}-{version}.package"),
            Change::Upgrade(version) => format!("upgrade /fs/disk0/{name}-{version}.package"),
            Change::Uninstall => format!("uninstall {name}"),
        }
    }
}

/// The changes of a seed, each to the program with an index, and the packages.
pub struct Story {
    changes: Vec<(usize, Change)>,
    packages: Files,
}

impl Story {
    /// Writes the story of a seed, with packages by this signer.
    pub fn new(seed: u64, signer: &Signer) -> Story {
        let mut random = Random::new(seed ^ 0x696e_7374);
        let mut versions: Versions = Default::default();
        let changes = (0..COMMANDS).map(|_| {
            let index = random.below(NAMES.len());
            let installed = versions[index];
            let change = match (installed, random.below(3)) {
                (0, _) => Change::Install(1 + random.below(usize::from(VERSIONS)) as u8),
                (VERSIONS, _) | (_, 0) => Change::Uninstall,
                _ => Change::Upgrade(installed + 1 + random.below(usize::from(VERSIONS - installed)) as u8),
            };
            versions[index] = change.of(installed).unwrap_or(installed);
            (index, change)
        });
        let changes = changes.collect();
        let package = |(name, version): (&str, u8)| {
            let lines = random.below(MAX_LINES);
            (format!("{name}-{version}.package"), packed(name, version, lines, signer))
        };
        let all = NAMES.iter().flat_map(|name| (1..=VERSIONS).map(move |version| (*name, version)));
        Story { changes, packages: all.map(package).collect() }
    }

    /// Returns the disk at power on.
    pub fn disk(&self) -> Vec<u8> {
        ext2::make_disk(&self.packages)
    }

    /// Returns the shell's commands: the changes, then the programs. The system is verified at the next start alone, which
    /// takes as long as everything else together.
    pub fn commands(&self) -> String {
        let change = |(number, (index, change)): (usize, &(usize, Change))| {
            format!("{}; echo {}$?; ", change.command(NAMES[*index]), done(number))
        };
        self.changes.iter().enumerate().map(change).collect::<String>() + &NAMES.join("; ")
    }

    /// Returns the commands that show what is installed.
    pub fn commands_afterwards() -> String {
        format!("{}; verify; echo {VERIFIED} $?", NAMES.join("; "))
    }

    /// Returns what a run violates: its report and console, and the console of the start after it.
    ///
    /// # Errors
    /// What is violated.
    pub fn judge(&self, report: &Report, console: &str, afterwards: &str) -> Result<(), String> {
        if !matches!(report.end, End::Off | End::Cut) {
            return Err(format!("the machine ended by {:?}", report.end));
        }
        let possible = self.possible(report, console)?;
        let found = versions(afterwards)?;
        for ((name, possible), found) in NAMES.iter().zip(possible).zip(found) {
            let kept: BTreeSet<u8> = possible.into_iter().flat_map(|state| state.kept).collect();
            if !kept.contains(&found) {
                return Err(format!("after the next start, {name} is of version {found}, not of one of {kept:?}"));
            }
        }
        match afterwards.contains(&format!("{VERIFIED} 0\n")) {
            true => Ok(()),
            false => Err(format!("after the next start, the system is not sound: {}", problems(afterwards))),
        }
    }

    /// Returns for each program the states that it may be in after what a console shows.
    fn possible(&self, report: &Report, console: &str) -> Result<[BTreeSet<State>; NAMES.len()], String> {
        let may_fail = report.faults.iter().any(|fault| HARMFUL.iter().any(|kind| fault.starts_with(kind)));
        let mut possible = NAMES.map(|_| BTreeSet::from([State { runs: 0, kept: BTreeSet::from([0]) }]));
        let mut rest = console;
        for (number, &(index, change)) in self.changes.iter().enumerate() {
            let states = &mut possible[index];
            let Some((report_of_it, status, after)) = ended(rest, number) else {
                if report.end == End::Off {
                    return Err(format!("the shell did not get through change {number}"));
                }
                // In progress when the power failed.
                states.extend(changed(states, change, Kept::Perhaps));
                return Ok(possible);
            };
            rest = after;
            if status == "0" {
                let kept = if report_of_it.contains(KEPT) { Kept::Surely } else { Kept::Perhaps };
                if kept == Kept::Perhaps && !may_fail {
                    return Err(format!("change {number} was not kept without a fault that may be the reason"));
                }
                *states = changed(states, change, kept);
                if states.is_empty() {
                    return Err(format!("change {number} was made, although no state before it allows that"));
                }
            } else if may_fail {
                // Whether it was made before it failed is open.
                states.extend(changed(states, change, Kept::Perhaps));
            } else {
                return Err(format!("change {number} failed without a fault that may fail it"));
            }
        }
        Ok(possible)
    }
}

/// What may be installed of one program.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct State {
    /// The version that runs; 0 if none does.
    runs: u8,
    /// The versions that may be there after the next start.
    kept: BTreeSet<u8>,
}

/// Whether a change is on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kept {
    /// The installer says so.
    Surely,
    /// It was not able to write it, or was ended before it said so.
    Perhaps,
}

/// Returns the states after a change, of those that allow it.
fn changed(states: &BTreeSet<State>, change: Change, is_kept: Kept) -> BTreeSet<State> {
    let after = |state: &State| {
        let runs = change.of(state.runs)?;
        let before = if is_kept == Kept::Surely { BTreeSet::new() } else { state.kept.clone() };
        Some(State { runs, kept: before.into_iter().chain([runs]).collect() })
    };
    states.iter().filter_map(after).collect()
}

/// Returns what the console shows of a change, its status, and the rest.
fn ended(console: &str, number: usize) -> Option<(&str, &str, &str)> {
    let (report, rest) = console.split_once(&done(number))?;
    let (status, rest) = rest.split_once('\n')?;
    Some((report, status, rest))
}

/// Marks the end of a change on the console; its status follows.
fn done(number: usize) -> String {
    format!("change {number} ended with ")
}

fn packed(name: &str, version: u8, lines: usize, signer: &Signer) -> Vec<u8> {
    let comments: String = (0..lines).map(|line| format!("# {name} {version}: line {line} of {lines}\n")).collect();
    let text = format!("{comments}echo {}\n", speaks(name, version));
    let manifest = Manifest {
        version: Version { major: u32::from(version), minor: 0, patch: 0 },
        summary: "says its version".into(),
        ..Manifest::plain(name, "singularity", Category::Example, Code::Script { text })
    };
    match build_package(manifest, b"", b"", signer) {
        Ok(package) => package,
        Err(error) => unreachable!("the package of a script: {error}"),
    }
}

/// What a program says.
fn speaks(name: &str, version: u8) -> String {
    format!("this is {name} {version}")
}

/// Returns the versions that the programs say that they are.
fn versions(console: &str) -> Result<Versions, String> {
    if !console.contains(VERIFIED) {
        return Err("the next start did not come to its commands".into());
    }
    let version = |name: &str| {
        let is_said = |version: &u8| console.lines().any(|line| line == speaks(name, *version));
        (1..=VERSIONS).find(is_said).unwrap_or(0)
    };
    Ok(NAMES.map(version))
}

/// Returns the lines of a console that tell of problems.
fn problems(console: &str) -> String {
    let lines: Vec<&str> = console.lines().filter(|line| line.starts_with("refused")).collect();
    lines.join("; ")
}

#[cfg(test)]
mod tests {
    use package_build::SecretKey;

    use super::*;

    fn story() -> Story {
        let changes = vec![(0, Change::Install(1)), (1, Change::Install(2)), (0, Change::Upgrade(3))];
        Story { changes, packages: Files::new() }
    }

    fn report(end: End, faults: &[&str]) -> Report {
        let faults = faults.iter().map(|&fault| fault.to_owned()).collect();
        Report { hash: String::new(), virtual_ns: 0, calls: 0, events: 0, end, status: 0, faults, killed: Vec::new() }
    }

    fn console(statuses: &[u8]) -> String {
        let line = |(number, status): (usize, &u8)| format!("proved  system: {KEPT}x\n{}{status}\n", done(number));
        statuses.iter().enumerate().map(line).collect()
    }

    fn afterwards(versions: Versions) -> String {
        let said = NAMES.iter().zip(versions).filter(|(_, version)| *version != 0);
        let said: String = said.map(|(name, version)| speaks(name, version) + "\n").collect();
        format!("{said}{VERIFIED} 0\n")
    }

    #[test]
    fn what_was_acknowledged_must_be_there_and_what_was_not_may() {
        let cut = report(End::Cut, &["cut:1"]);
        for (versions, is_right) in [([1, 2], true), ([3, 2], true), ([1, 0], false), ([2, 2], false)] {
            let judged = story().judge(&cut, &console(&[0, 0]), &afterwards(versions));
            assert_eq!(judged.is_ok(), is_right, "{versions:?}: {judged:?}");
        }
        let off = report(End::Off, &[]);
        assert!(story().judge(&off, &console(&[0, 0, 0]), &afterwards([3, 2])).is_ok());
        assert!(story().judge(&off, &console(&[0, 0, 0]), &afterwards([1, 2])).is_err());
    }

    #[test]
    fn a_change_fails_only_by_a_fault_and_may_then_have_been_made() {
        let failed = console(&[0, 1, 0]);
        assert!(story().judge(&report(End::Off, &["preempt:1"]), &failed, &afterwards([3, 0])).is_err());
        for versions in [[3, 0], [3, 2]] {
            let judged = story().judge(&report(End::Off, &["kill:7"]), &failed, &afterwards(versions));
            assert_eq!(judged, Ok(()), "{versions:?}");
        }
    }

    #[test]
    fn a_change_that_could_not_be_kept_may_be_gone() {
        let forgotten = console(&[0, 0, 0]).replacen(KEPT, "until the machine restarts ", 1);
        let killed = report(End::Off, &["kill:7"]);
        assert!(story().judge(&report(End::Off, &[]), &forgotten, &afterwards([3, 2])).is_err());
        // The upgrade is kept, whatever became of the version before it.
        assert!(story().judge(&killed, &forgotten, &afterwards([0, 2])).is_err());
        let forgotten = console(&[0, 0, 0]).replace(KEPT, "until the machine restarts ");
        for versions in [[0, 0], [1, 0], [3, 2]] {
            assert_eq!(story().judge(&killed, &forgotten, &afterwards(versions)), Ok(()), "{versions:?}");
        }
    }

    #[test]
    fn a_system_that_is_not_sound_is_found() {
        let text = afterwards([3, 2]).replace(" 0\n", " 1\n") + "refused I224 damaged\n";
        let judged = story().judge(&report(End::Off, &[]), &console(&[0, 0, 0]), &text);
        assert!(judged.is_err_and(|what| what.contains("I224")));
    }

    #[test]
    fn each_change_of_a_story_is_one_of_the_state_before_it() {
        let signer = Signer::root(SecretKey::from_bytes(&[7; 32]));
        for seed in 0..20 {
            let story = Story::new(seed, &signer);
            let statuses = vec![0; story.changes.len()];
            let possible = story.possible(&report(End::Off, &[]), &console(&statuses));
            let possible = possible.expect("all changes are allowed");
            assert!(possible.iter().all(|states| states.len() == 1), "seed {seed}: {possible:?}");
            assert_eq!(story.packages.len(), NAMES.len() * usize::from(VERSIONS));
        }
    }
}
