//! Verification of packages and system images before anything of them runs.
//!
//! Key functions: [`verify`] and [`verify_system`]; [`Verified`] is a package that passed. Neighbours: `package` parses
//! the files, `image-check` validates the image, `package-build` makes files that pass. The kernel verifies at load;
//! the host tool and its installer verify before they write. Deliberately not here: whether a system may have the
//! program, which `install` decides.
//! program, which `install` judges.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod authority;
mod compiled;
mod digest;
mod error;
mod manifest;
mod module;
mod verify;

pub use authority::check_signer;
pub use compiled::{identity_of_delivery, verify_compiled_in_steps};
pub use digest::{image_digest, sha256, sha256_of};
pub use error::PackageError;
pub use image_check::faults::Faults;
pub use module::module_contracts;
pub use verify::{Isolation, Verified, identity, identity_of, verify, verify_in, verify_in_steps, verify_system};
