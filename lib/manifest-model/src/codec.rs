//! The binary form of both manifests: a magic number, then postcard.

use alloc::vec::Vec;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};

use crate::{Manifest, SystemManifest};

const MANIFEST_MAGIC: &[u8; 4] = b"SGM3";
const SYSTEM_MAGIC: &[u8; 4] = b"SGY2";

/// Bytes are not a manifest, or not one that this version can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeError;

impl Manifest {
    /// The binary form.
    pub fn encode(&self) -> Vec<u8> {
        encode(MANIFEST_MAGIC, self)
    }

    /// Decodes the binary form. Manifests from the kernel are valid; in bytes from elsewhere, lists and numbers may be
    /// inconsistent until `package-check` has validated them.
    pub fn decode(bytes: &[u8]) -> Result<Manifest, DecodeError> {
        decode(MANIFEST_MAGIC, bytes)
    }
}

impl SystemManifest {
    /// The binary form.
    pub fn encode(&self) -> Vec<u8> {
        encode(SYSTEM_MAGIC, self)
    }

    /// Decodes the binary form.
    pub fn decode(bytes: &[u8]) -> Result<SystemManifest, DecodeError> {
        decode(SYSTEM_MAGIC, bytes)
    }
}

fn encode<T: Serialize>(magic: &[u8; 4], value: &T) -> Vec<u8> {
    let mut out = magic.to_vec();
    // Serializing to a growing buffer fails only for types of unknown length, of which there are none here.
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

/// Deserializes a byte list in one step: element by element, as other lists are, it would dominate the kernel's boot
/// time.
pub(crate) fn bytes<'a, D: Deserializer<'a>>(from: D) -> Result<Vec<u8>, D::Error> {
    <&[u8]>::deserialize(from).map(<[u8]>::to_vec)
}
