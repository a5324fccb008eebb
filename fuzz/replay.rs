//! Replays fuzzing in a unit test: runs the body of a target on the inputs kept in a folder, and on mutated copies of
//! them.
//!
//! Included by the tests that hold bodies. Findings of a fuzzer are kept in such a folder, under a name that describes
//! them. Deliberately not here: bodies, and the generation of seed inputs.

use std::path::Path;

/// Writes the files of the folder from a builder's output if `UPDATE_GOLDEN` is set, and otherwise checks them against
/// it. Files of other names are left alone: fuzzers found them.
#[allow(dead_code, reason = "some inputs are written by people")]
pub fn hold_seeds(folder: &Path, seeds: &[(&str, Vec<u8>)]) {
    for (name, bytes) in seeds {
        let path = folder.join(name);
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::create_dir_all(folder).expect("a folder");
            std::fs::write(&path, bytes).expect("an input can be written");
        }
        let kept = std::fs::read(&path).unwrap_or_default();
        assert!(kept == *bytes, "{}: if what it is made of changed, run with UPDATE_GOLDEN=1", path.display());
    }
}

/// Runs the body on each input of the folder, then on this many mutated copies of each.
pub fn replay(folder: &Path, copies: u64, run: fn(&[u8])) {
    let entries = std::fs::read_dir(folder).expect("a folder of inputs");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an input").path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "{} is empty", folder.display());
    for path in paths {
        // The last one printed is the one that failed.
        println!("{}", path.display());
        let bytes = std::fs::read(&path).expect("an input can be read");
        run(&bytes);
        for seed in 0..copies {
            println!("{} damaged with the seed {seed}", path.display());
            run(&damaged(&bytes, seed));
        }
    }
}

/// Changes, inserts or removes one to four bytes, determined by a seed (xorshift64*).
fn damaged(bytes: &[u8], seed: u64) -> Vec<u8> {
    let mut state = (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut next = |end: usize| {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) as usize % end.max(1)
    };
    let mut bytes = bytes.to_vec();
    for _ in 0..=next(4) {
        let place = next(bytes.len());
        let value = [0, 1, 0x7f, 0x80, 0xff, b'"', b'-', next(256) as u8][next(8)];
        match next(4) {
            0 => bytes.insert(place, value),
            1 if !bytes.is_empty() => drop(bytes.remove(place)),
            _ => bytes.get_mut(place).into_iter().for_each(|byte| *byte = value),
        }
    }
    bytes
}
