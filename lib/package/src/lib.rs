//! The sealed package: a program's binary manifest, its bill of materials, its image, a signature and why that
//! should count; and the system image, which is all packages of a system with its manifest, signed.
//!
//! Key types: [`Manifest`], [`SystemManifest`], [`Trust`], [`Certificate`], and, with the feature `verify`,
//! [`Package`], [`SystemImage`], [`Verified`] and [`Image`]. Neighbours: the host tool builds packages (feature
//! `build`), the kernel verifies them at load (feature `verify`), programs read manifests (no
//! feature, and no writable static), `boot/x86_64` reads what its boot loader brought (feature
//! `boot-image`). Deliberately not here: TOML and its diagnostics (the crate
//! `manifest`), and mapping an image (the kernel).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod arguments;
#[cfg(feature = "verify")]
mod authority;
#[cfg(feature = "boot-image")]
pub mod boot_image;
#[cfg(feature = "build")]
mod build;
mod certificate;
mod codec;
#[cfg(feature = "verify")]
mod common_instructions;
#[cfg(feature = "container")]
mod container;
mod device;
mod error;
mod expected;
#[cfg(feature = "verify")]
mod image;
#[cfg(feature = "verify")]
mod instructions;
mod manifest;
mod order;
pub mod pattern;
mod requirement;
mod rights;
mod system;
pub mod trust;
mod trust_error;
#[cfg(feature = "verify")]
mod verify;

#[cfg(feature = "build")]
pub use build::{Grant, SecretKey, Signer};
pub use certificate::{CHAIN_BYTES_MAX, CHAIN_MAX, Certificate, May};
pub use codec::DecodeError;
#[cfg(feature = "container")]
pub use container::Package;
#[cfg(feature = "verify")]
pub use container::SystemImage;
pub use device::{AddressRange, DeviceNeed, MEMORY_END, PORTS_END};
pub use error::PackageError;
pub use expected::{Expected, expected};
#[cfg(feature = "verify")]
pub use image::{ContractRecord, Image, ImageSegment, RelocatedSegment, Relocation};
pub use manifest::{
    Category, Code, ContractSide, ContractUse, Digest, Domain, EndpointSlot, Manifest, Parameter, ParameterKind,
    Permission, Provide, Quota, Restart, SYSTEM_NAME, Side, Source, Supervision, Value, Version, is_name, is_path,
    is_program_name, may_give,
};
pub use order::{OrderError, Provider, boot_order, bound_path, can_run, provider_of};
pub use requirement::Requirement;
pub use rights::Rights;
pub use system::{Bind, Deny, Instance, ParameterSetting, Setting, SystemManifest};
pub use trust::{Policy, PublicKey, Revoked, Root, Trust};
pub use trust_error::TrustError;
#[cfg(feature = "verify")]
pub use verify::{Verified, image_digest, sha256, sha256_of};

/// Magic bytes of a contract record in an image's `.sing.contracts` section; the 32 bytes of the
/// fingerprint and the name tag (u64, little-endian) follow.
pub const CONTRACT_MAGIC: &[u8; 16] = b"SING-CONTRACT-V1";

/// Bytes of a contract record.
pub const CONTRACT_RECORD_BYTES: usize = 16 + 32 + 8;

/// The largest image file, in bytes.
pub const IMAGE_BYTES_MAX: usize = 8 << 20;

/// The longest bill of materials, in bytes.
pub const BILL_BYTES_MAX: usize = 1 << 20;
