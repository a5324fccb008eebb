//! Programs' manifests and systems of programs: types and binary form, for the builder, the kernel and the programs
//! that read manifests.
//!
//! Key types: [`Manifest`], [`SystemManifest`], and [`Trust`], which a system manifest seals. Neighbours: the crate
//! `manifest` parses them from TOML, `package` stores them in files, `package-check` checks a package against its own.
//! Deliberately not here: TOML and its diagnostics, and certificates, which are no part of a manifest.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod apart;
mod assertions;
mod codec;
mod device;
mod manifest;
pub mod pattern;
mod quota;
mod requirement;
mod rights;
mod system;
pub mod trust;

pub use apart::{Apart, domain_of};
pub use assertions::{Assertions, WHOLE_PROGRAM};
pub use codec::DecodeError;
pub use device::{AddressRange, DeviceNeed, MEMORY_END, PORTS_END};
pub use manifest::{
    Awaited, Bounds, Category, Code, ContractSide, ContractUse, Digest, Domain, EndpointSlot, Manifest, Parameter,
    ParameterKind, Permission, Provide, Restart, SYSTEM_NAME, Side, Source, Supervision, Value, Version, Whose,
    is_name, is_path, is_program_name, may_give,
};
pub use quota::Quota;
pub use requirement::Requirement;
pub use rights::Rights;
pub use system::{Bind, Deny, Instance, ParameterSetting, Setting, SystemManifest};
pub use trust::{Policy, PublicKey, Revoked, Root, Trust};
