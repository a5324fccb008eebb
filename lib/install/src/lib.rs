//! Installing: what must hold before a program comes into a system, takes the place of an older version or goes, and
//! what it will be able to reach.
//!
//! Key types: [`Installed`] (a system and its programs), [`Change`] (what is to be done), [`check`] and its
//! [`Report`], [`manifest_findings`] (what a program's manifest has wrong by itself), [`system_findings`] (and a
//! system's over its programs), [`Map`] (who can come to talk to whom), [`Medium`] (files that change whole or not at
//! all). Neighbours: `package` reads package files, `package-check` verifies them, `principal` reads who rules speak of;
//! `manifest` judges what it reads with this, and the host tool and the installer service judge changes with it and then
//! make them. Pure: nothing here reads or writes anything.
//! Deliberately not here: what the kernel checks again when it loads a program, which is all that isolation rests on.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod check;
mod code;
mod explain;
mod field;
#[cfg(feature = "image")]
mod image;
mod installed;
mod medium;
mod reach;
mod report;
#[cfg(feature = "verify")]
mod verify;

pub use check::{check, promises, verify};
pub use code::{Code, Topic};
pub use explain::explanation;
pub use field::{Field, Place};
#[cfg(feature = "image")]
pub use image::{ImageError, change_file, changed};
pub use installed::{Change, Installed, Program};
pub use medium::{Medium, name_beside, replace};
pub use reach::{Group, Map, Reach, Reached, Rule, Started, Who, paths_meet};
pub use report::{Finding, Line, Report, Verdict};
#[cfg(feature = "verify")]
pub use verify::{Request, examine, signed_system, system_of, verified};

/// The longest list of a manifest.
pub use check::manifest::LIST_MAX;
/// What a manifest says wrong by itself.
pub use check::manifest::findings as manifest_findings;
/// What is wrong with a list of a manifest that is too long.
pub use check::manifest::long_list;
/// What a system manifest says wrong over its programs.
pub use check::wiring::findings as system_findings;
