//! The binary form of both manifests: a magic number, then postcard.

use alloc::vec::Vec;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};

use crate::{Manifest, SystemManifest};

const MANIFEST_MAGIC: &[u8; 4] = b"SGM1";
const SYSTEM_MAGIC: &[u8; 4] = b"SGY1";

/// Bytes are not a manifest, or not one that this version can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeError;

impl Manifest {
    /// The binary form.
    pub fn encode(&self) -> Vec<u8> {
        encode(MANIFEST_MAGIC, self)
    }

    /// Reads the binary form. What the kernel gave out is sound; for bytes from elsewhere, lists and
    /// numbers may disagree with each other until `package-check` has looked.
    pub fn decode(bytes: &[u8]) -> Result<Manifest, DecodeError> {
        decode(MANIFEST_MAGIC, bytes)
    }
}

impl SystemManifest {
    /// The binary form.
    pub fn encode(&self) -> Vec<u8> {
        encode(SYSTEM_MAGIC, self)
    }

    /// Reads the binary form.
    pub fn decode(bytes: &[u8]) -> Result<SystemManifest, DecodeError> {
        decode(SYSTEM_MAGIC, bytes)
    }
}

fn encode<T: Serialize>(magic: &[u8; 4], value: &T) -> Vec<u8> {
    let mut out = magic.to_vec();
    // Serializing to a growing buffer fails only for types whose length is not known; these have none.
    if let Ok(body) = postcard::to_allocvec(value) {
        out.extend_from_slice(&body);
    }
    out
}

fn decode<T: DeserializeOwned>(magic: &[u8; 4], bytes: &[u8]) -> Result<T, DecodeError> {
    let body = bytes.strip_prefix(magic).ok_or(DecodeError)?;
    match postcard::take_from_bytes(body) {
        Ok((value, [])) => Ok(value),
        _ => Err(DecodeError),
    }
}

/// Reads a list of bytes at once. Each by itself, as lists are read, takes a kernel that starts longer than
/// all the rest of a manifest.
pub(crate) fn bytes<'a, D: Deserializer<'a>>(from: D) -> Result<Vec<u8>, D::Error> {
    <&[u8]>::deserialize(from).map(<[u8]>::to_vec)
}
