//! Journals of other systems, old revisions, and damage.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use std::path::Path;
use std::process::Command;

use super::crash::{Random, image_with_files, replace, state};
use super::disk::{RecordingDisk, fsck};
use super::{open, options};
use crate::error::{Error, ReadOnlyReason};
use crate::format::error::{FormatError, JournalProblem};
use crate::source::complete;
use crate::store::Store;

/// Runs a program. Returns its output on success.
fn run(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Creates a volume with mke2fs, if it is installed.
fn made(place: &Path, arguments: &[&str], size: &str) -> Option<Vec<u8>> {
    let image = place.join("image");
    let mut all = vec!["-q", "-F"];
    all.extend_from_slice(arguments);
    all.extend_from_slice(&[image.to_str()?, size]);
    run("mke2fs", &all)?;
    std::fs::read(image).ok()
}

/// Returns the blocks in which two images differ.
fn differences(left: &[u8], right: &[u8], block_bytes: usize) -> Vec<usize> {
    let blocks = left.chunks(block_bytes).zip(right.chunks(block_bytes)).enumerate();
    blocks.filter(|(_, (left, right))| left != right).map(|(block, _)| block).collect()
}

fn reopened(bytes: Vec<u8>) -> Result<RecordingDisk, Error> {
    let disk = RecordingDisk::new(bytes);
    complete(Store::open(disk.clone(), &options())).map(|_| disk)
}

/// Transactions written by debugfs: copies, later copies of the same blocks, revoked ones, and one that looks like
/// journal metadata.
#[test]
fn transactions_revocations_and_escaped_blocks_are_replayed_as_by_e2fsck() {
    let place = tempfile::tempdir().unwrap();
    for block_bytes in [1024usize, 4096] {
        let size = format!("{block_bytes}");
        let Some(image) = made(place.path(), &["-t", "ext3", "-b", &size, "-O", "^resize_inode"], "20M") else {
            return;
        };
        let file = |name: &str, byte: u8, blocks: usize, looks_own: bool| {
            let path = place.path().join(name);
            let mut bytes = vec![byte; blocks * block_bytes];
            if looks_own {
                bytes[..4].copy_from_slice(&0xc03b_3998u32.to_be_bytes());
            }
            std::fs::write(&path, bytes).unwrap();
            path.to_str().unwrap().into()
        };
        let (one, two, three): (String, String, String) =
            (file("one", 1, 3, true), file("two", 2, 2, false), file("three", 3, 200, true));
        // Unused blocks in the middle: the journal and the tables are elsewhere.
        let base = 4000;
        let row = |from: usize, count: usize| {
            let numbers: Vec<String> = (from..from + count).map(|block| format!("{block}")).collect();
            numbers.join(",")
        };
        let commands = [
            "jo".into(),
            format!("jw -b {} {one}", row(base, 3)),
            format!("jw -b {} {two}", row(base + 1, 2)),
            format!("jw -b {} -r {} {two}", row(base + 300, 2), row(base, 1)),
            format!("jw -r {}", row(base + 2, 1)),
            format!("jw -b {} {three}", row(base + 10, 200)),
            format!("jw -b {} {one}", row(base + 2, 3)),
            "jc".into(),
        ];
        let script = place.path().join("script");
        std::fs::write(&script, commands.join("\n")).unwrap();
        let path = place.path().join("image");
        if run("debugfs", &["-w", "-f", script.to_str().unwrap(), path.to_str().unwrap()]).is_none() {
            return;
        }
        let with_log = std::fs::read(&path).unwrap();
        assert!(with_log[1024 + 96] & 4 != 0, "debugfs left no log");
        let by_others = fsck(&with_log, "-fp", &[0, 1]);
        let by_us = reopened(with_log.clone()).unwrap().bytes();
        // Superblocks and journals may differ in times and creator; the replayed content is the same.
        let touched = differences(&with_log, &image, block_bytes);
        assert!(touched.len() > 200);
        for block in [base, base + 1, base + 2, base + 3, base + 4, base + 10, base + 209, base + 300] {
            let range = block * block_bytes..(block + 1) * block_bytes;
            assert!(by_us[range.clone()] == by_others[range], "block {block}");
        }
        fsck(&by_us, "-fn", &[0]);
    }
}

/// The state after Linux is interrupted, if images can be mounted.
#[test]
fn what_linux_leaves_is_replayed() {
    let place = tempfile::tempdir().unwrap();
    for options in [&["-t", "ext3", "-b", "1024"][..], &["-t", "ext3", "-b", "4096"]] {
        if made(place.path(), options, "40M").is_none() {
            return;
        }
        let (image, folder) = (place.path().join("image"), place.path().join("folder"));
        std::fs::create_dir_all(&folder).unwrap();
        let (image_name, folder_name) = (image.to_str().unwrap(), folder.to_str().unwrap());
        if run("mount", &["-t", "ext3", "-o", "loop,commit=300", image_name, folder_name]).is_none() {
            return;
        }
        for round in 0..4 {
            for index in 0..150 {
                std::fs::write(folder.join(format!("file-{index}")), vec![round; index * 20]).unwrap();
            }
            for index in (0..150).step_by(3) {
                std::fs::remove_file(folder.join(format!("file-{index}"))).unwrap();
                std::fs::create_dir(folder.join(format!("folder-{round}-{index}"))).unwrap();
            }
            run("sync", &["-f", folder_name]);
        }
        // Simulated power loss: the state of the loop device is in the file.
        let cut_off = std::fs::read(&image).unwrap();
        run("umount", &[folder_name]).unwrap();
        assert!(cut_off[1024 + 96] & 4 != 0, "nothing to replay");
        let disk = reopened(cut_off.clone()).unwrap();
        fsck(&disk.bytes(), "-fn", &[0]);
        let by_others = fsck(&cut_off, "-fp", &[0, 1]);
        // The superblock and the journal's: times and sequence numbers.
        let different = differences(&disk.bytes(), &by_others, 1024).len();
        assert!(different < 12, "{different} blocks differ");
        // Its journal is used and kept.
        let store = open(&disk);
        complete(async {
            let change = store.begin_for(8, 100).await.unwrap();
            let (first, count) = store.allocator().allocate_blocks(&change, 500, 100).await.unwrap();
            store.allocator().free_blocks(&change, first, count).await.unwrap();
            drop(change);
            store.unmount().await.unwrap();
        });
        let after = disk.bytes();
        assert_eq!((after[1024 + 92] & 4, after[1024 + 96] & 4), (4, 0));
        fsck(&after, "-fn", &[0]);
    }
}

#[test]
fn a_volume_of_revision_0_is_one_again_afterwards() {
    let place = tempfile::tempdir().unwrap();
    let Some(image) = made(place.path(), &["-t", "ext2", "-r", "0", "-b", "1024"], "8M") else { return };
    let disk = RecordingDisk::new(image.clone());
    let store = open(&disk);
    complete(async {
        let change = store.begin_for(8, 100).await.unwrap();
        let (first, count) = store.allocator().allocate_blocks(&change, 500, 100).await.unwrap();
        drop(change);
        store.commit().await.unwrap();
        assert_eq!(disk.bytes()[1024 + 76], 1);
        let crashed = disk.bytes();
        fsck(&crashed, "-p", &[0, 1]);
        let again = RecordingDisk::new(crashed);
        complete(open(&again).unmount()).unwrap();
        assert_eq!(again.bytes()[1024 + 76], 0);
        let change = store.begin(8).await.unwrap();
        store.allocator().free_blocks(&change, first, count).await.unwrap();
        drop(change);
        store.unmount().await.unwrap();
    });
    assert_eq!(disk.bytes()[1024 + 76], 0);
    fsck(&disk.bytes(), "-fn", &[0]);
}

#[test]
fn damaged_journals_are_refused_by_name_and_never_hang() {
    let disk = RecordingDisk::new(image_with_files(1024, 3 << 20));
    let store = open(&disk);
    for version in 1..20 {
        complete(replace(&store, 12 + version, version, 9)).unwrap();
    }
    complete(store.commit()).unwrap();
    let image = disk.bytes();
    let mark = |block: &[u8]| block.starts_with(&[0xc0, 0x3b, 0x39, 0x98]);
    let own: Vec<usize> = (0..image.len() / 1024).filter(|&block| mark(&image[block * 1024..][..1024])).collect();
    let head = own[0] * 1024;
    let patched = |offset: usize, bytes: &[u8]| {
        let mut image = image.clone();
        image[offset..offset + bytes.len()].copy_from_slice(bytes);
        reopened(image).err()
    };
    assert_eq!(patched(head, &[0]), Some(FormatError::Journal(JournalProblem::Magic(0x003b_3998)).into()));
    assert_eq!(patched(head + 43, &[0x11]), Some(FormatError::Journal(JournalProblem::Features(0x10)).into()));
    assert_eq!(patched(head + 12, &[1]), Some(FormatError::Journal(JournalProblem::Field("the block size")).into()));
    assert_eq!(patched(head + 16, &[1]), Some(FormatError::Journal(JournalProblem::Field("the length")).into()));
    assert_eq!(patched(head + 28, &[1]), Some(FormatError::Journal(JournalProblem::Field("the start")).into()));
    // With an empty journal, such a volume is readable.
    let mut clean = image.clone();
    clean[1024 + 96] &= !4;
    clean[head] = 0;
    let reason = open(&RecordingDisk::new(clean)).read_only_reason();
    assert_eq!(reason, Some(ReadOnlyReason::Journal(JournalProblem::Magic(0x003b_3998))));
    // The descriptor refers to a block outside the volume.
    assert_eq!(patched(head + 1024 + 12, &[0xff]), None, "the log begins elsewhere");
    let mut random = Random(9);
    for _ in 0..300 {
        let mut image = image.clone();
        for _ in 0..=random.below(4) {
            let block = own[random.below(own.len() as u64) as usize];
            image[block * 1024 + random.below(64) as usize] = random.below(256) as u8;
        }
        if let Ok(disk) = reopened(image) {
            let store = open(&disk);
            if store.read_only_reason().is_none() {
                complete(store.begin(1)).map(drop).unwrap_or(());
            }
        }
    }
    assert_eq!(state(&open(&RecordingDisk::new(image))), state(&store));
}
