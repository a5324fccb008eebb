//! An ext2 volume with the fuzzer's bytes in its metadata: the check terminates, and its repairs are sound.
#![no_main]

#[path = "../../lib/ext2/tests/fuzzed/check.rs"]
mod check;
#[path = "../../lib/ext2/tests/fuzzed/sample.rs"]
mod sample;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| check::run(bytes));
