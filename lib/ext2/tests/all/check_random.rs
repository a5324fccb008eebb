//! Volumes with random bytes: the check terminates without a panic, and repaired volumes are clean for Linux too.

use std::path::Path;

use crate::support;
use crate::volumes::chance::{Chance, damage};
use crate::volumes::checking::{checked, lines};
use crate::volumes::image::Image;
use crate::volumes::samples::{Sample, small_samples};
use crate::volumes::{Disk, e2fsck, has_tools};
use ext2::check::{Mode, Outcome};
use proptest::prelude::*;

/// Damages a volume at random and repairs it. Returns whether it could be repaired, or the deviation.
fn try_seed(sample: &Sample, seed: u64, path: &Path) -> Result<bool, String> {
    let mut chance = Chance(seed);
    let mut image = Image::new(sample.image.clone());
    damage(&mut image, &mut chance);
    let looked = Disk::new(image.bytes.clone());
    let _ = checked(&looked, Mode::Report);
    let repaired = Disk::new(image.bytes.clone());
    let _ = checked(&repaired, Mode::Preen);
    let disk = Disk::new(image.bytes);
    let (result, findings) = checked(&disk, Mode::Repair);
    let told = lines(&findings);
    match result.map(|summary| summary.outcome) {
        Ok(Outcome::Clean | Outcome::Repaired) => {}
        // Reported as not repairable.
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
    let directory = support::folder();
    let (path, samples) = (directory.path().join("image"), small_samples(directory.path()));
    // More seeds: `EXT2_CHECK_SEEDS=first..end`.
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

    /// Random bytes after a superblock are not a volume, or an unusual one; the check terminates.
    #[test]
    fn any_bytes_are_checked(
        bytes in proptest::collection::vec(any::<u8>(), 1..4000),
        at in 0usize..60_000,
        step in 1usize..9000,
    ) {
        let disk = Disk::used(300 << 10);
        ext2::complete(ext2::make::make_empty(&disk.any(), &Default::default())).unwrap();
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
        for mode in [Mode::Report, Mode::Preen, Mode::Repair] {
            let _ = checked(&disk, mode);
        }
    }
}
