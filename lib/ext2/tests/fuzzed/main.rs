//! Runs the fuzz targets of volumes without a fuzzer: on inputs from earlier findings, and on random ones.
//!
//! The fuzz targets `ext2_volume` and `ext2_check` have the same bodies.
#![forbid(unsafe_code)]

mod check;
mod sample;
mod volume;

use std::path::Path;

use ext2::{Access, MemoryDisk, MountOptions, Volume, complete};

/// Random inputs for each of the two targets.
const AT_RANDOM: u64 = 600;

/// Runs a target on its corpus, then on random inputs.
fn play(target: &str, run: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzzed/inputs").join(target);
    let kept = std::fs::read_dir(&folder).expect("a folder of inputs");
    for entry in kept {
        let path = entry.expect("an input").path();
        println!("{}", path.display());
        run(&std::fs::read(&path).expect("an input can be read"));
    }
    for seed in 0..AT_RANDOM {
        println!("seed {seed}");
        run(&noise(seed));
    }
}

/// Random bytes from a seed (xorshift64*).
fn noise(seed: u64) -> Vec<u8> {
    let mut state = (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut next = || {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes()
    };
    (0..40).flat_map(|_| next()).collect()
}

#[test]
fn damaged_volumes_are_used_to_an_end() {
    play("volume", volume::run);
}

#[test]
fn damaged_volumes_are_checked_to_an_end() {
    play("check", check::run);
}

/// Without damage every sample is used; otherwise the fuzzers cover little.
#[test]
fn the_samples_are_sound() {
    for sample in 0..3 {
        let disk = MemoryDisk::new(sample::damaged(sample, &[]));
        let options = MountOptions { access: Access::WriteIfPossible, ..MountOptions::default() };
        let volume = complete(Volume::mount(disk, options)).expect("it mounts");
        assert_eq!(volume.read_only_reason(), None, "sample {sample}");
        complete(volume.unlink(ext2::ROOT_INODE, &sample::name(2))).expect("a change");
        complete(volume.unmount()).expect("it unmounts");
    }
}
