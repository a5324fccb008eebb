//! Linux's tools find formatted disks clean, and no unnecessary blocks are written.

use std::fs;
use std::path::Path;

use crate::support;
use crate::volumes::{Disk, e2fsck, has_tools, run};
use ext2::complete;
use ext2::make::{Made, MakeError, MakeOptions, Style, make_empty};

fn options() -> MakeOptions {
    let mut label = [0; 16];
    label[..4].copy_from_slice(b"test");
    MakeOptions { label, uuid: [7; 16], hash_seed: [9; 16], reserved_percent: 5, ..MakeOptions::default() }
}

fn made(disk: &Disk, options: &MakeOptions) -> Made {
    complete(make_empty(&disk.any(), options)).unwrap()
}

fn shown(image: &Path) -> String {
    let (text, good) = run("dumpe2fs", &["-h", image.to_str().unwrap()]);
    assert!(good, "{text}");
    text
}

#[test]
fn every_size_and_style_is_clean() {
    if !has_tools() {
        return;
    }
    let place = support::folder();
    let image = place.path().join("image");
    let sizes = [100_000, 1_048_576, 3_000_320, 8 << 20, (8 << 20) + 1536, 17_000_000, 70 << 20];
    for block_bytes in [None, Some(1024), Some(2048), Some(4096)] {
        for size in sizes {
            for style in [Style::Usual, Style::Plain] {
                let disk = Disk::used(size);
                let options = MakeOptions { block_bytes, style, ..options() };
                let case = format!("{block_bytes:?}, {size} bytes, {style:?}");
                let made = match complete(make_empty(&disk.any(), &options)) {
                    Err(MakeError::TooSmall { min_bytes, .. }) if min_bytes > size as u64 => continue,
                    other => other.unwrap_or_else(|error| panic!("{case}: {error}")),
                };
                disk.save(&image);
                e2fsck(&image).unwrap_or_else(|text| panic!("{case}: {text}"));
                let text = shown(&image);
                let revision = if style == Style::Plain { "0 (original)" } else { "1 (dynamic)" };
                assert!(text.contains(revision), "{case}: {text}");
                assert!(
                    text.lines()
                        .any(|line| line.starts_with("Free blocks:") && line.ends_with(&made.free_blocks.to_string()))
                );
            }
        }
    }
}

#[test]
fn what_was_asked_for_is_there() {
    if !has_tools() {
        return;
    }
    let place = support::folder();
    let image = place.path().join("image");
    let disk = Disk::used(40 << 20);
    let made = made(&disk, &MakeOptions { inodes: Some(5000), block_bytes: Some(2048), ..options() });
    assert!((5000..5200).contains(&made.inodes));
    assert_eq!((made.block_bytes, made.blocks, made.reserved_blocks), (2048, 20480, 1024));
    disk.save(&image);
    let text = shown(&image);
    for part in [
        "Filesystem volume name:   test",
        "filetype sparse_super large_file",
        "dir_index",
        "Default directory hash:   half_md4",
        "07070707-0707-0707-0707-070707070707",
        "Reserved block count:     1024",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let (text, _) = run("debugfs", &["-R", "ls -l /", image.to_str().unwrap()]);
    assert!(text.contains("lost+found"), "{text}");
}

/// The reserved inodes are in the first group, however few inodes are requested.
#[test]
fn few_inodes_on_many_groups_are_clean() {
    if !has_tools() {
        return;
    }
    let place = support::folder();
    let image = place.path().join("image");
    for style in [Style::Usual, Style::Plain] {
        for (block_bytes, size) in [(1024, 64 << 20), (1024, 20 << 20), (2048, 100 << 20)] {
            for asked in [1, 11, 16, 64, 100] {
                let disk = Disk::used(size);
                let options = MakeOptions { inodes: Some(asked), block_bytes: Some(block_bytes), style, ..options() };
                let made = made(&disk, &options);
                assert!(made.inodes >= asked);
                disk.save(&image);
                e2fsck(&image).unwrap_or_else(|text| panic!("{asked} of {block_bytes}, {size} bytes: {text}"));
            }
        }
    }
}

/// A Linux program can fill a volume formatted here, and e2fsck then finds it clean.
#[test]
fn linux_writes_into_it() {
    if !has_tools() {
        return;
    }
    let place = support::folder();
    let image = place.path().join("image");
    let content = place.path().join("content");
    fs::write(&content, vec![3; 700_000]).unwrap();
    for style in [Style::Usual, Style::Plain] {
        let disk = Disk::used(10 << 20);
        made(&disk, &MakeOptions { style, ..options() });
        disk.save(&image);
        let script = place.path().join("script");
        let lines: String =
            (0..40).map(|index| format!("mkdir folder{index}\ncd folder{index}\nmkdir inner\ncd /\n")).collect();
        fs::write(&script, format!("{lines}write {} file\nsymlink link file\n", content.display())).unwrap();
        let (text, _) = run("debugfs", &["-w", "-f", script.to_str().unwrap(), image.to_str().unwrap()]);
        assert!(!text.contains("Could not"), "{text}");
        e2fsck(&image).unwrap();
    }
}

#[test]
fn most_of_the_disk_is_not_written() {
    let disk = Disk::used(256 << 20);
    made(&disk, &options());
    // Inode tables are one part in 32 of a disk of this size.
    assert!(disk.written.get() < (256 << 20) / 30, "{}", disk.written.get());
}

#[test]
fn refusals_say_why() {
    let refused =
        |bytes: usize, options: MakeOptions| complete(make_empty(&Disk::used(bytes).any(), &options)).unwrap_err();
    let error = refused(20_000, options());
    assert!(matches!(error, MakeError::TooSmall { disk_bytes: 20_000, .. }), "{error}");
    let MakeError::TooSmall { min_bytes, .. } = error else { unreachable!() };
    assert!(complete(make_empty(&Disk::used(min_bytes as usize).any(), &options())).is_ok());
    assert!(matches!(refused(min_bytes as usize - 1, options()), MakeError::TooSmall { .. }));
    assert_eq!(refused(0, options()), MakeError::TooSmall { disk_bytes: 0, min_bytes });
    assert_eq!(refused(1 << 20, MakeOptions { block_bytes: Some(512), ..options() }), MakeError::BlockSize(512));
    let reserved = MakeOptions { reserved_percent: 51, ..options() };
    assert_eq!(refused(1 << 20, reserved), MakeError::Reserved { asked: 51, most: 50 });
    for asked in [9000, u32::MAX] {
        assert_eq!(refused(1 << 20, MakeOptions { inodes: Some(asked), ..options() }), MakeError::Inodes(asked));
    }
    let disk = Disk { read_only: true, ..Disk::used(1 << 20) };
    assert_eq!(complete(make_empty(&disk.any(), &options())), Err(MakeError::ReadOnly));
}

/// Interrupted formatting leaves no volume: neither the old one nor half of the new one.
#[test]
fn a_cut_off_formatting_leaves_no_half_volume() {
    let first = Disk::used(20 << 20);
    made(&first, &MakeOptions { block_bytes: Some(1024), uuid: [1; 16], ..options() });
    let before = first.bytes.borrow().clone();
    first.writes.set(0);
    made(&first, &options());
    for cut in 1..first.writes.get() {
        let disk = Disk::new(before.clone());
        disk.writes_left.set(Some(cut));
        complete(make_empty(&disk.any(), &options())).unwrap_err();
        assert_eq!(disk.bytes.borrow()[1080..1082], [0, 0], "after {cut} writes");
    }
}
