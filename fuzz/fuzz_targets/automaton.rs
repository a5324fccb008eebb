//! The bytes of an automaton, as a package may carry them: decoded, encoded, drawn.
#![no_main]

#[path = "../../lib/contract-diagram/tests/fuzzed/body.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| body::run(bytes));
