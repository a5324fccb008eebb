//! What a console does with bytes, whoever they come from: pure, so that tests drive it without a machine.
//!
//! Key types: [`Terminal`] (lines, Ctrl-C and Ctrl-Z, harmless output), [`page::Page`] (the screen of a full-screen
//! program), [`serial::Unquote`] (the end of the input on a line that has none). Neighbours: `line-editor` edits, `command-language` says what to colour; the drivers of
//! consoles serve it. This is the one crate that knows escape sequences: they go to a terminal only, and those
//! in the output of programs are shown as text. Deliberately not here: commands and their history on disk.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod page;
mod secret;
pub mod serial;
mod terminal;

pub use terminal::{LineEvent, Reading, Signal, TYPED_AHEAD_BYTES, Terminal};
