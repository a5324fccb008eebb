//! An ext2 volume whose metadata the bytes damage, and what is then done to it.
#![no_main]

#[path = "../../lib/ext2/tests/fuzzed/sample.rs"]
mod sample;
#[path = "../../lib/ext2/tests/fuzzed/volume.rs"]
mod volume;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| volume::run(bytes));
