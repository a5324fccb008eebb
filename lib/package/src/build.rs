//! Making packages and system images; for the host tool.

use alloc::vec::Vec;

use ed25519_dalek::{Signer, SigningKey};

use crate::container::{PACKAGE_MAGIC, SYSTEM_MAGIC};
use crate::{Code, Manifest, Package, PackageError, PublicKey, SystemImage, SystemManifest, image_digest, sha256};

/// An Ed25519 secret key. Whoever holds it can sign as its publisher.
pub struct SecretKey(SigningKey);

impl SecretKey {
    /// A key from 32 bytes, which must be random and secret.
    pub fn from_bytes(bytes: &[u8; 32]) -> SecretKey {
        SecretKey(SigningKey::from_bytes(bytes))
    }

    /// The key that its signatures are checked with.
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key().to_bytes())
    }
}

impl Package<'_> {
    /// Makes a package file of a manifest and an image (empty if the code is a script), whose hash is
    /// put into the manifest. The result has passed every check that the kernel makes.
    pub fn build(mut manifest: Manifest, image: &[u8], key: &SecretKey) -> Result<Vec<u8>, PackageError> {
        if let Code::Image { digest } = &mut manifest.code {
            *digest = image_digest(image);
        }
        let bytes = assemble(&manifest, image, key)?;
        Package::parse(&bytes)?.verify(&[key.public()])?;
        Ok(bytes)
    }
}

/// A package file, signed but not checked.
pub(crate) fn assemble(manifest: &Manifest, image: &[u8], key: &SecretKey) -> Result<Vec<u8>, PackageError> {
    let manifest = manifest.encode();
    let mut bytes = PACKAGE_MAGIC.to_vec();
    bytes.extend_from_slice(&length(manifest.len())?);
    bytes.extend_from_slice(&length(image.len())?);
    let digest = crate::verify::signed_digest(&bytes, &manifest, &key.public());
    bytes.extend_from_slice(&manifest);
    bytes.extend_from_slice(image);
    bytes.extend_from_slice(&key.public().0);
    bytes.extend_from_slice(&key.0.sign(&digest).to_bytes());
    Ok(bytes)
}

impl SystemImage<'_> {
    /// Makes a system image file of a system manifest, the keys it trusts and package files.
    pub fn build(manifest: &SystemManifest, keys: &[PublicKey], packages: &[Vec<u8>]) -> Result<Vec<u8>, PackageError> {
        let manifest = manifest.encode();
        let mut bytes = SYSTEM_MAGIC.to_vec();
        for count in [keys.len(), manifest.len(), packages.len()] {
            bytes.extend_from_slice(&length(count)?);
        }
        for key in keys {
            bytes.extend_from_slice(&key.0);
        }
        bytes.extend_from_slice(&manifest);
        for package in packages {
            bytes.extend_from_slice(&length(package.len())?);
        }
        let checksum = sha256(&bytes);
        bytes.extend_from_slice(&checksum);
        for package in packages {
            bytes.extend_from_slice(package);
        }
        Ok(bytes)
    }
}

fn length(length: usize) -> Result<[u8; 4], PackageError> {
    let length = u32::try_from(length).map_err(|_| PackageError::TooLarge { bytes: length as u64 })?;
    Ok(length.to_le_bytes())
}
