//! The fuzz target `boot_image` without a fuzzer.
//!
//! `UPDATE_GOLDEN=1 cargo test -p boot-image --test fuzzed` rewrites its seed inputs.

#[path = "../../../../fuzz/replay.rs"]
mod replay;
#[path = "boot_image.rs"]
mod target;

use std::path::{Path, PathBuf};

use boot_image::BootImage;

/// Seed inputs, findings among them.
fn inputs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzzed/inputs/boot_image")
}

/// Boot modules: a whole one, and the parts of one for a generated header.
fn modules() -> Vec<(&'static str, Vec<u8>)> {
    let parameters = [("commands".into(), "echo grüße; ls /fs".into()), ("terminal".into(), String::new())];
    let symbols = [(0, "entry".into()), (0x10_0000, "kernel::start".into()), (0x20_0000, "kernel::end".into())];
    let whole = BootImage::encode(&parameters, b"the system", &symbols);
    let without_system = BootImage::encode(&parameters, &[], &symbols);
    let part = |index: usize| {
        let number = |place: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| without_system[place + byte])) as usize;
        let entry = 12 + index * 12;
        &without_system[number(entry)..number(entry) + number(entry + 4)]
    };
    let split = u8::try_from(part(0).len()).expect("a short part");
    let parts = [&[split], part(0), part(2)].concat();
    vec![("whole", whole), ("parts", parts)]
}

#[test]
fn damaged_boot_modules_are_refused_or_read() {
    replay::replay(&inputs(), 400, target::run);
}

/// Otherwise the fuzzer would reach little.
#[test]
fn the_modules_can_be_read() {
    replay::hold_seeds(&inputs(), &modules());
    let [(_, whole), (_, parts)] = modules().try_into().expect("two");
    assert!(BootImage::parse(&whole).is_ok());
    let made = target::behind_a_header(usize::from(parts[0]), &parts[1..]);
    let image = BootImage::parse(&made).expect("a header that is right");
    assert_eq!((image.parameters().len(), image.symbols.locate(0x10_0002)), (2, Some(("kernel::start", 2))));
}
