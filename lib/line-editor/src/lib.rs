//! Line editing: bytes of a terminal in, an edited line and bytes for the terminal out.
//!
//! Key types: [`Editor`] (the state machine), [`Event`] (its output to the owner), [`Candidate`] (the owner's
//! completions), [`History`]; for full-screen programs [`Decoder`] (bytes to keys) and [`character_width`]. The
//! console driver edits lines with it. Deliberately not here: I/O and waiting. The owner moves the bytes, so that all
//! of it is tested against a model of a terminal's screen.
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
