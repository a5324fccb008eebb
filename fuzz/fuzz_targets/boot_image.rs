//! The boot module, as whoever starts a bare machine may give it; and its parts behind a header that is right.
#![no_main]

#[path = "../../lib/package/tests/fuzzed/boot_image.rs"]
mod boot_image;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| boot_image::run(bytes));
