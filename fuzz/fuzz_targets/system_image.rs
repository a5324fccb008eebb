//! A system image: as raw bytes, and as a correctly signed system manifest.
#![no_main]

#[path = "../../lib/install/tests/common/mod.rs"]
mod common;
#[path = "../../lib/install/tests/fuzzed/system_file.rs"]
mod system_file;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| system_file::run(bytes));
