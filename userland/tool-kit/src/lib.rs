//! Shared code of everyday tools.
//!
//! Key types: [`lines::Lines`] (a file or standard input, line by line), [`screen::Screen`] (a full-screen program's
//! pages and keys), [`command::Runner`] (command lines that a tool runs for its user), [`view::Rows`] (text layout on a
//! screen). Deliberately not here: code of a single program.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod command;
pub mod lines;
pub mod screen;
pub mod view;
