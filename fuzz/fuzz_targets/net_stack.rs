//! A network stack with connections, under whatever frames the bytes make.
#![no_main]

#[path = "../../lib/net-stack/tests/fuzzed/frames.rs"]
mod frames;
#[path = "../../lib/net-stack/tests/wire/raw.rs"]
mod raw;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| frames::run(bytes));
