//! Contract text: compiled, rendered, printed, emitted.
#![no_main]

#[path = "../../lang/tests/fuzzed/body.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| body::run(bytes));
