//! Line editing: bytes of a terminal in, an edited line and bytes for the terminal out.
//!
//! Key types: [`Editor`] (the state machine), [`Event`] (what it tells its owner), [`Candidate`]
//! (what its owner answers a completion with), [`History`]; for full-screen programs [`Decoder`] (bytes to keys) and
//! [`character_width`]. The console driver edits lines with it.
//! Deliberately not here: any reading, writing or waiting. The owner moves the bytes, so that the
//! whole of it is tested against a model of a terminal's screen.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod buffer;
mod completion;
mod editor;
mod history;
mod keys;
mod layout;
mod paint;

pub use completion::Candidate;
pub use editor::{Editor, Event};
pub use history::History;
pub use keys::{Decoder, Key};
pub use layout::width as character_width;
pub use paint::{Highlighter, Span, Style};
