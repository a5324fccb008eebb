//! Functions before register allocation, and allocations, as bytes between a compiler and its extensions.
//!
//! Key items: [`encode`] writes what an allocator has to know of a function, [`Request`] is that again in the allocator's
//! process, [`answer`] has what comes back. All of it is 32-bit words, little-endian. What is read was written by
//! another process: a claim that is checked, so that no index in it leads anywhere else.
//!
//! Neighbours: `regalloc2` allocates; `services/compiler`, `services/register-allocator` and
//! `services/allocation-checker` send and receive. Deliberately not here: channels.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod answer;
mod registers;
mod request;
mod words;
mod written;

pub use request::Request;
pub use written::encode;

use core::fmt;

/// Why bytes are not what they claim to be, or a function cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(
    /// What is wrong.
    pub &'static str,
);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl core::error::Error for Malformed {}
