//! A WebAssembly module: as raw bytes, and made by a generator of valid modules; what compiles makes an image that is
//! accepted.
#![no_main]

#[path = "../../lib/wasm-translate/tests/common/mod.rs"]
mod common;
#[path = "../../lib/wasm-translate/tests/fuzzed/module.rs"]
mod module;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| module::run(bytes));
