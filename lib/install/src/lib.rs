//! Installation checks: conditions for adding, upgrading or removing a program, and what it will be able to reach.
//!
//! Key types: [`Installed`] (a system and its programs), [`Change`], [`check`] and its [`Report`],
//! [`manifest_findings`] (faults of a program's manifest alone), [`system_findings`] (faults of a system manifest over
//! its programs), [`Map`] (channels that can come about), [`Medium`] (atomic replacement of files). Neighbours:
//! `package` reads package files, `package-check` verifies them, `principal` parses the principals in rules; `manifest`
//! uses this to check its input; the host tool and the installer service check changes with it before making them.
//! Pure: no I/O.
//!
//! Deliberately not here: the checks that the kernel repeats when it loads a program, on which alone isolation rests.
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
pub use reach::{
    Conversation, Conversations, Group, Map, Reach, Reached, Rule, Started, Who, conversations, paths_meet,
};
pub use report::{Finding, Line, Report, Verdict};
#[cfg(feature = "verify")]
pub use verify::{Request, analysed, examine, signed_system, system_of, verified};

/// Maximum length of a manifest's lists.
pub use check::manifest::LIST_MAX;
/// Faults of a single manifest.
pub use check::manifest::findings as manifest_findings;
/// A finding for an overlong list of a manifest.
pub use check::manifest::long_list;
/// Faults of a system manifest over its programs.
pub use check::wiring::findings as system_findings;
