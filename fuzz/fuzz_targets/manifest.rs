//! Manifests as people write them: a program's and a system's.
#![no_main]

#[path = "../../lib/manifest/tests/fuzzed/body.rs"]
mod body;
#[path = "../../lib/manifest/tests/known/mod.rs"]
mod known;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| body::run(bytes));
