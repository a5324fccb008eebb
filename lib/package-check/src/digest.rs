//! Hashes: SHA-256 for signed data, BLAKE3 for images and bills of materials.

use manifest_model::Digest;
use sha2::{Digest as _, Sha256};

/// SHA-256 of bytes.
pub fn sha256(bytes: &[u8]) -> Digest {
    Sha256::digest(bytes).into()
}

/// SHA-256 of concatenated pieces.
pub fn sha256_of<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Digest {
    let mut hash = Sha256::new();
    for piece in pieces {
        hash.update(piece);
    }
    hash.finalize().into()
}

/// BLAKE3 of an image file: a seventh of the instructions of SHA-256 on processors without SHA extensions.
pub fn image_digest(image: &[u8]) -> Digest {
    image_digest_in_steps(image, &|| ())
}

/// Bytes hashed between calls of `pause`.
const HASHED_BYTES: usize = 256 * 1024;

/// The same, calling `pause` regularly.
pub(crate) fn image_digest_in_steps(image: &[u8], pause: &dyn Fn()) -> Digest {
    let mut hash = blake3::Hasher::new();
    for piece in image.chunks(HASHED_BYTES) {
        hash.update(piece);
        pause();
    }
    *hash.finalize().as_bytes()
}
