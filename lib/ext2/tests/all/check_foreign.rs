//! Disks with other content than the ext2 volume whose remains are on them: a repair does not write to them.

use std::fs;
use std::path::Path;

use crate::support;
use crate::volumes::checking::checked;
use crate::volumes::image::Image;
use crate::volumes::samples::samples;
use crate::volumes::{Disk, has_tools, run};
use ext2::check::{CheckError, Mode};

const SUPERBLOCK: usize = 1024;
const MAGIC: usize = SUPERBLOCK + 56;

/// Formats an existing file with Linux's tool.
fn format(path: &Path, arguments: &[&str]) {
    let mut all = vec!["-q", "-F", "-E", "nodiscard"];
    all.extend_from_slice(arguments);
    all.push(path.to_str().unwrap());
    let (text, good) = run("mke2fs", &all);
    assert!(good, "{text}");
}

/// An ext4 volume over an older ext2 volume whose backups it did not overwrite.
fn ext4_over_ext2(place: &Path) -> Vec<u8> {
    let (path, folder) = (place.join("image"), place.join("files"));
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("file"), vec![7; 50_000]).unwrap();
    fs::File::create(&path).unwrap().set_len(128 << 20).unwrap();
    format(&path, &["-t", "ext2", "-b", "1024"]);
    format(&path, &["-t", "ext4", "-b", "4096", "-d", folder.to_str().unwrap()]);
    let bytes = fs::read(&path).unwrap();
    let is_left = |group: usize| bytes[(1 + group * 8192) * 1024 + 56..][..2] == [0x53, 0xef];
    assert!([1, 3, 5, 7, 9].into_iter().any(is_left), "no backup of the older volume is left");
    bytes
}

/// Checks that no mode writes anything; returns the error.
fn refused(bytes: &[u8], what: &str) -> CheckError {
    let mut last = None;
    for mode in [Mode::Report, Mode::Preen, Mode::Repair] {
        let disk = Disk::new(bytes.to_vec());
        let error = checked(&disk, mode).0.expect_err(what);
        assert_eq!(disk.writes.get(), 0, "{what}: {error}");
        assert!(last.is_none_or(|last| last == error), "{what}: {last:?} or {error:?}");
        last = Some(error);
    }
    last.unwrap()
}

#[test]
fn an_intact_ext4_volume_over_an_older_ext2_volume_is_not_repaired() {
    if !has_tools() {
        return;
    }
    let place = support::folder();
    let bytes = ext4_over_ext2(place.path());
    assert!(refused(&bytes, "intact").to_string().contains("extent"));
    let mut without_magic = bytes.clone();
    without_magic[MAGIC..MAGIC + 2].fill(0);
    assert!(refused(&without_magic, "no magic number").to_string().contains("extent"));
    let mut destroyed = bytes.clone();
    destroyed[SUPERBLOCK..2 * SUPERBLOCK].fill(0);
    let error = refused(&destroyed, "no superblock");
    assert!(matches!(error, CheckError::Unproven { .. }), "{error}");
    let mut contradicts_itself = bytes;
    // Blocks of 256 MiB; without the features, the volume would be supported.
    contradicts_itself[SUPERBLOCK + 24] = 18;
    contradicts_itself[SUPERBLOCK + 92..SUPERBLOCK + 104].fill(0);
    let error = refused(&contradicts_itself, "an impossible block size");
    assert!(error.to_string().contains("268435456"), "{error}");
}

#[test]
fn a_backup_of_an_older_volume_is_not_believed() {
    if !has_tools() {
        return;
    }
    let place = support::folder();
    let path = place.path().join("image");
    fs::File::create(&path).unwrap().set_len(30 << 20).unwrap();
    format(&path, &["-t", "ext2", "-b", "1024"]);
    format(&path, &["-t", "ext2", "-b", "4096"]);
    let sound = fs::read(&path).unwrap();
    // One group, so that the newer volume has no backup.
    let mut damaged = sound.clone();
    damaged[SUPERBLOCK + 40..SUPERBLOCK + 44].fill(0);
    let error = refused(&damaged, "no inodes in a group");
    assert!(matches!(error, CheckError::Superblock { field: "inodes_per_group", says: 0 }), "{error}");
    let mut wiped = sound.clone();
    wiped[MAGIC] = 0;
    refused(&wiped, "no magic number");
    let mut destroyed = sound;
    destroyed[SUPERBLOCK..2 * SUPERBLOCK].fill(0);
    refused(&destroyed, "no superblock");
}

#[test]
fn features_and_revisions_of_others_end_the_check() {
    if !has_tools() {
        return;
    }
    let place = support::folder();
    let sample = samples(place.path()).into_iter().find(|sample| sample.name == "usual").unwrap();
    for (offset, value, words) in [
        (76, 9, "format revision 9"),
        (96, 0x8000_0002, "unknown feature 0x80000000"),
        (96, 0x42, "extent"),
        (100, 0x403, "metadata_csum"),
        (92, 0x400, "fast_commit"),
        (24, 5, "32768 bytes"),
    ] {
        let mut image = Image::new(sample.image.clone());
        image.put32(SUPERBLOCK + offset, value);
        let error = refused(&image.bytes, words).to_string();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn a_volume_without_its_magic_number_is_not_restored_under_what_replaced_it() {
    if !has_tools() {
        return;
    }
    let place = support::folder();
    let sample = samples(place.path()).into_iter().find(|sample| sample.name == "usual").unwrap();
    let mut wiped = sample.image;
    wiped[MAGIC..MAGIC + 2].fill(0);
    let end = wiped.len();
    let raid = 0xa92b_4efc_u32.to_le_bytes();
    let signs: [(&str, usize, &[u8]); 14] = [
        ("XFS", 0, b"XFSB"),
        ("NTFS", 3, b"NTFS    "),
        ("LUKS", 0, b"LUKS\xba\xbe"),
        ("LVM", 512, b"LABELONE"),
        ("GPT", 512, b"EFI PART"),
        ("GPT", end - 512, b"EFI PART"),
        ("swap", 4086, b"SWAPSPACE2"),
        ("ISO 9660", 32_769, b"CD001"),
        ("btrfs", 65_600, b"_BHRfS_M"),
        ("RAID", 4096, &raid),
        ("RAID", end / 65_536 * 65_536 - 65_536, &raid),
        ("RAID", (end - 8192) / 4096 * 4096, &raid),
        ("FAT", 82, b"FAT32   "),
        (
            "MBR",
            446,
            &[
                0x80, 1, 1, 0, 0x83, 0, 0, 0, 0, 8, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x55,
                0xaa,
            ],
        ),
    ];
    for (kind, at, bytes) in signs {
        let mut disk = wiped.clone();
        disk[at..at + bytes.len()].copy_from_slice(bytes);
        let error = refused(&disk, kind);
        assert!(matches!(error, CheckError::Foreign { .. }) && error.to_string().contains(kind), "{kind}: {error}");
    }
    // Without any of them the volume is recovered.
    let disk = Disk::new(wiped);
    assert!(checked(&disk, Mode::Repair).0.unwrap().left == 0);
}
