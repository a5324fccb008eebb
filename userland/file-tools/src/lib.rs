//! What tools over files share.
//!
//! [`feed`] reads the files of the command line or standard input, block by block; [`walk`] goes through trees, over a
//! [`trail`] of open folders; [`copying`] and [`removing`] do so to a purpose; [`volume`] says which volume a path leads
//! to, and [`kind_text`] how a name is shown. Neighbours: `client` (one file, one folder), `tool-kit` (screens and
//! lines). Deliberately not here: anything that only one program does.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod copying;
pub mod feed;
pub mod kind_text;
pub mod removing;
pub mod trail;
pub mod volume;
pub mod walk;
