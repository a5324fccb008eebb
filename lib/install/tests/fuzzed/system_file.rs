//! Body of the fuzz target `system_image`: its bytes are a system image, or the manifest of a validly signed one with
//! those programs of the small system that it names.

use std::sync::OnceLock;

use install::Request;
use manifest_model::{Policy, Rights, Root, SystemManifest};

use crate::common;

/// Kind of the input given by the first byte, modulo [`KINDS`].
pub const AS_FILE: u8 = 0;
pub const AS_MANIFEST: u8 = 1;
const KINDS: u8 = 2;

/// The programs of the small system with their package files, built once.
fn packages() -> &'static [(String, Vec<u8>)] {
    static SMALL: OnceLock<Vec<(String, Vec<u8>)>> = OnceLock::new();
    SMALL.get_or_init(|| {
        let packed = common::manifests().into_iter().map(|manifest| (manifest.name.clone(), common::signed(&manifest)));
        packed.collect()
    })
}

/// One trial; a panic is a finding.
pub fn run(bytes: &[u8]) {
    let Some((kind, rest)) = bytes.split_first() else { return };
    match kind % KINDS {
        AS_FILE => file(rest),
        AS_MANIFEST => manifest(rest),
        _ => {}
    }
}

fn file(bytes: &[u8]) {
    if let Ok((_, installed)) = install::system_of(bytes) {
        install::verify(&installed).to_string();
    }
    let _ = install::signed_system(bytes);
}

fn manifest(bytes: &[u8]) {
    let Ok(mut manifest) = SystemManifest::decode(bytes) else { return };
    assert_eq!(SystemManifest::decode(&manifest.encode()).as_ref(), Ok(&manifest));
    let root = Root { key: common::key().public(), publishers: "*".into(), systems: true, rights: Rights::ALL };
    manifest.trust.roots.push(root);
    let named = manifest.programs();
    let packed = packages().iter().filter(|(name, _)| named.contains(&name.as_str()));
    let packed: Vec<Vec<u8>> = packed.map(|(_, bytes)| bytes.clone()).collect();
    // The key may be one of those that it revokes.
    let Ok(image) = package_build::build_system(&manifest, &packed, &common::key()) else { return };
    let Ok((_, installed)) = install::signed_system(&image) else { panic!("it was signed with a root") };
    let verified = install::system_of(&image);
    let takes_all = !matches!(manifest.trust.policy, Policy::AllowPublisher(_));
    assert!(verified.is_ok() || !takes_all, "{:?}", verified.err());
    let _ = install::verify(&installed).to_string();
    for request in [
        Request::Uninstall { name: "cat" },
        Request::Install { package: &packages()[0].1, at_boot: true, allow: &[] },
        Request::Upgrade { package: &packages()[2].1, more: false },
    ] {
        let Ok((new, _)) = install::changed(&image, &request, &common::key()) else { continue };
        let after = install::signed_system(&new);
        assert!(after.is_ok(), "{:?}", after.err());
    }
}
