//! A misbehaving virtio disk, driven by the input, under its driver.
#![no_main]

#[path = "../../drivers/virtio-blk/tests/fuzzed/body.rs"]
mod body;
#[path = "../../sip/virtio/tests/fuzzed/life.rs"]
mod life;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| body::run(bytes));
