//! Volumes with any bytes on them: the check ends, nothing panics, and what is repaired is sound for Linux too.

mod volumes;

use std::path::Path;

use ext2::check::{Mode, Outcome};
use proptest::prelude::*;
use volumes::checking::{checked, lines};
use volumes::image::Image;
use volumes::samples::{Sample, small_samples};
use volumes::{Disk, e2fsck, has_tools};

/// Numbers that look random.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let word = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ word >> 31
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}

/// A place in a volume where something is that matters.
fn place(image: &Image, chance: &mut Chance) -> usize {
    let groups = image.u32(1024 + 4).div_ceil(image.u32(1024 + 32));
    let group = chance.below(groups as usize) as u32;
    let descriptor = image.descriptor(group);
    let block_bytes = image.block_bytes();
    let inode = 1 + chance.below(60) as u32;
    match chance.below(10) {
        0 => 1024 + chance.below(300),
        1 => descriptor + chance.below(20),
        2 => image.block(image.u32(descriptor)) + chance.below(block_bytes),
        3 => image.block(image.u32(descriptor + 4)) + chance.below(block_bytes),
        4..=6 => image.inode(inode) + chance.below(128),
        7 => image.inode(inode) + 128 + chance.below(100),
        // The first block or table of an inode: a folder's entries, numbers of blocks, attributes.
        _ => {
            let slot = [0, 0, 0, 1, 12, 13, 16][chance.below(7)];
            let block = image.u32(image.slot(inode, slot));
            let offset = if chance.below(2) == 0 { chance.below(64) } else { chance.below(block_bytes) };
            image.block(block) + offset
        }
    }
}

/// Damages a volume in a few places, seldom in many.
fn damage(image: &mut Image, chance: &mut Chance) {
    let count = if chance.below(8) == 0 { 200 } else { 1 + chance.below(12) };
    let places: Vec<usize> = (0..count).map(|_| place(image, chance)).collect();
    for at in places {
        let length = [1, 1, 2, 4, 4, 16, 128][chance.below(7)];
        let (at, end) = (at & !(length.min(4) - 1), at + length);
        let Some(bytes) = image.bytes.get_mut(at..end) else { continue };
        match chance.below(4) {
            0 => bytes.fill(0),
            1 => bytes[0] ^= 1 << chance.below(8),
            2 => bytes.iter_mut().for_each(|byte| *byte = chance.next() as u8),
            // A small number, which is more likely to mean something.
            _ => {
                bytes.fill(0);
                bytes[0] = chance.next() as u8;
            }
        }
    }
}

/// Damages a volume by chance and repairs it. Whether it could be repaired; or what went wrong.
fn try_seed(sample: &Sample, seed: u64, path: &Path) -> Result<bool, String> {
    let mut chance = Chance(seed);
    let mut image = Image::new(sample.image.clone());
    damage(&mut image, &mut chance);
    let looked = Disk::new(image.bytes.clone());
    let _ = checked(&looked, Mode::Look);
    let mended = Disk::new(image.bytes.clone());
    let _ = checked(&mended, Mode::Mend);
    let disk = Disk::new(image.bytes);
    let (result, findings) = checked(&disk, Mode::Repair);
    let told = lines(&findings);
    match result.map(|summary| summary.outcome) {
        Ok(Outcome::Clean | Outcome::Mended) => {}
        // It is said that it cannot be repaired.
        Ok(Outcome::Faulty) | Err(_) => return Ok(false),
    }
    disk.save(path);
    e2fsck(path).map_err(|text| format!("{}, {seed}: {text}\n---\n{told}", sample.name))?;
    let (result, findings) = checked(&disk, Mode::Repair);
    match result.map(|summary| summary.outcome) {
        Ok(Outcome::Clean) => Ok(true),
        other => Err(format!("{}, {seed}: again {other:?}\n{}---\n{told}", sample.name, lines(&findings))),
    }
}

#[test]
fn damage_by_chance_is_repaired() {
    if !has_tools() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (path, samples) = (directory.path().join("image"), small_samples(directory.path()));
    // More of them: `EXT2_CHECK_SEEDS=first..end`.
    let seeds = std::env::var("EXT2_CHECK_SEEDS").ok();
    let seeds = seeds.as_deref().and_then(|text| text.split_once("..")).unwrap_or(("0", "40"));
    let (mut repaired, mut tried, mut failures) = (0, 0, String::new());
    for seed in seeds.0.parse().unwrap()..seeds.1.parse().unwrap() {
        for sample in &samples {
            tried += 1;
            match try_seed(sample, seed, &path) {
                Ok(done) => repaired += u32::from(done),
                Err(text) => failures += &text,
            }
        }
    }
    assert!(failures.is_empty(), "{failures}");
    assert!(repaired * 10 >= tried * 8, "only {repaired} of {tried} volumes could be repaired");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// Noise with a superblock before it is no volume, or an odd one; the check of it ends.
    #[test]
    fn any_bytes_are_checked(
        bytes in proptest::collection::vec(any::<u8>(), 1..4000),
        at in 0usize..60_000,
        step in 1usize..9000,
    ) {
        let disk = Disk::used(300 << 10);
        ext2::complete(ext2::mkfs::make(&disk, &Default::default())).unwrap();
        {
            let mut volume = disk.bytes.borrow_mut();
            let limit = volume.len();
            let mut place = at;
            for chunk in bytes.chunks(7) {
                for &byte in chunk {
                    volume[place % limit] = byte;
                    place += 1;
                }
                place += step;
            }
        }
        for mode in [Mode::Look, Mode::Mend, Mode::Repair] {
            let _ = checked(&disk, mode);
        }
    }
}
