//! The boot module of a bare machine, which its user may supply; and its parts behind a valid header.
#![no_main]

#[path = "../../lib/boot-image/tests/fuzzed/boot_image.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| target::run(bytes));
