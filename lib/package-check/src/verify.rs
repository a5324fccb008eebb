//! The checks of packages and system images, in order.

use image_check::{Data, Image};
use manifest_model::{Code, Digest, Manifest, Policy, PublicKey, Rights, SystemManifest, Trust, is_name};
use package::{Package, SystemImage, TrustError};

use crate::authority::{check_signer, is_signature};
use crate::digest::{image_digest, image_digest_in_steps, sha256, sha256_of};
use crate::module::module_contracts;
use crate::{PackageError, manifest};

/// A package that passed all checks.
#[derive(Clone, Debug)]
pub struct Verified<'a> {
    /// The manifest; its indices and numbers are valid.
    pub manifest: Manifest,
    /// The checked image; `None` if the code is a script, or a module that comes without its compiled image.
    pub image: Option<Image<'a>>,
    /// Whether it is unsigned: it may be installed, but run in a hardware domain of its own alone.
    pub quarantined: bool,
    /// See [`identity`].
    pub identity: Digest,
}

/// What every WebAssembly module begins with.
const MODULE_MAGIC: &[u8] = b"\0asm";

/// What contains a program when it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// The types of its code: it runs beside the kernel, or shares a hardware domain.
    Software,
    /// A hardware domain without privileges for each of its SIPs.
    Apart,
}

impl Isolation {
    /// Returns what contains a program in a system.
    pub fn of(system: &SystemManifest, program: &Manifest) -> Isolation {
        match system.domain_of(program) {
            Some(domain) if domain.contains_any_code() => Isolation::Apart,
            _ => Isolation::Software,
        }
    }
}

/// Parses a system image file, and verifies that its head is signed by one of its own roots that may sign systems.
/// Whether to trust that root is up to the caller: [`Trust::may_sign_systems`] of the `signer`.
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

/// The digest that a package's signature covers: the SHA-256 of header, manifest, certificates and key. Through the
/// digests in header and manifest it covers all of the package but the signature.
pub fn identity(package: &Package<'_>) -> Digest {
    identity_of(package.header, package.manifest_bytes, package.chain_bytes, package.key)
}

/// The [`identity`] of a package with these parts.
pub fn identity_of(header: &[u8], manifest: &[u8], chain: &[u8], key: PublicKey) -> Digest {
    sha256_of([header, manifest, chain, &key.0])
}

/// Checks, in this order: the key may sign for the publisher, the signature is valid, the key may publish native code
/// if there is any that is not to run apart, the digest of the bill is that of the header, the ABI version is this kernel's, the manifest is
/// within its limits, the image has the digest of the manifest and is valid, and its contracts are those of the
/// manifest.
///
/// # Errors
/// The first violation.
pub fn verify<'a>(package: &Package<'a>, trust: &Trust) -> Result<Verified<'a>, PackageError> {
    verify_in(package, trust, Isolation::Software)
}

/// The same of a program that runs in this isolation.
///
/// # Errors
/// As [`verify`].
pub fn verify_in<'a>(package: &Package<'a>, trust: &Trust, isolation: Isolation) -> Result<Verified<'a>, PackageError> {
    verify_in_steps(package, trust, isolation, &|| ())
}

/// Like `verify_in`, but calls `pause` regularly so that others can run.
///
/// # Errors
/// As [`verify`].
pub fn verify_in_steps<'a>(
    package: &Package<'a>,
    trust: &Trust,
    isolation: Isolation,
    pause: &dyn Fn(),
) -> Result<Verified<'a>, PackageError> {
    let identity = verify_signature(package, trust, isolation)?;
    let manifest = &package.manifest;
    if manifest.code.is_unsafe() && isolation == Isolation::Software {
        return Err(PackageError::NotApart);
    }
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
        Code::Wasm { digest, .. } => {
            if image_digest_in_steps(package.image_bytes, pause) != *digest {
                return Err(PackageError::ImageHash);
            }
            if !package.image_bytes.starts_with(MODULE_MAGIC) {
                return Err(PackageError::NotAModule);
            }
            module_contracts(&manifest.contracts, package.image_bytes)?;
            None
        }
        Code::Image { digest } | Code::Unsafe { digest } | Code::Template { digest } => {
            if image_digest_in_steps(package.image_bytes, pause) != *digest {
                return Err(PackageError::ImageHash);
            }
            let image = Image::check_in_steps(package.image_bytes, data_of(&manifest.code), pause)?;
            contracts_declared(manifest, &image)?;
            Some(image)
        }
    };
    Ok(Verified { manifest: manifest.clone(), image, quarantined: package.is_unsigned(), identity })
}

/// Verifies the signature in this trust; returns the identity that it covers. Fails if the key may not sign for the
/// publisher, if the signature is invalid, and if the package is native code that is not to run apart and the key may
/// not publish such code.
fn verify_signature(package: &Package<'_>, trust: &Trust, isolation: Isolation) -> Result<Digest, PackageError> {
    if package.is_unsigned() {
        let zeros = package.signature == [0; 64] && package.chain.is_empty();
        return match trust.policy {
            _ if !zeros => Err(TrustError::HalfSigned.into()),
            Policy::QuarantineUnsigned => Ok(identity(package)),
            Policy::SignedOnly | Policy::AllowPublisher(_) => Err(TrustError::Unsigned.into()),
        };
    }
    // An invalid name is not a publisher that a key could sign for.
    manifest::unless(is_name(&package.manifest.publisher), manifest::NO_PUBLISHER)
        .map_err(|what| PackageError::ManifestInvalid { what })?;
    let publisher = &package.manifest.publisher;
    let rights = check_signer(trust, publisher, package.key, &package.chain)?;
    let identity = identity(package);
    match is_signature(package.key, &identity, &package.signature) {
        Some(true) => {
            let needs_right = package.is_native() && isolation == Isolation::Software;
            if needs_right && !rights.contains(Rights::NATIVE) {
                return Err(TrustError::NotNative { key: package.key, publisher: publisher.clone() }.into());
            }
            Ok(identity)
        }
        Some(false) => Err(PackageError::BadSignature),
        None => Err(PackageError::BadKey),
    }
}

/// Unsafe code, each of whose processes is alone in its domain, may have data of its own.
fn data_of(code: &Code) -> Data {
    if code.is_unsafe() { Data::Private } else { Data::Refused }
}

pub(crate) fn contracts_declared(manifest: &Manifest, image: &Image<'_>) -> Result<(), PackageError> {
    for record in &image.contracts {
        let declared = manifest.contracts.iter().find(|contract| abi::name_tag(&contract.name) == record.name_tag);
        let declared = declared.ok_or(PackageError::UndeclaredContract { name_tag: record.name_tag })?;
        if declared.fingerprint != record.fingerprint {
            return Err(PackageError::ContractFingerprint { contract: declared.name.clone() });
        }
    }
    Ok(())
}
