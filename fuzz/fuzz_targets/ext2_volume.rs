//! An ext2 volume with metadata damaged by the input, and operations on it.
#![no_main]

#[path = "../../lib/ext2/tests/fuzzed/sample.rs"]
mod sample;
#[path = "../../lib/ext2/tests/fuzzed/volume.rs"]
mod volume;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| volume::run(bytes));
