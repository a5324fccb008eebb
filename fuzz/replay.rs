//! What a fuzzer does, in a unit test: the body of a target is run on the inputs that are kept in a folder, and on
//! damaged copies of them.
//!
//! A part of the tests that hold bodies. What a fuzzer found is kept in such a folder under a name that says what it
//! showed. Deliberately not here: bodies, and what makes the inputs that fuzzers begin with.

use std::path::Path;

/// Makes the files of the folder from what a builder gives, where `UPDATE_GOLDEN` asks for it, and holds them to it.
/// Files of other names are left alone: fuzzers found them.
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

/// Runs the body on each input of the folder, then on so many damaged copies of each.
pub fn replay(folder: &Path, copies: u64, run: fn(&[u8])) {
    let entries = std::fs::read_dir(folder).expect("a folder of inputs");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an input").path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "{} is empty", folder.display());
    for path in paths {
        // What is printed last is what failed.
        println!("{}", path.display());
        let bytes = std::fs::read(&path).expect("an input can be read");
        run(&bytes);
        for seed in 0..copies {
            println!("{} damaged with the seed {seed}", path.display());
            run(&damaged(&bytes, seed));
        }
    }
}

/// The bytes with one to four of them changed, put in or taken out, as a seed decides (xorshift64*).
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
