//! A network stack with connections that receives arbitrary frames.
#![no_main]

#[path = "../../lib/net-stack/tests/fuzzed/frames.rs"]
mod frames;
#[path = "../../lib/net-stack/tests/wire/raw.rs"]
mod raw;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| frames::run(bytes));
