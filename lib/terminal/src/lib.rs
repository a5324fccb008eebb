//! The console's terminal logic, without I/O, so that tests need no machine.
//!
//! Key types: [`Terminal`] (line input, Ctrl-C and Ctrl-Z, output sanitizing), [`page::Page`] (the screen of a
//! full-screen program), [`serial::Unquote`] (end of input on a serial line). Neighbours: `line-editor` edits,
//! `command-language` highlights; console drivers serve it. This is the only crate that knows escape sequences: they go
//! to terminals only, and those in program output are shown as text. Deliberately not here: commands, and their history
//! on disk.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod page;
mod secret;
pub mod serial;
mod terminal;

pub use terminal::{LineEvent, Reading, Signal, TYPED_AHEAD_BYTES, Terminal};
