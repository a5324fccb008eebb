//! A chain of certificates, in a package for the first of them.
#![no_main]

#[path = "../../lib/package-check/tests/fuzzed/certificates.rs"]
mod certificates;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| certificates::run(bytes));
