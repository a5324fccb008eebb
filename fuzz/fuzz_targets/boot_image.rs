//! The boot module, as whoever starts a bare machine may give it; and its parts behind a header that is right.
#![no_main]

#[path = "../../lib/boot-image/tests/fuzzed/boot_image.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| target::run(bytes));
