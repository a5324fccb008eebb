//! The files: a package and a system image, taken apart without looking into their parts.
//!
//! All numbers are little-endian. A package is: magic (8 bytes), bytes of the manifest (u32), bytes
//! of the image (u32), manifest, image, public key (32 bytes), signature (64 bytes). The signature is
//! over the SHA-256 of all that precedes it but the image, whose own BLAKE3 stands in the manifest, so
//! that each byte is hashed once.
//!
//! A system image is: magic (8 bytes), number of keys (u32), bytes of the system manifest (u32), number of
//! packages (u32), keys (32 bytes each), system manifest, bytes of each package (u32 each), SHA-256 of all
//! that precedes, packages. A package is protected by its own signature.

use alloc::vec::Vec;

use crate::{Manifest, PackageError, SystemManifest};

pub(crate) const PACKAGE_MAGIC: &[u8; 8] = b"SINGPKG2";
pub(crate) const SYSTEM_MAGIC: &[u8; 8] = b"SINGSYS1";

/// An Ed25519 public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicKey(pub [u8; 32]);

/// A package taken apart; nothing of it is believed yet but the shape.
#[derive(Clone, Debug)]
pub struct Package<'a> {
    /// What the manifest says.
    pub manifest: Manifest,
    /// The manifest in its binary form.
    pub manifest_bytes: &'a [u8],
    /// The image file; empty if the code is a script.
    pub image_bytes: &'a [u8],
    /// Who claims to have signed it.
    pub key: PublicKey,
    pub(crate) header: &'a [u8],
    pub(crate) signature: [u8; 64],
}

impl<'a> Package<'a> {
    /// Takes the bytes of a package file apart.
    pub fn parse(bytes: &'a [u8]) -> Result<Package<'a>, PackageError> {
        let mut input = Input { bytes, offset: 0 };
        if input.take(8)? != PACKAGE_MAGIC {
            return Err(PackageError::NotAPackage);
        }
        let manifest_length = input.length()?;
        let image_length = input.length()?;
        let header = &bytes[..input.offset];
        let manifest_offset = input.offset;
        let manifest_bytes = input.take(manifest_length)?;
        let image_bytes = input.take(image_length)?;
        let key = PublicKey(input.array()?);
        let signature = input.array()?;
        input.end()?;
        let manifest = Manifest::decode(manifest_bytes)
            .map_err(|_| PackageError::ManifestUnreadable { offset: manifest_offset })?;
        Ok(Package { manifest, manifest_bytes, image_bytes, key, header, signature })
    }
}

/// A system image taken apart.
#[derive(Clone, Debug)]
pub struct SystemImage<'a> {
    /// Who runs, with what.
    pub manifest: SystemManifest,
    /// The system manifest in its binary form, as the ABI function `system_manifest` gives it.
    pub manifest_bytes: &'a [u8],
    /// Keys whose signatures count.
    pub keys: Vec<PublicKey>,
    /// The package files, not yet taken apart.
    pub packages: Vec<&'a [u8]>,
}

impl<'a> SystemImage<'a> {
    /// Takes the bytes of a system image file apart, without its checksum; see `SystemImage::parse`.
    pub(crate) fn split(bytes: &'a [u8]) -> Result<(SystemImage<'a>, &'a [u8], [u8; 32]), PackageError> {
        let mut input = Input { bytes, offset: 0 };
        if input.take(8)? != SYSTEM_MAGIC {
            return Err(PackageError::NotASystemImage);
        }
        let key_count = input.length()?;
        let manifest_length = input.length()?;
        let package_count = input.length()?;
        let mut keys = Vec::new();
        for _ in 0..key_count {
            keys.push(PublicKey(input.array()?));
        }
        let manifest_offset = input.offset;
        let manifest_bytes = input.take(manifest_length)?;
        let mut lengths = Vec::new();
        for _ in 0..package_count {
            lengths.push(input.length()?);
        }
        let covered = &bytes[..input.offset];
        let checksum = input.array()?;
        let mut packages = Vec::new();
        for length in lengths {
            packages.push(input.take(length)?);
        }
        input.end()?;
        let manifest = SystemManifest::decode(manifest_bytes)
            .map_err(|_| PackageError::ManifestUnreadable { offset: manifest_offset })?;
        Ok((SystemImage { manifest, manifest_bytes, keys, packages }, covered, checksum))
    }
}

struct Input<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> Input<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], PackageError> {
        let end = self.offset.checked_add(length).filter(|&end| end <= self.bytes.len());
        let end =
            end.ok_or(PackageError::Truncated { offset: self.offset, wanted: length, length: self.bytes.len() })?;
        let taken = &self.bytes[self.offset..end];
        self.offset = end;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], PackageError> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N)?);
        Ok(out)
    }

    fn length(&mut self) -> Result<usize, PackageError> {
        Ok(u32::from_le_bytes(self.array()?) as usize)
    }

    fn end(&self) -> Result<(), PackageError> {
        if self.offset == self.bytes.len() {
            return Ok(());
        }
        Err(PackageError::TrailingBytes { offset: self.offset, count: self.bytes.len() - self.offset })
    }
}
