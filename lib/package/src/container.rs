//! File formats: parses a package and a system image into their parts, which stay opaque.
//!
//! All numbers are little-endian. A package is: magic (8 bytes), lengths of the manifest, the bill of materials, the
//! image and the certificates (u32 each), BLAKE3 of the bill (32 bytes), manifest, bill, image, certificates (see
//! [`Certificate`]), public key (32 bytes), signature (64 bytes). The signature is over the SHA-256 of header,
//! manifest, certificates and key, the package's *identity*; header and manifest contain the BLAKE3 of bill and image,
//! so that each byte is hashed once. An unsigned package has no certificates; key and signature are zero.
//!
//! A system image is: magic (8 bytes), length of the system manifest (u32), number of packages (u32), system manifest,
//! length (u32) and identity (32 bytes) of each package, key (32 bytes), SHA-256 of all that precedes, the key's
//! signature over it (64 bytes), packages. So the system's signature covers each package, and no other version of a
//! package can be substituted; the SHA-256 identifies the whole system and is its measurement.

use alloc::vec::Vec;

use manifest_model::{Digest, Manifest, PublicKey, SystemManifest};

use crate::{BILL_BYTES_MAX, CHAIN_BYTES_MAX, Certificate, FormatError, TrustError};

/// Magic number of a package file.
pub const PACKAGE_MAGIC: &[u8; 8] = b"SINGPKG3";
/// Magic number of a system image file.
pub const SYSTEM_MAGIC: &[u8; 8] = b"SINGSYS3";

/// A parsed package; only its shape has been validated.
#[derive(Clone, Debug)]
pub struct Package<'a> {
    /// The decoded manifest.
    pub manifest: Manifest,
    /// The manifest in its binary form.
    pub manifest_bytes: &'a [u8],
    /// The bill of materials: TOML that lists the image's components; may be empty.
    pub bill: &'a [u8],
    /// The image file, or the module if the code is one; empty if the code is a script.
    pub image_bytes: &'a [u8],
    /// The claimed signer; [`PublicKey::NONE`] if unsigned.
    pub key: PublicKey,
    /// The chain of trust, if the key is no root: from its own certificate to the one issued by a root.
    pub chain: Vec<Certificate>,
    /// Expected BLAKE3 of the bill.
    pub bill_digest: Digest,
    /// The bytes before the manifest.
    pub header: &'a [u8],
    /// The certificates in binary form.
    pub chain_bytes: &'a [u8],
    /// The claimed signature of the key over the identity; zeros if unsigned.
    pub signature: [u8; 64],
}

impl<'a> Package<'a> {
    /// Parses a package file.
    ///
    /// # Errors
    /// The shape is wrong, or manifest or certificates are malformed.
    pub fn parse(bytes: &'a [u8]) -> Result<Package<'a>, FormatError> {
        let mut input = Input::new(bytes);
        if input.take(8)? != PACKAGE_MAGIC {
            return Err(FormatError::NotAPackage);
        }
        let manifest_length = input.length()?;
        let bill_length = input.length()?;
        let image_length = input.length()?;
        let chain_length = input.length()?;
        let bill_digest = input.array()?;
        let header = &bytes[..input.offset];
        if bill_length > BILL_BYTES_MAX {
            return Err(FormatError::BillTooLarge { bytes: bill_length as u64 });
        }
        if chain_length > CHAIN_BYTES_MAX {
            return Err(TrustError::ChainTooLong.into());
        }
        let manifest_offset = input.offset;
        let manifest_bytes = input.take(manifest_length)?;
        let bill = input.take(bill_length)?;
        let image_bytes = input.take(image_length)?;
        let chain_bytes = input.take(chain_length)?;
        let key = PublicKey(input.array()?);
        let signature = input.array()?;
        input.end()?;
        let manifest = Manifest::decode(manifest_bytes)
            .map_err(|_| FormatError::ManifestUnreadable { offset: manifest_offset })?;
        let chain = Certificate::chain(chain_bytes)?;
        Ok(Package {
            manifest,
            manifest_bytes,
            bill,
            image_bytes,
            key,
            chain,
            bill_digest,
            header,
            chain_bytes,
            signature,
        })
    }

    /// Returns whether its code is machine code: an image, neither a script nor a WebAssembly module.
    pub fn is_native(&self) -> bool {
        self.manifest.code.image_digest().is_some()
    }

    /// Returns whether it is marked as unsigned.
    pub fn is_unsigned(&self) -> bool {
        self.key == PublicKey::NONE
    }
}

/// A parsed system image; only its shape has been validated.
#[derive(Clone, Debug)]
pub struct SystemImage<'a> {
    /// The decoded system manifest.
    pub manifest: SystemManifest,
    /// The system manifest in its binary form, as the ABI function `system_manifest` gives it.
    pub manifest_bytes: &'a [u8],
    /// The signer's key.
    pub signer: PublicKey,
    /// The package files, not yet parsed.
    pub packages: Vec<&'a [u8]>,
    /// The expected identity of each package, by index.
    pub identities: Vec<Digest>,
    /// SHA-256 of the head, which identifies the whole.
    pub measurement: Digest,
    /// The claimed signature of the signer over the measurement.
    pub signature: [u8; 64],
}

impl<'a> SystemImage<'a> {
    /// Parses a system image file; also returns the bytes that the measurement must be the SHA-256 of. Only the format
    /// is validated.
    ///
    /// # Errors
    ///
    /// The format is wrong, or the manifest is malformed.
    pub fn parse(bytes: &'a [u8]) -> Result<(SystemImage<'a>, &'a [u8]), FormatError> {
        let mut input = Input::new(bytes);
        if input.take(8)? != SYSTEM_MAGIC {
            return Err(FormatError::NotASystemImage);
        }
        let manifest_length = input.length()?;
        let package_count = input.length()?;
        let manifest_offset = input.offset;
        let manifest_bytes = input.take(manifest_length)?;
        let mut lengths = Vec::new();
        let mut identities = Vec::new();
        for _ in 0..package_count {
            lengths.push(input.length()?);
            identities.push(input.array()?);
        }
        let signer = PublicKey(input.array()?);
        let covered = &bytes[..input.offset];
        let measurement = input.array()?;
        let signature = input.array()?;
        let mut packages = Vec::new();
        for length in lengths {
            packages.push(input.take(length)?);
        }
        input.end()?;
        let manifest = SystemManifest::decode(manifest_bytes)
            .map_err(|_| FormatError::ManifestUnreadable { offset: manifest_offset })?;
        let image = SystemImage { manifest, manifest_bytes, signer, packages, identities, measurement, signature };
        Ok((image, covered))
    }
}

/// Reads a file from its start.
pub(crate) struct Input<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> Input<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Input<'a> {
        Input { bytes, offset: 0 }
    }

    pub(crate) fn take(&mut self, length: usize) -> Result<&'a [u8], FormatError> {
        let end = self.offset.checked_add(length).filter(|&end| end <= self.bytes.len());
        let end =
            end.ok_or(FormatError::Truncated { offset: self.offset, wanted: length, length: self.bytes.len() })?;
        let taken = &self.bytes[self.offset..end];
        self.offset = end;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], FormatError> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N)?);
        Ok(out)
    }

    pub(crate) fn length(&mut self) -> Result<usize, FormatError> {
        Ok(u32::from_le_bytes(self.array()?) as usize)
    }

    pub(crate) fn end(&self) -> Result<(), FormatError> {
        if self.offset == self.bytes.len() {
            return Ok(());
        }
        Err(FormatError::TrailingBytes { offset: self.offset, count: self.bytes.len() - self.offset })
    }
}
