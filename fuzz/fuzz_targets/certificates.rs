//! A chain of certificates, in a package that the first of them is for.
#![no_main]

#[path = "../../lib/package/tests/fuzzed/body.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| body::run(bytes));
