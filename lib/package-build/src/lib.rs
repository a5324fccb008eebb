//! Builds and signs packages, system images and certificates.
//!
//! Key types: [`SecretKey`], [`Signer`]. Neighbours: `package` has the formats, `package-check` verifies the results;
//! used by the host tool and tests. Deliberately not here: storage of keys.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::vec::Vec;

use ed25519_dalek::{Signer as _, SigningKey};
use image_check::ImageError;
use manifest_model::trust::is_certified_publishers;
use manifest_model::{Code, Digest, Manifest, Policy, PublicKey, Rights, SystemManifest, Trust};
use package::{Certificate, Delivery, May, PACKAGE_MAGIC, Package, SYSTEM_MAGIC, TrustError};
use package_check::{Isolation, PackageError, identity_of, identity_of_delivery, image_digest, sha256, verify_in};

/// An Ed25519 secret key.
pub struct SecretKey(SigningKey);

impl SecretKey {
    /// Creates a key from 32 bytes, which must be random and secret.
    pub fn from_bytes(bytes: &[u8; 32]) -> SecretKey {
        SecretKey(SigningKey::from_bytes(bytes))
    }

    /// The public key.
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key().to_bytes())
    }
}

/// A signing key with its chain of certificates.
pub struct Signer {
    /// The secret key.
    pub key: SecretKey,
    /// Its certificate, that of its issuer and so on up to a root's; empty if the key is a root.
    pub chain: Vec<Certificate>,
}

impl Signer {
    /// A signer whose key is a root.
    pub fn root(key: SecretKey) -> Signer {
        Signer { key, chain: Vec::new() }
    }

    /// Trust in which the signer's own root has all rights, to verify integrity only.
    fn own_trust(&self) -> Trust {
        Trust::in_key(self.chain.last().map_or(self.key.public(), |certificate| certificate.issuer))
    }
}

/// Scope of a certificate.
#[derive(Clone, Copy, Debug)]
pub struct Grant<'a> {
    /// Publisher name, or `name-*`.
    pub publishers: &'a str,
    /// Whether the key may sign packages or certificates.
    pub may: May,
    /// Rights of the packages.
    pub rights: Rights,
}

/// Issues a certificate for `key`, signed by `issuer`. `serial` must be random.
///
/// # Errors
/// `publishers` is neither a name nor `name-*`.
pub fn issue_certificate(
    issuer: &SecretKey,
    key: PublicKey,
    grant: Grant<'_>,
    serial: u64,
) -> Result<Certificate, TrustError> {
    let Grant { publishers, may, rights } = grant;
    if !is_certified_publishers(publishers) {
        return Err(TrustError::NotPublishers { pattern: publishers.into() });
    }
    let issuer_key = issuer.public();
    let mut certificate =
        Certificate { publishers: publishers.into(), key, serial, may, rights, issuer: issuer_key, signature: [0; 64] };
    certificate.signature = issuer.0.sign(&sha256(&certificate.signed_bytes())).to_bytes();
    Ok(certificate)
}

/// Builds a package file from a manifest, a bill of materials (may be empty) and an image (the module if the code is one,
/// empty if it is a script), whose hash is put into the manifest. The result has passed all checks of the kernel, in a trust in which
/// the signer's root may sign for all publishers.
///
/// # Errors
/// The kernel's check fails.
pub fn build_package(manifest: Manifest, bill: &[u8], image: &[u8], signer: &Signer) -> Result<Vec<u8>, PackageError> {
    let bytes = assemble(manifest, bill, image, Some(signer))?;
    check(&bytes, &signer.own_trust())?;
    Ok(bytes)
}

/// Builds an unsigned package file, which only systems with the policy
/// [`QuarantineUnsigned`](Policy::QuarantineUnsigned) accept.
///
/// # Errors
/// As for [`build_package`].
pub fn build_unsigned(manifest: Manifest, bill: &[u8], image: &[u8]) -> Result<Vec<u8>, PackageError> {
    let bytes = assemble(manifest, bill, image, None)?;
    let trust = Trust { policy: Policy::QuarantineUnsigned, ..Trust::default() };
    check(&bytes, &trust)?;
    Ok(bytes)
}

/// Makes the kernel's checks, for a system that gives unsafe code the domain that it needs.
fn check(bytes: &[u8], trust: &Trust) -> Result<(), PackageError> {
    let package = Package::parse(bytes)?;
    let isolation = if package.manifest.code.is_unsafe() { Isolation::Apart } else { Isolation::Software };
    verify_in(&package, trust, isolation).map(drop)
}

/// Builds a package file like [`build_package`] without checking it, for tests of the checks.
///
/// # Errors
/// A part is 4 GiB or larger.
pub fn build_unchecked(
    manifest: Manifest,
    bill: &[u8],
    image: &[u8],
    signer: &Signer,
) -> Result<Vec<u8>, PackageError> {
    assemble(manifest, bill, image, Some(signer))
}

fn assemble(
    mut manifest: Manifest,
    bill: &[u8],
    image: &[u8],
    signer: Option<&Signer>,
) -> Result<Vec<u8>, PackageError> {
    match &mut manifest.code {
        Code::Image { digest } | Code::Unsafe { digest } | Code::Template { digest } | Code::Wasm { digest, .. } => {
            *digest = image_digest(image);
        }
        Code::Script { .. } => {}
    }
    let manifest = manifest.encode();
    let chain = signer.map(|signer| Certificate::encode_chain(&signer.chain)).unwrap_or_default();
    let key = signer.map_or(PublicKey::NONE, |signer| signer.key.public());
    let mut bytes = PACKAGE_MAGIC.to_vec();
    for part in [manifest.len(), bill.len(), image.len(), chain.len()] {
        bytes.extend_from_slice(&length(part)?);
    }
    bytes.extend_from_slice(&image_digest(bill));
    let identity = identity_of(&bytes, &manifest, &chain, key);
    bytes.extend_from_slice(&manifest);
    bytes.extend_from_slice(bill);
    bytes.extend_from_slice(image);
    bytes.extend_from_slice(&chain);
    bytes.extend_from_slice(&key.0);
    bytes.extend_from_slice(&signer.map_or([0; 64], |signer| signer.key.0.sign(&identity).to_bytes()));
    Ok(bytes)
}

/// Builds a system image file from a system manifest, whose trust must include the signing key as a root that may sign
/// systems, and package files.
///
/// # Errors
/// A package is malformed, or the key may not sign systems.
pub fn build_system(manifest: &SystemManifest, packages: &[Vec<u8>], key: &SecretKey) -> Result<Vec<u8>, PackageError> {
    if !manifest.trust.may_sign_systems(key.public()) {
        return Err(TrustError::NotASystemSigner { key: key.public() }.into());
    }
    let mut identities: Vec<Digest> = Vec::new();
    for package in packages {
        identities.push(identity_of_delivery(&Delivery::parse(package)?));
    }
    let manifest = manifest.encode();
    let mut bytes = SYSTEM_MAGIC.to_vec();
    for count in [manifest.len(), packages.len()] {
        bytes.extend_from_slice(&length(count)?);
    }
    bytes.extend_from_slice(&manifest);
    for (package, identity) in packages.iter().zip(&identities) {
        bytes.extend_from_slice(&length(package.len())?);
        bytes.extend_from_slice(identity);
    }
    bytes.extend_from_slice(&key.public().0);
    let measurement = sha256(&bytes);
    bytes.extend_from_slice(&measurement);
    bytes.extend_from_slice(&key.0.sign(&measurement).to_bytes());
    for package in packages {
        bytes.extend_from_slice(package);
    }
    Ok(bytes)
}

fn length(length: usize) -> Result<[u8; 4], PackageError> {
    let length = u32::try_from(length).map_err(|_| ImageError::TooLarge { bytes: length as u64 })?;
    Ok(length.to_le_bytes())
}
