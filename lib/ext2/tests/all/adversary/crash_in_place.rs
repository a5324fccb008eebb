//! Power loss on volumes that are too small for a journal, whose commits are written in place, in order.
//!
//! Between commits, the volume is as after the last one, and preening repairs it. Within a commit, a full check repairs
//! it; names may be lost, but not the content of a file that was synced and unchanged since. Until the repair such a
//! volume is read-only.

use ext2::ReadOnlyReason;
use ext2::check::{CheckOptions, Mode, Outcome as CheckOutcome, check};

use crate::adversary::crash::{QUIET_LIFE, Story, mount};
use crate::adversary::disk::TestDisk;
use crate::adversary::generator::Life;
use crate::adversary::image::Image;
use crate::adversary::tools::{self, Format};
use crate::support::AnyDisk;

/// Volumes too small for a journal.
const TINY: [Format; 4] = [
    Format {
        arguments: &["-b", "1024", "-I", "128", "-N", "512", "-O", "dir_index"],
        mebibytes: 1,
        small_files: false,
    },
    Format { arguments: &["-b", "1024", "-r", "0", "-N", "512", "-O", "none"], mebibytes: 1, small_files: true },
    Format { arguments: &["-b", "2048", "-I", "256", "-N", "512"], mebibytes: 3, small_files: false },
    Format {
        arguments: &["-b", "4096", "-I", "256", "-N", "512", "-O", "dir_index"],
        mebibytes: 6,
        small_files: false,
    },
];

const LIFE: Life = Life { content_bytes: 160 << 10, large_bytes: 50 << 10, remounts: 60, ..QUIET_LIFE };
const MEMORY_BYTES: u64 = 64 << 20;

/// Thoroughness of the test.
#[derive(Clone, Copy)]
struct Effort {
    subsets: u64,
    /// One crash in this many is also repaired by e2fsck.
    e2fsck_once_in: usize,
}

/// Crashes at every moment; returns their number, and the number of those within a commit.
fn crash(story: &Story, effort: Effort) -> Result<(usize, usize), String> {
    let mut within = 0;
    let count = story.for_each_crash(effort.subsets, |count, moment, image| {
        within += usize::from(!story.history.is_quiet(moment));
        after(story, moment, image, count % effort.e2fsck_once_in == 0)
    })?;
    Ok((count, within))
}

/// Checks a volume after a crash.
fn after(story: &Story, moment: usize, image: &Image, with_e2fsck: bool) -> Result<(), String> {
    look(story, image)?;
    let repaired_here = check_here(story.history.is_quiet(moment), image)?;
    repaired(story, moment, &repaired_here).map_err(|error| format!("after our check: {error}"))?;
    if with_e2fsck {
        tools::check_clean(&repaired_here).map_err(|error| format!("after our check: {error}"))?;
        let by_linux = match story.history.is_quiet(moment) {
            true => tools::preen(image)?,
            // e2fsck does not search for a name that a split left in two blocks of a directory.
            false => check_here(false, &tools::repair_all(image)?).map_err(|error| format!("after e2fsck: {error}"))?,
        };
        repaired(story, moment, &by_linux).map_err(|error| format!("after e2fsck: {error}"))?;
    }
    Ok(())
}

/// It can be read, without being damaged further.
fn look(story: &Story, image: &Image) -> Result<(), String> {
    // A torn superblock is refused with an error.
    let Ok(mounted) = mount(&TestDisk::new(image.clone()), story.limits) else { return Ok(()) };
    match mounted.volume().read_only_reason() {
        None | Some(ReadOnlyReason::NotClean) => {}
        Some(other) => return Err(format!("read only: {other}")),
    }
    let disk = mounted.unmount().map_err(|error| format!("unmounting: {error:?}"))?;
    if disk.image().to_bytes() == image.to_bytes() { Ok(()) } else { Err("looking at it changed it".into()) }
}

fn check_here(is_quiet: bool, image: &Image) -> Result<Image, String> {
    let disk = TestDisk::new(image.clone());
    let mode = if is_quiet { Mode::Preen } else { Mode::Repair };
    let options = CheckOptions { mode, memory_bytes: MEMORY_BYTES };
    let mut findings = Vec::new();
    let summary =
        disk.run(check(&AnyDisk::new(disk.clone()), &options, &mut |finding| findings.push(format!("{finding:?}"))));
    match summary.map(|summary| summary.outcome) {
        Ok(CheckOutcome::Clean | CheckOutcome::Repaired) => Ok(disk.image()),
        other => Err(format!("our check ends with {other:?}: {findings:?}")),
    }
}

/// Checks the content of the repaired volume.
fn repaired(story: &Story, moment: usize, image: &Image) -> Result<(), String> {
    let mounted = mount(&TestDisk::new(image.clone()), story.limits)?;
    if let Some(reason) = mounted.volume().read_only_reason() {
        return Err(format!("mounted to be read only: {reason}"));
    }
    if story.history.is_quiet(moment) {
        story.history.check(moment, &mounted)
    } else {
        story.history.check_survivors(moment, &mounted)
    }
}

fn crash_at_random(formats: &[Format], seeds: std::ops::Range<u64>, operations: usize, effort: Effort) {
    if !tools::are_there() {
        return;
    }
    for format in formats {
        for seed in seeds.clone() {
            let story = Story::at_random(format, LIFE, seed, operations);
            match story.and_then(|story| crash(&story, effort)) {
                Ok((count, within)) => {
                    println!("{count} crashes of {format:?}, seed {seed}, {within} of them within commits");
                    assert!(within > 0 && within < count, "{within} of {count} crashes were within a commit");
                }
                Err(error) => panic!("{format:?}, seed {seed}: {error}"),
            }
        }
    }
}

#[test]
fn crashes_without_a_journal_are_repaired_and_lose_no_content() {
    crash_at_random(&TINY, 0..2, 60, Effort { subsets: 1, e2fsck_once_in: 40 });
}

#[test]
#[ignore = "takes minutes"]
fn crashes_without_a_journal_are_repaired_and_lose_no_content_for_long() {
    crash_at_random(&TINY, 100..102, 250, Effort { subsets: 2, e2fsck_once_in: 20 });
}
