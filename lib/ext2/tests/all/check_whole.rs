//! A repair is atomic: state after a crash, a disk failure, and an allocation failure.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::support::{self, AnyDisk};
use crate::volumes::chance::{Chance, damage};
use crate::volumes::checking::{MEMORY_BYTES, checked, checked_within, lines};
use crate::volumes::damaged_folders::FOLDER_DAMAGES;
use crate::volumes::damaged_inodes::INODE_DAMAGES;
use crate::volumes::damages::{Damage, GROUP_DAMAGES, JOURNAL_DAMAGES, SUPERBLOCK_DAMAGES};
use crate::volumes::image::Image;
use crate::volumes::samples::{Sample, debugfs, samples, small_samples};
use crate::volumes::{Disk, Event, e2fsck, has_tools};
use ext2::check::{CheckError, Mode, Outcome};
use ext2::{Kind, MemoryDisk, MountOptions, ROOT_INODE, Volume, complete};

/// Approximate maximum of interruptions of a repair.
const MAX_CUTS: usize = 10;

/// Returns the content of each linked file, by inode.
fn files(bytes: &[u8]) -> BTreeMap<u32, Vec<u8>> {
    let options = MountOptions { access: ext2::Access::ReadOnly, ..MountOptions::default() };
    let volume = complete(Volume::mount(AnyDisk::new(MemoryDisk::new(bytes.to_vec())), options)).unwrap();
    let (mut files, mut folders) = (BTreeMap::new(), vec![ROOT_INODE]);
    while let Some(folder) = folders.pop() {
        let mut position = 0;
        loop {
            let listing = complete(volume.list(folder, position, 200)).unwrap();
            for entry in listing.entries.iter().filter(|entry| entry.name != b"." && entry.name != b"..") {
                let inode = complete(volume.inode(entry.inode)).unwrap();
                match inode.kind {
                    Kind::Directory => folders.push(entry.inode),
                    Kind::File => {
                        let mut content = vec![0; inode.size.min(100_000) as usize];
                        let file = complete(volume.open(entry.inode)).unwrap();
                        complete(file.read(0, &mut content)).unwrap();
                        files.insert(entry.inode, content);
                    }
                    _ => {}
                }
            }
            match listing.next {
                Some(next) => position = next,
                None => break,
            }
        }
    }
    files
}

/// Applies a part of a disk's operations: all up to the last flush before `end`, and random sectors of the later ones,
/// as after a power loss.
fn crashed(before: &[u8], events: &[Event], end: usize, chance: &mut Chance) -> Vec<u8> {
    let mut bytes = before.to_vec();
    let settled = events[..end].iter().rposition(|event| *event == Event::Flush).unwrap_or(0);
    for (index, event) in events[..end].iter().enumerate() {
        let Event::Write { offset, bytes: written } = event else { continue };
        for (sector, part) in written.chunks(512).enumerate() {
            if index < settled || chance.below(2) == 0 {
                let at = offset + sector * 512;
                bytes[at..at + part.len()].copy_from_slice(part);
            }
        }
    }
    bytes
}

/// Repairs a volume; returns the writes, and the repaired volume. `None` if it cannot be repaired: it is unchanged.
fn repaired(bytes: &[u8], name: &str) -> Option<(Vec<Event>, Vec<u8>)> {
    let disk = Disk::new(bytes.to_vec());
    *disk.record.borrow_mut() = Some(Vec::new());
    let (result, findings) = checked(&disk, Mode::Repair);
    match result {
        Ok(summary) if summary.outcome != Outcome::Faulty => Some((disk.record.take().unwrap(), disk.bytes.take())),
        result => {
            assert!(*disk.bytes.borrow() == bytes, "{name}: {result:?}, but it was written\n{}", lines(&findings));
            None
        }
    }
}

/// Interrupts a repair at each of its steps (at random ones if there are many), repairs the result, and compares.
fn cut_off_everywhere(bytes: &[u8], name: &str, path: &Path, chance: &mut Chance) -> usize {
    let Some((events, whole)) = repaired(bytes, name) else { return 0 };
    let wanted = files(&whole);
    for end in 0..events.len() {
        if chance.below(events.len()) > MAX_CUTS {
            continue;
        }
        let left = crashed(bytes, &events, end, chance);
        let disk = Disk::new(left);
        let (result, findings) = checked(&disk, Mode::Repair);
        let told = lines(&findings);
        let clean = matches!(&result, Ok(summary) if summary.outcome != Outcome::Faulty);
        assert!(clean, "{name}, {end} of {}: {result:?}\n{told}", events.len());
        let again = disk.bytes.take();
        let found = files(&again);
        for (inode, content) in &wanted {
            let same = found.get(inode) == Some(content);
            assert!(same, "{name}, {end} of {}: file {inode} is lost or changed\n{told}", events.len());
        }
        if chance.below(12) == 0 {
            support::save(path, &again);
            e2fsck(path).unwrap_or_else(|text| panic!("{name}, {end} of {}: {text}\n{told}", events.len()));
        }
    }
    events.len()
}

fn all_damages() -> impl Iterator<Item = &'static Damage> {
    [SUPERBLOCK_DAMAGES, GROUP_DAMAGES, INODE_DAMAGES, FOLDER_DAMAGES, JOURNAL_DAMAGES].into_iter().flatten()
}

#[test]
fn a_repair_that_the_machine_dies_in_can_be_done_again() {
    if !has_tools() {
        return;
    }
    let place = support::folder();
    let (samples, path) = (samples(place.path()), place.path().join("image"));
    let mut chance = Chance(1);
    for (index, damage) in all_damages().enumerate() {
        // Each damage on one of the two volumes.
        for turn in 0..samples.len() {
            let sample = &samples[(index + turn) % samples.len()];
            let mut image = Image::new(sample.image.clone());
            if !(damage.make)(&mut image) {
                continue;
            }
            if cut_off_everywhere(&image.bytes, damage.name, &path, &mut chance) > 0 {
                break;
            }
        }
    }
}

#[test]
fn a_repair_of_damage_by_chance_can_be_done_again() {
    if !has_tools() {
        return;
    }
    let place = support::folder();
    let (samples, path) = (small_samples(place.path()), place.path().join("image"));
    // More seeds: `EXT2_CHECK_SEEDS=first..end`.
    let seeds = std::env::var("EXT2_CHECK_SEEDS").ok();
    let seeds = seeds.as_deref().and_then(|text| text.split_once("..")).unwrap_or(("0", "12"));
    let mut steps = 0;
    for seed in seeds.0.parse().unwrap()..seeds.1.parse().unwrap() {
        for Sample { name, image } in &samples {
            let mut chance = Chance(seed);
            let mut image = Image::new(image.clone());
            damage(&mut image, &mut chance);
            steps += cut_off_everywhere(&image.bytes, &format!("{name}, seed {seed}"), &path, &mut chance);
        }
    }
    assert!(steps > 100, "only {steps} steps");
}

/// A journal filled by Linux's debugger, so that a repair replays it first.
fn with_changes_in_journal(place: &Path) -> Vec<u8> {
    let sample = samples(place).into_iter().find(|sample| sample.name == "journal").unwrap();
    let (path, content) = (place.join("journal"), place.join("block"));
    support::save(&path, &sample.image);
    let image = Image::new(sample.image.clone());
    fs::write(&content, vec![0x77; 1024]).unwrap();
    let blocks = [image.block_of(image.find("other"), 4), image.block_of(image.find("file"), 9)];
    let script: String = blocks.map(|block| format!("jw -b {block} {}\n", content.display())).concat();
    debugfs(&path, &format!("jo\n{script}jc\n"));
    fs::read(&path).unwrap()
}

#[test]
fn a_repair_with_a_journal_to_replay_can_be_done_again() {
    if !has_tools() {
        return;
    }
    let place = support::folder();
    let path = place.path().join("image");
    let mut image = Image::new(with_changes_in_journal(place.path()));
    let mut chance = Chance(7);
    cut_off_everywhere(&image.bytes, "a journal", &path, &mut chance);
    for name in ["two files with one table", "a folder without a name", "a hole at the beginning of a folder"] {
        let damage = all_damages().find(|damage| damage.name == name).unwrap();
        assert!((damage.make)(&mut image), "{name}");
    }
    let steps = cut_off_everywhere(&image.bytes, "a journal and more", &path, &mut chance);
    assert!(steps > 10, "only {steps} steps");
}

/// A volume with several faults, whose repair also allocates blocks.
fn damaged(place: &Path) -> Vec<u8> {
    let mut image = Image::new(small_samples(place).swap_remove(0).image);
    for name in ["two files with one table", "a folder without a name", "a hole at the beginning of a folder"] {
        let damage = all_damages().find(|damage| damage.name == name).unwrap();
        assert!((damage.make)(&mut image), "{name}");
    }
    image.bytes
}

/// The first repair changes the superblock's times, the second only the pointer to the log.
#[test]
fn a_repair_in_the_second_of_the_last_check_leaves_no_log_to_take_up() {
    if !has_tools() {
        return;
    }
    let place = support::folder();
    let damage = all_damages().find(|damage| damage.name == "count of names").unwrap();
    for sample in small_samples(place.path()) {
        let mut image = Image::new(sample.image);
        assert!((damage.make)(&mut image), "{}", sample.name);
        let mut damaged = image.bytes;
        for _ in 0..2 {
            let (_, whole) = repaired(&damaged, &sample.name).unwrap();
            let superblock = &whole[1024..2048];
            assert!(superblock[0x3d8..0x3f8].iter().all(|&byte| byte == 0), "{}: the pointer is left", sample.name);
            assert_eq!(superblock[58] & 1, 1, "{}: it is not clean", sample.name);
            damaged[1024..2048].copy_from_slice(superblock);
            let (result, findings) = checked(&Disk::new(whole), Mode::Report);
            assert_eq!(result.unwrap().outcome, Outcome::Clean, "{}: {}", sample.name, lines(&findings));
        }
    }
}

#[test]
fn a_write_that_fails_leaves_the_volume_as_it_was() {
    if !has_tools() {
        return;
    }
    let place = support::folder();
    let bytes = damaged(place.path());
    let whole = Disk::new(bytes.clone());
    checked(&whole, Mode::Repair).0.unwrap();
    for failing in 0..whole.writes.get() {
        let disk = Disk::new(bytes.clone());
        disk.failing_write.set(Some(failing));
        let error = checked(&disk, Mode::Repair).0.unwrap_err();
        assert!(matches!(error, CheckError::Write(..)), "{failing}: {error}");
        assert!(*disk.bytes.borrow() == bytes, "{failing}: the volume was changed");
        // It can be repaired when the disk works again.
        assert_eq!(checked(&disk, Mode::Repair).0.unwrap().outcome, Outcome::Repaired);
        assert!(disk.bytes == whole.bytes, "{failing}");
    }
    assert!(whole.writes.get() > 5);
}

#[test]
fn a_disk_that_is_gone_in_the_middle_is_reported_as_such() {
    if !has_tools() {
        return;
    }
    let place = support::folder();
    let disk = Disk::new(damaged(place.path()));
    disk.writes_left.set(Some(7));
    let error = checked(&disk, Mode::Repair).0.unwrap_err();
    assert!(matches!(error, CheckError::Unfinished { .. }), "{error:?}");
}

#[test]
fn a_repair_without_enough_memory_leaves_the_volume_as_it_was() {
    if !has_tools() {
        return;
    }
    let place = support::folder();
    let bytes = damaged(place.path());
    let disk = Disk::new(bytes.clone());
    let Err(CheckError::MemoryLimit { needed, .. }) = checked_within(&disk, Mode::Repair, 0).0 else {
        panic!("no memory is enough")
    };
    let (mut memory_bytes, mut refused) = (needed, 0);
    loop {
        match checked_within(&disk, Mode::Repair, memory_bytes).0 {
            Err(CheckError::TooManyChanges { allowed }) => assert_eq!(allowed, memory_bytes - needed),
            result => {
                assert_eq!(result.unwrap().outcome, Outcome::Repaired);
                break;
            }
        }
        assert!(*disk.bytes.borrow() == bytes, "{memory_bytes}: the volume was changed");
        (memory_bytes, refused) = (memory_bytes + 500, refused + 1);
        assert!(memory_bytes < MEMORY_BYTES);
    }
    assert!(refused > 10, "only {refused} limits were too low");
}

#[test]
fn a_repair_without_enough_buffers_leaves_the_volume_as_it_was() {
    if !has_tools() {
        return;
    }
    let place = support::folder();
    let bytes = damaged(place.path());
    for buffers in 0..=ext2::check::BUFFERS as u64 {
        let disk = Disk::new(bytes.clone());
        disk.buffers_left.set(Some(buffers));
        match checked(&disk, Mode::Repair).0 {
            // One buffer to read, one to write; more are faster.
            Ok(summary) => assert!(summary.outcome == Outcome::Repaired && buffers >= 2),
            Err(error) => {
                assert!(buffers < 2, "{buffers}: {error}");
                assert!(*disk.bytes.borrow() == bytes, "{buffers}: {error}, but it was written");
            }
        }
    }
}

/// A volume with all blocks in use.
fn full(place: &Path) -> Image {
    let (path, script, large) = (place.join("image"), place.join("script"), place.join("large"));
    fs::write(&path, small_samples(place).swap_remove(0).image).unwrap();
    fs::write(&large, vec![5; 8 << 20]).unwrap();
    fs::write(&script, format!("write {} large\n", large.display())).unwrap();
    crate::volumes::run("debugfs", &["-w", "-f", script.to_str().unwrap(), path.to_str().unwrap()]);
    crate::volumes::run("e2fsck", &["-fy", path.to_str().unwrap()]);
    Image::new(fs::read(&path).unwrap())
}

#[test]
fn a_repair_for_which_there_is_no_room_writes_nothing() {
    if !has_tools() {
        return;
    }
    let place = support::folder();
    let mut image = full(place.path());
    let damage = all_damages().find(|damage| damage.name == "two files with one table").unwrap();
    assert!((damage.make)(&mut image));
    let disk = Disk::new(image.bytes);
    let (result, findings) = checked(&disk, Mode::Repair);
    let summary = result.unwrap();
    let told = lines(&findings);
    assert_eq!((summary.outcome, summary.repaired, summary.written), (Outcome::Faulty, 0, false), "{told}");
    assert_eq!(summary.left, summary.faults, "{told}");
    assert_eq!(disk.writes.get(), 0);
}

/// There is no run of free blocks for a log.
#[test]
fn a_full_volume_is_repaired_in_place() {
    if !has_tools() {
        return;
    }
    let place = support::folder();
    let (full, path) = (full(place.path()), place.path().join("repaired"));
    for name in ["free blocks in all", "blocks in use marked free"] {
        let mut image = Image::new(full.bytes.clone());
        let damage = all_damages().find(|damage| damage.name == name).unwrap();
        assert!((damage.make)(&mut image), "{name}");
        let disk = Disk::new(image.bytes);
        assert_eq!(checked(&disk, Mode::Repair).0.unwrap().outcome, Outcome::Repaired, "{name}");
        disk.save(&path);
        e2fsck(&path).unwrap();
    }
}
