//! Body of the fuzz target `package`: its bytes are a package file, an image in a validly signed one, or a validly
//! signed manifest to install in the small system.

use std::sync::OnceLock;

use abi::name_tag;
use image_check::Image;
use install::{Installed, Request};
use manifest_model::{Category, Code, ContractSide, Manifest, Trust};
use package::Package;
use package_build::Signer;
use package_check::PackageError;

use crate::common;

/// Kind of the input given by the first byte, modulo [`KINDS`].
pub const AS_FILE: u8 = 0;
pub const AS_IMAGE: u8 = 1;
pub const AS_MANIFEST: u8 = 2;
const KINDS: u8 = 3;

/// The small system, built once.
fn system() -> &'static Installed {
    static SMALL: OnceLock<Installed> = OnceLock::new();
    SMALL.get_or_init(common::installed)
}

/// One trial; a panic is a finding.
pub fn run(bytes: &[u8]) {
    let Some((kind, rest)) = bytes.split_first() else { return };
    match kind % KINDS {
        AS_FILE => file(rest),
        AS_IMAGE => image(rest),
        AS_MANIFEST => manifest(rest),
        _ => {}
    }
}

fn file(bytes: &[u8]) {
    if let Ok(package) = Package::parse(bytes) {
        let _ = package_check::verify(&package, &Trust::in_key(package.key));
    }
    judge(&Request::Install { package: bytes, at_boot: false, allow: &[] });
}

/// An image accepted alone is accepted in a package too, if the manifest lists its contracts.
fn image(bytes: &[u8]) {
    let echo = common::contract("Echo", ContractSide::Both);
    let fingerprint = echo.fingerprint;
    let plain = Manifest::plain("fuzzed", "singularity", Category::Test, Code::Image { digest: [0; 32] });
    let manifest = Manifest { contracts: vec![echo], ..plain };
    let is_good = Image::check(bytes).is_ok_and(|image| {
        image.contracts.iter().all(|used| used.name_tag == name_tag("Echo") && used.fingerprint == fingerprint)
    });
    let packed =
        package_build::build_unchecked(manifest, b"", bytes, &Signer::root(common::key())).expect("it is short");
    let found = Package::parse(&packed).map_err(PackageError::from);
    let found = found.and_then(|package| package_check::verify(&package, &system().system.trust).map(|_| ()));
    assert_eq!(found.is_ok(), is_good, "{found:?}");
}

fn manifest(bytes: &[u8]) {
    let Ok(manifest) = Manifest::decode(bytes) else { return };
    assert_eq!(Manifest::decode(&manifest.encode()).as_ref(), Ok(&manifest));
    let packed = common::signed(&manifest);
    for at_boot in [false, true] {
        judge(&Request::Install { package: &packed, at_boot, allow: &["/service/tcp".into()] });
    }
    judge(&Request::Upgrade { package: &packed, more: true });
}

/// Checks a request in the small system, which is valid and must stay so if the request is accepted.
fn judge(request: &Request<'_>) {
    let (report, after) = install::examine(system(), Some(&[]), request);
    assert_eq!(report.is_accepted(), after.is_some());
    is_lines(&report);
    if let Some(after) = after {
        let held = install::verify(&after);
        assert!(held.is_accepted(), "{held}");
    }
}

/// A report printed on a terminal consists of lines, without control characters.
fn is_lines(report: &install::Report) {
    let text = report.to_string();
    assert!(!text.contains(|letter: char| letter.is_control() && letter != '\n'), "{text:?}");
}
