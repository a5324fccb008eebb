//! Compares our verdict with that of `e2fsck -fn`, on volumes that are unusual but not damaged, and after repairs by
//! either.

use std::fs;
use std::path::Path;

use crate::support;
use crate::volumes::checking::{checked, lines};
use crate::volumes::damages::SUPER;
use crate::volumes::image::Image;
use crate::volumes::samples::{Sample, debugfs, small_samples};
use crate::volumes::{Disk, e2fsck, has_tools, run};
use ext2::check::{Mode, Outcome};

/// A volume, by name.
fn sample(place: &Path, name: &str) -> Image {
    let samples: Vec<Sample> = small_samples(place);
    Image::new(samples.into_iter().find(|sample| sample.name == name).unwrap().image)
}

/// Runs Linux's debugger on a volume.
fn changed(image: &Image, place: &Path, commands: &str) -> Image {
    let path = place.join("changed");
    support::save(&path, &image.bytes);
    debugfs(&path, commands);
    Image::new(fs::read(&path).unwrap())
}

/// Compares the verdicts, also after repairs by us and by e2fsck.
fn compare(name: &str, image: &Image, is_clean: bool, place: &Path) {
    let path = place.join("compared");
    support::save(&path, &image.bytes);
    let theirs = e2fsck(&path);
    let disk = Disk::new(image.bytes.clone());
    let (result, findings) = checked(&disk, Mode::Report);
    let told = lines(&findings);
    let ours = result.unwrap().outcome == Outcome::Clean;
    assert_eq!((ours, theirs.is_ok()), (is_clean, is_clean), "{name}: {told}---\n{theirs:?}");
    let (result, findings) = checked(&disk, Mode::Repair);
    assert_ne!(result.unwrap().outcome, Outcome::Faulty, "{name}: {}", lines(&findings));
    disk.save(&path);
    e2fsck(&path).unwrap_or_else(|text| panic!("{name}, repaired: {text}\n{}", lines(&findings)));
    support::save(&path, &image.bytes);
    run("e2fsck", &["-fy", path.to_str().unwrap()]);
    run("e2fsck", &["-fy", path.to_str().unwrap()]);
    let disk = Disk::new(fs::read(&path).unwrap());
    let (result, findings) = checked(&disk, Mode::Report);
    assert_eq!(result.unwrap().outcome, Outcome::Clean, "{name}, after e2fsck -fy: {}", lines(&findings));
}

#[test]
fn what_is_odd_but_sound_is_clean_for_both() {
    if !has_tools() {
        return;
    }
    let place = support::folder();
    let place = place.path();
    let usual = sample_of(place, "usual");
    let with = |make: &dyn Fn(&mut Image)| {
        let mut image = Image::new(usual.bytes.clone());
        make(&mut image);
        image
    };
    let sound: [(&str, Image); 6] = [
        ("not unmounted", with(&|image| image.put16(SUPER + 58, 0))),
        (
            "entries that do not say a kind",
            with(&|image| {
                for name in ["file", "folder", "link", "lost+found"] {
                    let at = image.entry(2, name);
                    image.bytes[at + 7] = 0;
                }
            }),
        ),
        (
            "an old backup of the superblock",
            with(&|image| {
                let backup = image.block(image.u32(SUPER + 20) + image.u32(SUPER + 32));
                image.put32(backup + 4, 1000);
            }),
        ),
        (
            "flags of descriptors without their feature",
            with(&|image| {
                let at = image.descriptor(0);
                image.put16(at + 18, 2);
            }),
        ),
        (
            "reserved inodes without a mode",
            with(&|image| {
                for inode in [9, 10] {
                    let at = image.inode(inode);
                    image.bytes[at + 26..at + 28].fill(0x5c);
                    image.bytes[at + 36..at + 100].fill(0x5c);
                }
            }),
        ),
        ("a journal whose feature is gone", {
            let journal = sample_of(place, "journal");
            changed(&journal, place, "feature -has_journal\n")
        }),
    ];
    for (name, image) in sound {
        compare(name, &image, true, place);
    }
}

/// A sample whose content directory does not exist yet.
fn sample_of(place: &Path, name: &str) -> Image {
    let own = place.join(name);
    fs::create_dir(&own).unwrap();
    sample(&own, name)
}

#[test]
fn special_files_with_attributes_are_sound() {
    if !has_tools() {
        return;
    }
    let place = support::folder();
    let usual = sample(place.path(), "usual");
    let commands = "ea_set pipe user.name value\nea_set device user.name value\nea_set link user.name value\n";
    compare("special files", &changed(&usual, place.path(), commands), true, place.path());
}

/// Bad blocks in the inode table: the inodes in them are unusable.
#[test]
fn bad_blocks_in_an_inode_table_are_no_fault() {
    if !has_tools() {
        return;
    }
    let place = support::folder();
    let mut image = sample(place.path(), "usual");
    // The last block of the second group's table, without used inodes; and a free block.
    let per_group = image.u32(SUPER + 40);
    let table = image.u32(image.descriptor(1) + 8);
    let last = table + per_group * u32::from(image.u16(SUPER + 88)) / 1024 - 1;
    let at = image.block(last);
    image.bytes[at..at + 1024].fill(0x77);
    let inode = image.inode(1);
    image.put32(inode + 4, 1024);
    image.put32(inode + 28, 2);
    image.put32(inode + 40, last);
    let place = place.path();
    fs::write(place.join("bad"), &image.bytes).unwrap();
    // Marks its inodes, which are then unusable.
    run("e2fsck", &["-fy", place.join("bad").to_str().unwrap()]);
    run("e2fsck", &["-fy", place.join("bad").to_str().unwrap()]);
    let image = Image::new(fs::read(place.join("bad")).unwrap());
    assert_eq!(image.u32(image.inode(1) + 40), last);
    compare("a bad block in a table", &image, true, place);
}

/// No system mounts a volume whose inode size is 0, but its check uses a backup (`f_zero_inode_size` of e2fsprogs).
#[test]
fn an_inode_size_of_zero_comes_from_the_backup() {
    if !has_tools() {
        return;
    }
    for inode_bytes in [128u16, 256] {
        let place = support::folder();
        let place = place.path();
        let words = ["-t", "ext2", "-b", "1024", "-I", &inode_bytes.to_string()];
        let mut image = made(place, &words, "12M", None);
        image.put16(SUPER + 88, 0);
        compare("inode size 0", &image, true, place);
        let disk = Disk::new(image.bytes.clone());
        let (_, findings) = checked(&disk, Mode::Report);
        assert!(lines(&findings).contains("inode_size is 0"), "{}", lines(&findings));
        checked(&disk, Mode::Repair).0.unwrap();
        disk.save(&place.join("repaired"));
        assert_eq!(Image::new(fs::read(place.join("repaired")).unwrap()).u16(SUPER + 88), inode_bytes);
        // With a second fault, the primary superblock is not trusted.
        image.put32(SUPER + 32, 4096);
        let disk = Disk::new(image.bytes);
        assert_eq!(checked(&disk, Mode::Report).0.unwrap().outcome, Outcome::Faulty);
    }
    // One group: there is no backup.
    let place = support::folder();
    let mut image = made(place.path(), &["-t", "ext2", "-b", "1024"], "4M", None);
    image.put16(SUPER + 88, 0);
    assert!(checked(&Disk::new(image.bytes.clone()), Mode::Report).0.is_err());
    fs::write(place.path().join("alone"), &image.bytes).unwrap();
    e2fsck(&place.path().join("alone")).unwrap_err();
}

/// A volume created by Linux's tools with these arguments, followed by `resize2fs` if a size is given.
fn made(place: &Path, words: &[&str], size: &str, resized: Option<&str>) -> Image {
    let path = place.join("made");
    let path = path.to_str().unwrap();
    let (text, is_made) = run("mke2fs", &[&["-q", "-F"], words, &[path, size]].concat());
    assert!(is_made, "{words:?}: {text}");
    if let Some(size) = resized {
        let (text, is_resized) = run("resize2fs", &["-f", path, size]);
        assert!(is_resized, "{words:?}: {text}");
    }
    Image::new(fs::read(path).unwrap())
}

#[test]
fn volumes_of_other_systems_and_with_small_tables_are_sound() {
    if !has_tools() {
        return;
    }
    let place = support::folder();
    let place = place.path();
    // Four bytes of an inode have another meaning on the Hurd: its translator's block.
    let mut hurd = made(place, &["-t", "ext2", "-o", "hurd", "-b", "1024"], "8M", None);
    let root = hurd.inode(2);
    hurd.bytes[root + 116..root + 128].fill(0);
    compare("of the Hurd", &hurd, true, place);
    // The minimum of inodes of a group.
    let words = ["-t", "ext2", "-b", "1024", "-N", "16", "-I", "128"];
    compare("small tables", &made(place, &words, "12M", None), true, place);
    compare("small tables, grown", &made(place, &words, "12M", Some("40M")), true, place);
    compare("small tables, shrunk", &made(place, &words, "40M", Some("12M")), true, place);
}

/// The maximum link count is 65,000; more subfolders are counted as 1, with the feature `dir_nlink`.
#[test]
#[ignore = "takes minutes"]
fn a_folder_with_more_subfolders_than_a_count_can_tell_is_counted_as_e2fsck_does() {
    if !has_tools() {
        return;
    }
    let place = support::folder();
    let content = place.path().join("content");
    for number in 0..65_002 {
        fs::create_dir_all(content.join(format!("many/{number}"))).unwrap();
    }
    let words = ["-t", "ext2", "-b", "1024", "-N", "66000", "-d", content.to_str().unwrap()];
    let image = made(place.path(), &words, "120M", None);
    compare("many subfolders", &image, false, place.path());
}
