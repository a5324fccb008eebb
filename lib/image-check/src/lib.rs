//! Whether a program's image is pure, safe code: position independent, without writable data, of allowed instructions.
//!
//! Key type: [`Image`], what remains of the ELF file once it is checked. Neighbours: `package-check` checks the image
//! of each package with it, the kernel maps the result. Deliberately not here: what the manifest says of the image.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod common_instructions;
mod error;
mod image;
mod instructions;

pub use error::ImageError;
pub use image::{ContractRecord, Image, ImageSegment, RelocatedSegment, Relocation};

/// Magic bytes of a contract record in an image's `.sing.contracts` section; the 32 bytes of the
/// fingerprint and the name tag (u64, little-endian) follow.
pub const CONTRACT_MAGIC: &[u8; 16] = b"SING-CONTRACT-V1";

/// Bytes of a contract record.
pub const CONTRACT_RECORD_BYTES: usize = 16 + 32 + 8;

/// The largest image file, in bytes.
pub const IMAGE_BYTES_MAX: usize = 8 << 20;
