//! Power failures at every write, with any subset of the unflushed sectors on the medium: data synced and not changed
//! since survives, before and after a check, and a check repairs the volume.

use std::collections::{BTreeMap, BTreeSet};

use fat::{Access, CheckMode, Volume, check};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

use crate::player::{Model, Step, Trial, step};
use crate::support::{Act, MemoryDisk, complaints, made_by_linux, options, run};

test_needs::needs!(Dosfstools);

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
const SECTOR_BYTES: usize = 512;

/// Thoroughness of a run.
#[derive(Clone, Copy)]
struct Effort {
    stories: u8,
    steps: usize,
    /// Sampling interval of crash points: 1 in this many.
    once_in: usize,
    /// Of these, 1 in this many is also checked by fsck.fat.
    fsck_once_in: usize,
}

const SHORT: Effort = Effort { stories: 2, steps: 60, once_in: 7, fsck_once_in: 4 };
const LONG: Effort = Effort { stories: 60, steps: 120, once_in: 1, fsck_once_in: 10 };

/// The state of a story after a step.
struct Moment {
    /// Disk operations until then.
    place: usize,
    /// Content of the volume, if the step synced it.
    synced: Option<Model>,
    touched: Vec<String>,
}

struct Story {
    before: MemoryDisk,
    acts: Vec<Act>,
    moments: Vec<Moment>,
}

fn story(made: &MemoryDisk, seed: u8, steps: usize) -> Story {
    let mut runner =
        TestRunner::new_with_rng(ProptestConfig::default(), TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]));
    let steps = proptest::collection::vec(step(), steps).new_tree(&mut runner).expect("steps").current();
    let disk = made.copy();
    let mut trial = Trial::new(disk.clone(), |_, _| {});
    disk.record();
    let mut moments = vec![Moment { place: 0, synced: Some(trial.model.clone()), touched: Vec::new() }];
    for step in &steps {
        let touched = trial.touched_by(step);
        trial.step(step);
        let synced = matches!(step, Step::Sync | Step::Remount).then(|| trial.model.clone());
        moments.push(Moment { place: disk.acts().len(), synced, touched });
    }
    Story { before: made.copy(), acts: disk.acts(), moments }
}

impl Story {
    /// The files that must survive a power failure after this many operations: those of the last sync that nothing has
    /// touched since.
    fn promised(&self, place: usize) -> BTreeMap<String, Vec<u8>> {
        let last = self.moments.iter().rposition(|moment| moment.synced.is_some() && moment.place <= place);
        let last = last.expect("the first moment is synced");
        // The interrupted step counts as well.
        let ended = self.moments.iter().position(|moment| moment.place > place).unwrap_or(self.moments.len() - 1);
        let touched: BTreeSet<&String> = self.moments[last + 1..]
            .iter()
            .take(ended.saturating_sub(last))
            .flat_map(|moment| &moment.touched)
            .collect();
        let is_touched = |path: &String| {
            touched.iter().any(|touched| *touched == path || touched.ends_with('/') && path.starts_with(*touched))
        };
        let files = &self.moments[last].synced.as_ref().expect("a synced moment").files;
        files.iter().filter(|(path, _)| !is_touched(path)).map(|(path, bytes)| (path.clone(), bytes.clone())).collect()
    }

    /// The disk after this many operations: all of them, or only some sectors of the unflushed ones.
    fn disk_after(&self, durable: &MemoryDisk, first: usize, place: usize, luck: Option<u64>) -> MemoryDisk {
        let disk = durable.copy();
        let mut random = luck.map(|luck| luck.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        for act in &self.acts[first..place] {
            let Act::Write(offset, bytes) = act else { continue };
            for (number, sector) in bytes.chunks(SECTOR_BYTES).enumerate() {
                let is_lost = random.as_mut().is_some_and(|random| {
                    *random ^= *random << 13;
                    *random ^= *random >> 7;
                    *random ^= *random << 17;
                    *random >> 32 & 1 == 0
                });
                if !is_lost {
                    disk.put(offset + (number * SECTOR_BYTES) as u64, sector);
                }
            }
        }
        disk
    }
}

/// The first promised file that is wrong, found by a read-only mount.
fn broken_promise(disk: &MemoryDisk, promised: &BTreeMap<String, Vec<u8>>) -> Option<String> {
    let volume = match run(Volume::mount(disk.clone(), options(Access::ReadOnly))) {
        Ok(volume) => volume,
        Err(error) => return Some(format!("it cannot be mounted: {error}")),
    };
    let root = run(volume.root()).expect("a root");
    for (path, content) in promised {
        let mut found = vec![0; content.len() + 1];
        let count = match run(root.open(path)) {
            Ok(file) => run(file.read(0, &mut found)),
            Err(error) => return Some(format!("{path}: {error}")),
        };
        if count != Ok(content.len()) || found[..content.len()] != *content {
            return Some(format!("{path}: {count:?} of {} bytes, or others", content.len()));
        }
    }
    None
}

/// Documented problems after a crash: see docs/storage.md.
const DOCUMENTED: &[&str] = &[
    "the volume was not cleanly unmounted",
    "of the FAT differs",
    "lost clusters",
    "wrong free cluster count",
    // Chains of files that were being changed.
    ": chain ",
    // Partially written folders, and their apparent entries.
    "entries after its end",
    "not the content of a folder",
    ": wrong `",
    "long name slot",
    "duplicate name",
    "invalid short name",
    "the entry of a folder has a size",
    "the volume label has content",
    "invalid volume label",
    "the labels in boot sector and root folder differ",
];

/// Judges a disk after a crash, and the outcome of a check.
fn judge(disk: &MemoryDisk, promised: &BTreeMap<String, Vec<u8>>, asks_fsck: bool) -> Result<(), String> {
    if let Some(broken) = broken_promise(disk, promised) {
        return Err(broken);
    }
    let report = run(check(disk.clone(), CheckMode::Report)).map_err(|error| format!("Report: {error}"))?;
    if let Some(line) = report.lines.iter().find(|line| !DOCUMENTED.iter().any(|known| line.contains(known))) {
        return Err(format!("this is not documented: {line}"));
    }
    for mode in [CheckMode::Preen, CheckMode::Repair] {
        let repaired = disk.copy();
        let report = run(check(repaired.clone(), mode)).map_err(|error| format!("{mode:?}: {error}"))?;
        if let Some(broken) = broken_promise(&repaired, promised) {
            return Err(format!("after {mode:?}: {broken}\n{}", report.lines.join("\n")));
        }
        if mode == CheckMode::Repair && report.left > 0 {
            return Err(format!("{} of it is left:\n{}", report.left, report.lines.join("\n")));
        }
        if report.left == 0 {
            let again = run(check(repaired.clone(), CheckMode::Report)).map_err(|error| format!("then: {error}"))?;
            if !again.is_clean() {
                let (before, after) = (report.lines.join("\n"), again.lines.join("\n"));
                return Err(format!("after {mode:?} of\n{before}\nthere is\n{after}"));
            }
            if asks_fsck && let Some(text) = complaints(&repaired) {
                return Err(format!("after {mode:?} of\n{}\nfsck.fat says:\n{text}", report.lines.join("\n")));
            }
        }
    }
    Ok(())
}

fn play((bytes, words): (u64, &[&str]), effort: Effort) {
    let made = made_by_linux(bytes, words);
    let mut failures = Vec::new();
    let mut looked = 0;
    for seed in 0..effort.stories {
        let story = story(&made, seed, effort.steps);
        let durable = story.before.copy();
        let mut first = 0;
        for place in 0..=story.acts.len() {
            if place > 0 && matches!(story.acts[place - 1], Act::Flush) {
                for act in &story.acts[first..place] {
                    if let Act::Write(offset, bytes) = act {
                        durable.put(*offset, bytes);
                    }
                }
                first = place;
            }
            if place % effort.once_in != usize::from(seed) % effort.once_in {
                continue;
            }
            let promised = story.promised(place);
            for luck in [None, Some(place as u64)] {
                looked += 1;
                let disk = story.disk_after(&durable, first, place, luck);
                if let Err(problem) = judge(&disk, &promised, looked % effort.fsck_once_in == 0) {
                    failures.push(format!("story {seed}, after {place} acts, luck {luck:?}: {problem}"));
                }
            }
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {looked} crashes:\n{}",
        failures.len(),
        failures[..failures.len().min(8)].join("\n\n")
    );
}

macro_rules! of_each_format {
    ($($name:ident: $bytes:expr, $words:expr;)*) => {
        $(
            mod $name {
                use super::*;

                #[test]
                fn crashes_leave_what_was_synced() {
                    play(($bytes, $words), SHORT);
                }

                #[test]
                #[ignore = "takes minutes"]
                fn crashes_leave_what_was_synced_for_long() {
                    play(($bytes, $words), LONG);
                }
            }
        )*
    };
}

of_each_format! {
    fat12: 1440 * KIB, &["-F", "12"];
    fat12_with_little_room: 160 * KIB, &["-F", "12", "-r", "16", "-s", "2"];
    fat16: 4 * MIB, &["-F", "16", "-s", "1"];
    fat32: 2 * MIB, &["-F", "32", "-s", "1"];
    fat32_with_little_room: 256 * KIB, &["-F", "32", "-s", "1", "-f", "1"];
    fat32_in_clusters_of_8k: 4 * MIB, &["-F", "32", "-s", "16"];
}
