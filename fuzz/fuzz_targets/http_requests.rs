//! Requests to a web server: heads, contents, ranges and conditions, whole and in pieces.
#![no_main]

#[path = "../../lib/http/tests/conformance/cases.rs"]
#[allow(dead_code)]
mod cases;
#[path = "../../lib/http/tests/conformance/fuzzed.rs"]
mod fuzzed;
#[path = "../../lib/http/tests/conformance/reading.rs"]
mod reading;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzzed::run(bytes));
