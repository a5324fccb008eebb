//! What a package must prove before anything of it runs.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use abi::Automaton;
use sha2::{Digest as _, Sha256};

use crate::authority::is_signature;
use crate::{
    Code, Digest, Image, MEMORY_END, Manifest, PORTS_END, Package, PackageError, Policy, PublicKey, Rights, Source,
    SystemImage, Trust, TrustError, is_name, is_path, is_program_name, may_give,
};

/// A package that passed every check.
#[derive(Clone, Debug)]
pub struct Verified<'a> {
    /// What the manifest says; every index and number in it is sound.
    pub manifest: Manifest,
    /// The checked image; `None` if the code is a script.
    pub image: Option<Image<'a>>,
    /// Whether nobody has signed it: it may be there, but not run where the kernel runs.
    pub quarantined: bool,
    /// [`Package::identity`].
    pub identity: Digest,
}

/// SHA-256 of the bytes.
pub fn sha256(bytes: &[u8]) -> Digest {
    Sha256::digest(bytes).into()
}

/// SHA-256 of the pieces one after the other.
pub fn sha256_of<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Digest {
    let mut hash = Sha256::new();
    for piece in pieces {
        hash.update(piece);
    }
    hash.finalize().into()
}

/// BLAKE3 of an image file: a seventh of the instructions of SHA-256 where the processor has none for it.
pub fn image_digest(image: &[u8]) -> Digest {
    image_digest_in_steps(image, &|| ())
}

/// Bytes that are hashed between two pauses.
const HASHED_BYTES: usize = 256 * 1024;

fn image_digest_in_steps(image: &[u8], pause: &dyn Fn()) -> Digest {
    let mut hash = blake3::Hasher::new();
    for piece in image.chunks(HASHED_BYTES) {
        hash.update(piece);
        pause();
    }
    *hash.finalize().as_bytes()
}

/// The SHA-256 that the signature of a package is over.
pub(crate) fn package_identity(header: &[u8], manifest: &[u8], chain: &[u8], key: PublicKey) -> Digest {
    sha256_of([header, manifest, chain, &key.0])
}

impl<'a> SystemImage<'a> {
    /// Takes the bytes of a system image file apart, and checks that its head is as it was signed by a root of its
    /// own that may sign systems. Whether that root is one that the reader believes is the reader's to ask:
    /// [`Trust::may_sign_systems`] of the `signer`.
    ///
    /// # Errors
    /// The shape, the SHA-256 or the signature is wrong, or the signer may not sign systems.
    pub fn parse(bytes: &'a [u8]) -> Result<SystemImage<'a>, PackageError> {
        let (image, covered) = SystemImage::split(bytes)?;
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
}

impl<'a> Package<'a> {
    /// What the signature is over: the SHA-256 of header, manifest, certificates and key. Through the digests in
    /// header and manifest it stands for each byte of the package but the signature itself.
    pub fn identity(&self) -> Digest {
        package_identity(self.header, self.manifest_bytes, self.chain_bytes, self.key)
    }

    /// Checks, in this order: the key may sign for the publisher in this trust, the signature is the key's, the key has
    /// the right to native code if the package holds any, the bill
    /// is the header's, the ABI version is this kernel's, the manifest is sound, the image is the manifest's and is
    /// pure, safe code, and the contracts in it are those of the manifest.
    ///
    /// # Errors
    /// The first of these that does not hold.
    pub fn verify(&self, trust: &Trust) -> Result<Verified<'a>, PackageError> {
        self.verify_in_steps(trust, &|| ())
    }

    /// The same for who has to let others go on: `pause` is called every so often.
    ///
    /// # Errors
    /// As [`verify`](Self::verify).
    pub fn verify_in_steps(&self, trust: &Trust, pause: &dyn Fn()) -> Result<Verified<'a>, PackageError> {
        let identity = self.verify_signature(trust)?;
        let manifest = &self.manifest;
        if image_digest(self.bill) != self.bill_digest {
            return Err(PackageError::BillHash);
        }
        if manifest.abi != abi::ABI_VERSION {
            return Err(PackageError::AbiVersion { wanted: manifest.abi, present: abi::ABI_VERSION });
        }
        sound(manifest).map_err(|what| PackageError::ManifestInvalid { what })?;
        let image = match &manifest.code {
            Code::Script { .. } if self.image_bytes.is_empty() => None,
            Code::Script { .. } => return Err(PackageError::ScriptWithImage),
            Code::Image { digest } => {
                if image_digest_in_steps(self.image_bytes, pause) != *digest {
                    return Err(PackageError::ImageHash);
                }
                let image = Image::check_in_steps(self.image_bytes, pause)?;
                contracts_declared(manifest, &image)?;
                Some(image)
            }
        };
        Ok(Verified { manifest: manifest.clone(), image, quarantined: self.is_unsigned(), identity })
    }

    /// Whether the signature counts in this trust; gives the identity that it is over.
    ///
    /// # Errors
    /// The key may not sign for the publisher, the signature is not the key's, or the package is native code and the
    /// key lacks the right to that.
    pub fn verify_signature(&self, trust: &Trust) -> Result<Digest, PackageError> {
        if self.is_unsigned() {
            let zeros = self.signature == [0; 64] && self.chain.is_empty();
            return match trust.policy {
                _ if !zeros => Err(TrustError::HalfSigned.into()),
                Policy::QuarantineUnsigned => Ok(self.identity()),
                Policy::SignedOnly | Policy::AllowPublisher(_) => Err(TrustError::Unsigned.into()),
            };
        }
        // What is no name is no publisher that a key could be for.
        unless(is_name(&self.manifest.publisher), NO_PUBLISHER)
            .map_err(|what| PackageError::ManifestInvalid { what })?;
        let publisher = &self.manifest.publisher;
        let rights = trust.check_signer(publisher, self.key, &self.chain)?;
        let identity = self.identity();
        match is_signature(self.key, &identity, &self.signature) {
            Some(true) if self.is_native() && !rights.contains(Rights::NATIVE) => {
                Err(TrustError::NotNative { key: self.key, publisher: publisher.clone() }.into())
            }
            Some(true) => Ok(identity),
            Some(false) => Err(PackageError::BadSignature),
            None => Err(PackageError::BadKey),
        }
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

const NO_PUBLISHER: &str = "the publisher's name is not of the form [a-z][a-z0-9-]*";

fn unless(good: bool, what: &str) -> Result<(), String> {
    if good { Ok(()) } else { Err(String::from(what)) }
}

/// The bounds that a signed manifest must keep all the same: a publisher can err.
fn sound(manifest: &Manifest) -> Result<(), String> {
    unless(
        is_program_name(&manifest.name),
        "the program's name is the system's own, or not of the form [a-z][a-z0-9-]*",
    )?;
    unless(is_name(&manifest.publisher), NO_PUBLISHER)?;
    let lists = [
        manifest.contracts.len(),
        manifest.endpoints.len(),
        manifest.parameters.len(),
        manifest.provides.len(),
        manifest.devices.len(),
    ];
    unless(lists.iter().all(|&length| length <= LIST_MAX), "a list has more than 256 entries")?;
    let mut automata = Vec::new();
    for contract in &manifest.contracts {
        let name = &contract.name;
        let automaton = Automaton::decode(&contract.automaton)
            .map_err(|error| format!("the automaton of contract `{name}` at byte {}: {}", error.offset, error.what))?;
        if automaton.name != *name || sha256(&contract.automaton) != contract.fingerprint {
            return Err(format!("the automaton of contract `{name}` is not the one that its fingerprint says"));
        }
        automata.push(automaton);
    }
    unless(distinct(manifest.contracts.iter().map(|contract| &contract.name)), "a contract is listed twice")?;
    for slot in &manifest.endpoints {
        let name = &slot.name;
        let automaton = automata
            .get(slot.contract as usize)
            .ok_or_else(|| format!("the endpoint `{name}` names no contract of the list"))?;
        if !may_give(automaton, slot.state) {
            return Err(format!("the endpoint `{name}` is in a state in which it cannot be given away"));
        }
        if let Source::Path(path) = &slot.source {
            unless(is_path(path), "an endpoint's path is not absolute")?;
        }
    }
    for provide in &manifest.provides {
        unless(is_path(&provide.path), "a provided path is not absolute")?;
        unless((provide.contract as usize) < automata.len(), "a provided path names no contract of the list")?;
    }
    for device in &manifest.devices {
        let lists = [device.ports.len(), device.memory.len(), device.interrupts.len()];
        unless(lists.iter().all(|&length| length <= LIST_MAX), "a device has more than 256 ranges or interrupts")?;
        let ports = device.ports.iter().all(|range| range.is_within(PORTS_END));
        let memory = device.memory.iter().all(|range| range.is_within(MEMORY_END));
        unless(ports && memory, "a device has a range of addresses that no machine has")?;
    }
    for parameter in &manifest.parameters {
        let fits = parameter.default.as_ref().is_none_or(|default| default.kind() == parameter.kind);
        if !fits {
            return Err(format!("the default of parameter `{}` is not of its type", parameter.name));
        }
    }
    unless(distinct(manifest.endpoints.iter().map(|slot| &slot.name)), "two endpoints have the same name")?;
    unless(distinct(manifest.parameters.iter().map(|parameter| &parameter.name)), "two parameters have the same name")?;
    manifest.quota.check().map_err(String::from)
}

/// The longest list of a manifest.
const LIST_MAX: usize = 256;

fn distinct<'s>(names: impl Iterator<Item = &'s String>) -> bool {
    let mut names: Vec<&String> = names.collect();
    names.sort();
    names.windows(2).all(|pair| pair[0] != pair[1])
}
