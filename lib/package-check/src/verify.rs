//! The checks of a package and of a system image, in their order.

use image_check::Image;
use manifest_model::{Code, Digest, Manifest, Policy, PublicKey, Rights, Trust, is_name};
use package::{Package, SystemImage, TrustError};

use crate::authority::{check_signer, is_signature};
use crate::digest::{image_digest, image_digest_in_steps, sha256, sha256_of};
use crate::{PackageError, manifest};

/// A package that passed every check.
#[derive(Clone, Debug)]
pub struct Verified<'a> {
    /// What the manifest says; every index and number in it is sound.
    pub manifest: Manifest,
    /// The checked image; `None` if the code is a script.
    pub image: Option<Image<'a>>,
    /// Whether nobody has signed it: it may be there, but not run where the kernel runs.
    pub quarantined: bool,
    /// See [`identity`].
    pub identity: Digest,
}

/// Takes the bytes of a system image file apart, and checks that its head is as it was signed by a root of its
/// own that may sign systems. Whether the reader trusts that root is the reader's to decide:
/// [`Trust::may_sign_systems`] of the `signer`.
///
/// # Errors
/// The shape, the SHA-256 or the signature is wrong, or the signer may not sign systems.
pub fn verify_system(bytes: &[u8]) -> Result<SystemImage<'_>, PackageError> {
    let (image, covered) = SystemImage::parse(bytes)?;
    if sha256(covered) != image.measurement {
        return Err(PackageError::SystemChecksum);
    }
    if !image.manifest.trust.may_sign_systems(image.signer) {
        return Err(TrustError::NotASystemSigner { key: image.signer }.into());
    }
    match is_signature(image.signer, &image.measurement, &image.signature) {
        Some(true) => Ok(image),
        Some(false) => Err(PackageError::SystemSignature),
        None => Err(PackageError::BadKey),
    }
}

/// What the signature of a package is over: the SHA-256 of header, manifest, certificates and key. Through the digests
/// in header and manifest it stands for each byte of the package but the signature itself.
pub fn identity(package: &Package<'_>) -> Digest {
    identity_of(package.header, package.manifest_bytes, package.chain_bytes, package.key)
}

/// The [`identity`] of a package that has these parts.
pub fn identity_of(header: &[u8], manifest: &[u8], chain: &[u8], key: PublicKey) -> Digest {
    sha256_of([header, manifest, chain, &key.0])
}

/// Checks, in this order: the key may sign for the publisher in this trust, the signature is the key's, the key has
/// the right to native code if the package holds any, the bill is the header's, the ABI version is this kernel's, the
/// manifest is sound, the image is the manifest's and is pure, safe code, and the contracts in it are those of the
/// manifest.
///
/// # Errors
/// The first of these that does not hold.
pub fn verify<'a>(package: &Package<'a>, trust: &Trust) -> Result<Verified<'a>, PackageError> {
    verify_in_steps(package, trust, &|| ())
}

/// The same, with `pause` called every so often so that others can run.
///
/// # Errors
/// As [`verify`].
pub fn verify_in_steps<'a>(
    package: &Package<'a>,
    trust: &Trust,
    pause: &dyn Fn(),
) -> Result<Verified<'a>, PackageError> {
    let identity = verify_signature(package, trust)?;
    let manifest = &package.manifest;
    if image_digest(package.bill) != package.bill_digest {
        return Err(PackageError::BillHash);
    }
    if manifest.abi != abi::ABI_VERSION {
        return Err(PackageError::AbiVersion { wanted: manifest.abi, present: abi::ABI_VERSION });
    }
    manifest::sound(manifest).map_err(|what| PackageError::ManifestInvalid { what })?;
    let image = match &manifest.code {
        Code::Script { .. } if package.image_bytes.is_empty() => None,
        Code::Script { .. } => return Err(PackageError::ScriptWithImage),
        Code::Image { digest } => {
            if image_digest_in_steps(package.image_bytes, pause) != *digest {
                return Err(PackageError::ImageHash);
            }
            let image = Image::check_in_steps(package.image_bytes, pause)?;
            contracts_declared(manifest, &image)?;
            Some(image)
        }
    };
    Ok(Verified { manifest: manifest.clone(), image, quarantined: package.is_unsigned(), identity })
}

/// Whether the signature counts in this trust; gives the identity that it is over. Fails if the key may not sign for
/// the publisher, if the signature is not the key's, and if the package is native code and the key lacks the right to
/// that.
fn verify_signature(package: &Package<'_>, trust: &Trust) -> Result<Digest, PackageError> {
    if package.is_unsigned() {
        let zeros = package.signature == [0; 64] && package.chain.is_empty();
        return match trust.policy {
            _ if !zeros => Err(TrustError::HalfSigned.into()),
            Policy::QuarantineUnsigned => Ok(identity(package)),
            Policy::SignedOnly | Policy::AllowPublisher(_) => Err(TrustError::Unsigned.into()),
        };
    }
    // What is no name is no publisher that a key could be for.
    manifest::unless(is_name(&package.manifest.publisher), manifest::NO_PUBLISHER)
        .map_err(|what| PackageError::ManifestInvalid { what })?;
    let publisher = &package.manifest.publisher;
    let rights = check_signer(trust, publisher, package.key, &package.chain)?;
    let identity = identity(package);
    match is_signature(package.key, &identity, &package.signature) {
        Some(true) if package.is_native() && !rights.contains(Rights::NATIVE) => {
            Err(TrustError::NotNative { key: package.key, publisher: publisher.clone() }.into())
        }
        Some(true) => Ok(identity),
        Some(false) => Err(PackageError::BadSignature),
        None => Err(PackageError::BadKey),
    }
}

fn contracts_declared(manifest: &Manifest, image: &Image<'_>) -> Result<(), PackageError> {
    for record in &image.contracts {
        let declared = manifest.contracts.iter().find(|contract| abi::name_tag(&contract.name) == record.name_tag);
        let declared = declared.ok_or(PackageError::UndeclaredContract { name_tag: record.name_tag })?;
        if declared.fingerprint != record.fingerprint {
            return Err(PackageError::ContractFingerprint { contract: declared.name.clone() });
        }
    }
    Ok(())
}
