//! System images with a damaged package.
//!
//! Images that the builder refuses to make are assembled here and signed with a test key that the image trusts. So
//! they must be rejected by the check under test, not by an earlier one.

use manifest_model::{Manifest, Rights, Root, SystemManifest};
use package::Package;
use package_build::{SecretKey, Signer};

/// The key that signs damaged packages and their systems.
const KEY: [u8; 32] = *b"a key of the end-to-end tests...";

/// Damage done to a package.
pub enum Doctor<'a> {
    /// Manifest and image are changed, and both are sealed again as if by their publisher.
    Resealed(&'a dyn Fn(&mut Manifest, &mut Vec<u8>)),
    /// It has no signature.
    Unsigned,
    /// Bytes of the package are changed, not their number, after it and the system were sealed.
    Raw(&'a dyn Fn(&mut Vec<u8>)),
}

/// The system image `system` with the package of `program` changed.
pub fn reseal(system: &[u8], program: &str, doctor: &Doctor<'_>) -> Vec<u8> {
    let image = package_check::verify_system(system).expect("the built system image is whole");
    let mut packages: Vec<Vec<u8>> = image.packages.iter().map(|bytes| bytes.to_vec()).collect();
    let is_it = |bytes: &Vec<u8>| Package::parse(bytes).expect("the built packages are whole").manifest.name == program;
    let index = packages.iter().position(is_it).expect("the system has the program");
    let mut raw = packages[index].clone();
    match doctor {
        Doctor::Raw(change) => change(&mut raw),
        Doctor::Unsigned => {
            let package = Package::parse(&packages[index]).expect("it was read before");
            let bare = package_build::build_unsigned(package.manifest.clone(), package.bill, package.image_bytes);
            raw = bare.expect("a small package");
            packages[index] = raw.clone();
        }
        Doctor::Resealed(change) => {
            let package = Package::parse(&packages[index]).expect("it was read before");
            let (mut manifest, mut code) = (package.manifest.clone(), package.image_bytes.to_vec());
            let bill = package.bill.to_vec();
            change(&mut manifest, &mut code);
            raw =
                package_build::build_unchecked(manifest, &bill, &code, &Signer::root(key())).expect("a small package");
            packages[index] = raw.clone();
        }
    }
    let mut bytes = seal(image.manifest, &packages);
    assert_eq!(raw.len(), packages[index].len(), "raw changes keep the length");
    let end = bytes.len() - packages[index + 1..].iter().map(Vec::len).sum::<usize>();
    bytes[end - raw.len()..end].copy_from_slice(&raw);
    bytes
}

/// The system image `system` with its manifest changed, sealed again.
pub fn reseal_system(system: &[u8], change: &dyn Fn(&mut SystemManifest)) -> Vec<u8> {
    let image = package_check::verify_system(system).expect("the built system image is whole");
    let packages: Vec<Vec<u8>> = image.packages.iter().map(|bytes| bytes.to_vec()).collect();
    let mut manifest = image.manifest;
    change(&mut manifest);
    seal(manifest, &packages)
}

/// The tests' key.
pub fn key() -> SecretKey {
    SecretKey::from_bytes(&KEY)
}

/// Signs a system image with the test key, which becomes a root unless it is one.
fn seal(mut manifest: SystemManifest, packages: &[Vec<u8>]) -> Vec<u8> {
    let key = key();
    if !manifest.trust.roots.iter().any(|root| root.key == key.public()) {
        manifest.trust.roots.push(Root {
            key: key.public(),
            publishers: "*".into(),
            systems: true,
            rights: Rights::ALL,
        });
    }
    package_build::build_system(&manifest, packages, &key).expect("a system image of a few megabytes")
}
