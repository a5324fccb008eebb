//! Shared code of command-line programs that work on files.
//!
//! [`feed`] reads the operands or standard input, block by block; [`walk`] traverses trees, over a [`trail`] of open
//! folders; [`copying`] and [`removing`] build on it; [`volume`] resolves paths to volumes, and [`kind_text`] formats
//! kinds and permissions. Neighbours: `client` (one file, one folder), `tool-kit` (screens and lines). Deliberately not
//! here: code of a single program.
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
