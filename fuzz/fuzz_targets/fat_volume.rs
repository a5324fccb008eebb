//! A FAT volume damaged by the input, and every operation on it.
#![no_main]

#[path = "../../lib/fat/tests/volumes/disk.rs"]
#[allow(dead_code)]
mod disk;
#[path = "../../lib/fat/tests/volumes/fuzzed.rs"]
mod fuzzed;
#[path = "../../lib/fat/tests/volumes/trial.rs"]
mod trial;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzzed::run(bytes));
