//! Validation of a program's image: position independent, without writable data that instances would share, made of
//! allowed instructions.
//!
//! Key type: [`Image`], the result of the check. Neighbours: `package-check` checks each package's image with it, the
//! kernel maps the result. Deliberately not here: consistency with the manifest.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod common_instructions;
mod error;
pub mod faults;
mod image;
mod instructions;

pub use error::ImageError;
pub use image::{ContractRecord, Data, Image, ImageSegment, RelocatedSegment, Relocation};

/// Magic of a contract record in an image's `.sing.contracts` section; the fingerprint (32 bytes) and name tag (u64,
/// little-endian) follow.
pub const CONTRACT_MAGIC: &[u8; 16] = b"SING-CONTRACT-V1";

/// Size of a contract record.
pub const CONTRACT_RECORD_BYTES: usize = 16 + 32 + 8;

/// Maximum size of an image file, in bytes.
pub const IMAGE_BYTES_MAX: usize = 64 << 20;
