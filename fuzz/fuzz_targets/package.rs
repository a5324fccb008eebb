//! A package file: as bytes, as a rightly signed image, and as a rightly signed manifest that is to be installed.
#![no_main]

#[path = "../../lib/install/tests/common/mod.rs"]
mod common;
#[path = "../../lib/install/tests/fuzzed/package_file.rs"]
mod package_file;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| package_file::run(bytes));
