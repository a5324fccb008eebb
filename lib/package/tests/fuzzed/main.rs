//! What the fuzz targets `certificates` and `boot_image` do, without a fuzzer.
//!
//! `UPDATE_GOLDEN=1 cargo test -p package --test fuzzed` writes the inputs anew that they begin with.

mod boot_image;
mod certificates;
#[path = "../../../../fuzz/replay.rs"]
mod replay;

use std::path::{Path, PathBuf};

use package::boot_image::BootImage;
use package::{Certificate, Grant, May, Rights};

/// What a fuzzer begins with, its findings among it.
fn inputs(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzzed/inputs").join(target)
}

/// Chains that lead to a root, by the numbers of the keys; see [`certificates::secret`].
fn chains() -> Vec<(&'static str, Vec<u8>)> {
    let issue = |issuer, key, publishers: &str, may, serial| {
        let key = certificates::secret(key).public();
        let grant = Grant { publishers, may, rights: Rights::NATIVE };
        Certificate::issue(&certificates::secret(issuer), key, grant, serial).expect("a pattern of publishers")
    };
    let by_root = issue(certificates::ROOT, 1, "acme-*", May::Certify, 1);
    let one = [issue(certificates::ROOT, 3, "acme-tools", May::Sign, 2)];
    let two = [issue(1, 3, "acme-tools", May::Sign, 3), by_root.clone()];
    let three =
        [issue(2, 3, "acme-tools-x", May::Sign, 4), issue(1, 2, "acme-tools-*", May::Certify, 5), by_root.clone()];
    [("one", &one[..]), ("two", &two), ("three", &three), ("certifier", &[by_root])]
        .map(|(name, chain)| (name, Certificate::encode_chain(chain)))
        .into()
}

#[test]
fn damaged_chains_make_nobody_believed() {
    replay::replay(&inputs("certificates"), 200, certificates::run);
}

/// Else a fuzzer would see little.
#[test]
fn the_chains_lead_to_a_root() {
    replay::hold_seeds(&inputs("certificates"), &chains());
    for (name, bytes) in chains() {
        let chain = Certificate::chain(&bytes).expect("a chain");
        assert_eq!(certificates::is_believed(&chain, &certificates::trust()), name != "certifier", "{name}");
    }
}

/// Boot modules: one as it is, and the parts of one for a header that is made for them.
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
    replay::replay(&inputs("boot_image"), 400, boot_image::run);
}

/// Else a fuzzer would see little.
#[test]
fn the_modules_can_be_read() {
    replay::hold_seeds(&inputs("boot_image"), &modules());
    let [(_, whole), (_, parts)] = modules().try_into().expect("two");
    assert!(BootImage::parse(&whole).is_ok());
    let made = boot_image::behind_a_header(usize::from(parts[0]), &parts[1..]);
    let image = BootImage::parse(&made).expect("a header that is right");
    assert_eq!((image.parameters().len(), image.symbols.locate(0x10_0002)), (2, Some(("kernel::start", 2))));
}
