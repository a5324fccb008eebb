//! A package file: as raw bytes, as a correctly signed image, and as a correctly signed manifest to install.
#![no_main]

#[path = "../../lib/install/tests/common/mod.rs"]
mod common;
#[path = "../../lib/install/tests/fuzzed/package_file.rs"]
mod package_file;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| package_file::run(bytes));
