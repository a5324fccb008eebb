//! A chain of certificates, in a package that the first of them is for.
#![no_main]

#[path = "../../lib/package-check/tests/fuzzed/certificates.rs"]
mod certificates;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| certificates::run(bytes));
