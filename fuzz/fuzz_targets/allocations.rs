//! Functions as the compiler sends them to its register allocator, and answers of one that lies.
#![no_main]

#[path = "../../lib/register-allocation/tests/fuzzed/answers.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| target::run(bytes));
