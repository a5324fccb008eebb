//! Access control lists and principals, as read from a peer or a disk.
#![no_main]

#[path = "../../lib/principal/tests/fuzzed/body.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| body::run(bytes));
