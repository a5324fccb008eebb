//! Volumes with one fault each: every fault is found, named and repaired, also according to Linux's check.

use std::fs;
use std::path::Path;

use crate::support;
use crate::volumes::checking::{checked, lines};
use crate::volumes::damaged_folders::FOLDER_DAMAGES;
use crate::volumes::damaged_inodes::INODE_DAMAGES;
use crate::volumes::damages::{DESTROYED, Damage, GROUP_DAMAGES, JOURNAL_DAMAGES, SUPER, SUPERBLOCK_DAMAGES};
use crate::volumes::image::Image;
use crate::volumes::samples::{Sample, debugfs, samples};
use crate::volumes::{Disk, e2fsck, has_tools, run};
use ext2::check::{CheckError, CheckOptions, Mode, Outcome, check};
use ext2::complete;
use ext2::make::{MakeOptions, make_empty};

#[test]
fn sound_volumes_are_clean_and_not_written() {
    if !has_tools() {
        return;
    }
    let place = support::folder();
    for sample in samples(place.path()) {
        for mode in [Mode::Report, Mode::Preen, Mode::Repair] {
            let disk = Disk::new(sample.image.clone());
            let (result, findings) = checked(&disk, mode);
            assert_eq!(lines(&findings), "", "{}", sample.name);
            assert_eq!(result.unwrap().outcome, Outcome::Clean, "{}", sample.name);
            assert_eq!(disk.writes.get(), 0, "{}", sample.name);
        }
    }
}

/// Damages a volume, checks, preens, repairs, and checks again. Returns an error on any deviation.
fn try_damage(sample: &Sample, damage: &Damage, place: &Path) -> Result<bool, String> {
    let mut image = Image::new(sample.image.clone());
    let groups = image.u32(SUPER + 4).div_ceil(image.u32(SUPER + 32));
    if !(damage.make)(&mut image) {
        return Ok(false);
    }
    if damage.words == DESTROYED && groups == 1 {
        // There is only one group, and so no backup.
        return Ok(false);
    }
    let path = place.join("damaged");
    let looked = Disk::new(image.bytes.clone());
    let (result, findings) = checked(&looked, Mode::Report);
    let is_sound = findings.iter().all(|finding| finding.fault.is_note());
    let verdict = if is_sound { Outcome::Clean } else { Outcome::Faulty };
    if looked.writes.get() > 0 || findings.is_empty() || result.map(|summary| summary.outcome) != Ok(verdict) {
        return Err(format!("looking: {result:?}, {} writes\n{}", looked.writes.get(), lines(&findings)));
    }
    let told = lines(&findings);
    if damage.lossless {
        let disk = Disk::new(image.bytes.clone());
        let (result, findings) = checked(&disk, Mode::Preen);
        if result.map(|summary| summary.outcome) != Ok(Outcome::Repaired) {
            return Err(format!("preening: {result:?}\n{}", lines(&findings)));
        }
        disk.save(&path);
        e2fsck(&path).map_err(|text| format!("repaired: {text}\n{}", lines(&findings)))?;
    }
    let disk = Disk::new(image.bytes);
    let (result, findings) = checked(&disk, Mode::Repair);
    let repaired = lines(&findings);
    if result.map(|summary| summary.outcome) != Ok(Outcome::Repaired) {
        return Err(format!("repairing: {result:?}\n{repaired}"));
    }
    if !repaired.contains(damage.words) && !told.contains(damage.words) {
        return Err(format!("`{}` was not told:\n{told}---\n{repaired}", damage.words));
    }
    disk.save(&path);
    e2fsck(&path).map_err(|text| format!("repaired: {text}\n{repaired}"))?;
    let (result, findings) = checked(&disk, Mode::Repair);
    match result.map(|summary| summary.outcome) {
        Ok(Outcome::Clean) => Ok(true),
        other => Err(format!("again: {other:?}\n{}---\n{repaired}", lines(&findings))),
    }
}

fn try_all(damages: &[Damage]) {
    if !has_tools() {
        return;
    }
    let place = support::folder();
    let samples = samples(place.path());
    let mut failures = String::new();
    for damage in damages {
        let mut made = 0;
        for sample in &samples {
            match try_damage(sample, damage, place.path()) {
                Ok(done) => made += usize::from(done),
                Err(text) => failures += &format!("=== {} ({}): {text}\n", damage.name, sample.name),
            }
        }
        if made == 0 && !failures.contains(damage.name) {
            failures += &format!("=== {}: no volume can be damaged so\n", damage.name);
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

#[test]
fn damaged_superblocks_are_repaired() {
    try_all(SUPERBLOCK_DAMAGES);
}

#[test]
fn damaged_groups_are_repaired() {
    try_all(GROUP_DAMAGES);
}

#[test]
fn damaged_inodes_are_repaired() {
    try_all(INODE_DAMAGES);
}

#[test]
fn damaged_folders_are_repaired() {
    try_all(FOLDER_DAMAGES);
}

#[test]
fn there_are_enough_damages() {
    let all = [SUPERBLOCK_DAMAGES, GROUP_DAMAGES, INODE_DAMAGES, FOLDER_DAMAGES].map(<[Damage]>::len);
    assert!(all.iter().sum::<usize>() >= 100, "{all:?}");
}

#[test]
fn damaged_journals_are_repaired() {
    try_all(JOURNAL_DAMAGES);
}

/// A journal filled by Linux's debugger is replayed; a read-only check sees the volume as if it were.
#[test]
fn what_a_journal_holds_is_put_in_its_place() {
    if !has_tools() {
        return;
    }
    let place = support::folder();
    let sample = samples(place.path()).into_iter().find(|sample| sample.name == "journal").unwrap();
    let image = Image::new(sample.image.clone());
    let block = image.block_of(image.find("other"), 4);
    let (path, content) = (place.path().join("image"), place.path().join("block"));
    fs::write(&path, &sample.image).unwrap();
    // Begins with the journal's magic number, so that it is escaped.
    let mut bytes = vec![0x77; 1024];
    bytes[..4].copy_from_slice(&[0xc0, 0x3b, 0x39, 0x98]);
    fs::write(&content, &bytes).unwrap();
    debugfs(&path, &format!("jo\njw -b {block} {}\njc\n", content.display()));
    let filled = fs::read(&path).unwrap();
    let at = image.block(block);
    assert_ne!(filled[at..at + 1024], bytes[..]);
    for mode in [Mode::Report, Mode::Preen, Mode::Repair] {
        let disk = Disk::new(filled.clone());
        let (result, findings) = checked(&disk, mode);
        let told = lines(&findings);
        assert!(told.starts_with("journal: it holds changes that are not in their places"), "{told}");
        if mode == Mode::Report {
            assert_eq!((result.unwrap().outcome, disk.writes.get()), (Outcome::Faulty, 0), "{told}");
            continue;
        }
        assert_eq!(result.unwrap().outcome, Outcome::Repaired, "{told}");
        assert_eq!(disk.bytes.borrow()[at..at + 1024], bytes[..]);
        disk.save(&path);
        e2fsck(&path).unwrap();
        assert_eq!(checked(&disk, Mode::Repair).0.unwrap().outcome, Outcome::Clean);
    }
}

#[test]
fn what_cannot_be_checked_is_refused_by_name() {
    if !has_tools() {
        return;
    }
    let place = support::folder();
    let path = place.path().join("image");
    let refused = |arguments: &[&str]| {
        let mut all = vec!["-q", "-F"];
        all.extend_from_slice(arguments);
        all.extend_from_slice(&[path.to_str().unwrap(), "30M"]);
        assert!(run("mke2fs", &all).1);
        let disk = Disk::new(fs::read(&path).unwrap());
        let text = checked(&disk, Mode::Repair).0.unwrap_err().to_string();
        assert_eq!(disk.writes.get(), 0);
        fs::remove_file(&path).unwrap();
        text
    };
    assert!(refused(&["-t", "ext4"]).contains("extent"));
    assert!(refused(&["-t", "ext2", "-O", "quota"]).contains("quota"));
    assert!(refused(&["-t", "ext2", "-O", "metadata_csum"]).contains("metadata_csum"));
    let noise = Disk::new(vec![0xee; 1 << 20]);
    let error = checked(&noise, Mode::Repair).0.unwrap_err();
    assert!(error.to_string().contains("not an ext2 disk"), "{error}");
    assert!(checked(&Disk::new(vec![0; 100]), Mode::Report).0.is_err());
    let disk = Disk { read_only: true, ..Disk::used(1 << 20) };
    assert_eq!(checked(&disk, Mode::Preen).0, Err(CheckError::ReadOnly));
    let disk = Disk::used(40 << 20);
    complete(make_empty(&disk.any(), &MakeOptions::default())).unwrap();
    let options = CheckOptions { mode: Mode::Report, memory_bytes: 1 << 20 };
    let result = complete(check(&disk.any(), &options, &mut |_| ()));
    assert!(matches!(result, Err(CheckError::MemoryLimit { allowed: 1_048_576, .. })), "{result:?}");
}

/// A repair interrupted at any write can be repeated without further loss.
#[test]
fn a_repair_can_be_cut_off_anywhere() {
    if !has_tools() {
        return;
    }
    let place = support::folder();
    let samples = samples(place.path());
    let path = place.path().join("image");
    let kept = ["file", "small"];
    for name in [
        "two files with one table",
        "a folder without a name",
        "no root at all",
        "a hole at the beginning of a folder",
        "a file that was being cut",
    ] {
        let damage = damage(name);
        let mut image = Image::new(samples[0].image.clone());
        let contents = kept.map(|name| image.find(name)).map(|inode| file_bytes(&image, inode));
        let inodes = kept.map(|name| image.find(name));
        assert!((damage.make)(&mut image));
        let whole = Disk::new(image.bytes.clone());
        checked(&whole, Mode::Repair).0.unwrap();
        let total = whole.writes.get();
        for cut in 0..total {
            let disk = Disk::new(image.bytes.clone());
            disk.writes_left.set(Some(cut));
            checked(&disk, Mode::Repair).0.unwrap_err();
            disk.writes_left.set(None);
            let (result, findings) = checked(&disk, Mode::Repair);
            let told = lines(&findings);
            let clean = matches!(result.map(|summary| summary.outcome), Ok(Outcome::Clean | Outcome::Repaired));
            assert!(clean, "{name}, {cut} of {total}: {result:?}\n{told}");
            let repaired = Image::new(disk.bytes.borrow().clone());
            for (inode, content) in inodes.into_iter().zip(&contents) {
                assert!(file_bytes(&repaired, inode) == *content, "{name}, {cut} of {total}: {told}");
            }
            if cut.is_multiple_of(16) || cut + 2 > total {
                disk.save(&path);
                e2fsck(&path).unwrap_or_else(|text| panic!("{name}, {cut} of {total}: {text}\n{told}"));
            }
        }
    }
}

fn damage(name: &str) -> &'static Damage {
    INODE_DAMAGES.iter().chain(FOLDER_DAMAGES).find(|damage| damage.name == name).unwrap()
}

/// The first blocks of a file's content.
fn file_bytes(image: &Image, inode: u32) -> Vec<u8> {
    let blocks = (image.u32(image.inode(inode) + 4) as usize).div_ceil(image.block_bytes()).min(100);
    let bytes = (0..blocks).flat_map(|logical| {
        let at = image.block(image.block_of(inode, logical));
        image.bytes[at..at + image.block_bytes()].to_vec()
    });
    bytes.collect()
}
