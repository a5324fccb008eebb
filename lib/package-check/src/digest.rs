//! The hashes: SHA-256 for what is signed, BLAKE3 for images and bills of materials.

use manifest_model::Digest;
use sha2::{Digest as _, Sha256};

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

/// The same, with `pause` called every so often.
pub(crate) fn image_digest_in_steps(image: &[u8], pause: &dyn Fn()) -> Digest {
    let mut hash = blake3::Hasher::new();
    for piece in image.chunks(HASHED_BYTES) {
        hash.update(piece);
        pause();
    }
    *hash.finalize().as_bytes()
}
