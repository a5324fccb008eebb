//! System images with something wrong in one of their packages.
//!
//! What the builder refuses to make is put together here by hand, and signed with a key of the test's own
//! that the image names as trusted: so the check that is meant, and no earlier one, has to find it.

use ed25519_dalek::{Signer, SigningKey};
use package::{Code, Manifest, Package, PublicKey, SystemImage};

/// The key that doctored packages are signed with.
const KEY: [u8; 32] = *b"a key of the end-to-end tests...";

/// What is done to a package.
pub enum Doctor<'a> {
    /// The manifest and the image are changed, and both are sealed again as if by their publisher.
    Resealed(&'a dyn Fn(&mut Manifest, &mut Vec<u8>)),
    /// The package's bytes are changed after it was sealed.
    Raw(&'a dyn Fn(&mut Vec<u8>)),
}

/// The system image `system` with the package of `program` changed.
pub fn reseal(system: &[u8], program: &str, doctor: &Doctor<'_>) -> Vec<u8> {
    let image = SystemImage::parse(system).expect("the built system image is whole");
    let key = SigningKey::from_bytes(&KEY);
    let mut packages: Vec<Vec<u8>> = image.packages.iter().map(|bytes| bytes.to_vec()).collect();
    let mut found = false;
    for bytes in &mut packages {
        let package = Package::parse(bytes).expect("the built packages are whole");
        if package.manifest.name != program {
            continue;
        }
        found = true;
        let (mut manifest, mut code) = (package.manifest.clone(), package.image_bytes.to_vec());
        match doctor {
            Doctor::Raw(change) => change(bytes),
            Doctor::Resealed(change) => {
                change(&mut manifest, &mut code);
                *bytes = seal(manifest, &code, &key);
            }
        }
    }
    assert!(found, "the hosted system has no program {program}");
    let mut keys = image.keys.clone();
    keys.push(PublicKey(key.verifying_key().to_bytes()));
    SystemImage::build(&image.manifest, &keys, &packages).expect("a system image of a few megabytes")
}

/// A package file in the format that `package::container` describes, without the checks of `Package::build`.
fn seal(mut manifest: Manifest, image: &[u8], key: &SigningKey) -> Vec<u8> {
    if let Code::Image { digest } = &mut manifest.code {
        *digest = package::image_digest(image);
    }
    let manifest = manifest.encode();
    let public = key.verifying_key().to_bytes();
    let length = |bytes: &[u8]| u32::try_from(bytes.len()).expect("a small package").to_le_bytes();
    let header = [b"SINGPKG2".as_slice(), &length(&manifest), &length(image)].concat();
    let digest = package::sha256(&[&header, manifest.as_slice(), &public].concat());
    [&header, manifest.as_slice(), image, &public, &key.sign(&digest).to_bytes()].concat()
}
