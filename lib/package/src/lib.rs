//! Parsing of packages and system images: manifest, bill of materials, image, certificates, signature.
//!
//! Key types: [`Package`], [`Delivery`], [`SystemImage`], [`Certificate`]. Neighbours: `package-check` verifies them, `package-build`
//! makes them. Deliberately not here: hashes and signatures, so that programs that only inspect a package link no
//! cryptography.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod certificate;
mod container;
mod delivery;
mod error;
mod trust_error;

pub use certificate::{CHAIN_BYTES_MAX, CHAIN_MAX, Certificate, May};
pub use container::{PACKAGE_MAGIC, Package, SYSTEM_MAGIC, SystemImage};
pub use delivery::{COMPILED_MAGIC, Delivery, compiled};
pub use error::FormatError;
pub use trust_error::TrustError;

/// Maximum size of a bill of materials, in bytes.
pub const BILL_BYTES_MAX: usize = 1 << 20;
