//! What the kernel keeps of processes and of their deaths, as text.
//!
//! [`End`] is one line of the kernel's epitaphs, [`words`] describes the events of a trace, [`Core`] is what a dead
//! process held and where it was, and [`core_text`] is all of it in the form that `cargo sing autopsy` reads. Contract
//! and state of a message follow from those of its endpoint ([`conversations`]). Needs the permission `diagnostics`.
//! Deliberately not here: names of functions, which the host tool finds in the images.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod conversations;
mod core_record;
pub mod words;

pub use core_record::{Core, core_text};

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End<'a> {
    /// Process id.
    pub id: u64,
    /// Nanoseconds since the machine started.
    pub time_ns: u64,
    /// Name of its program.
    pub program: &'a str,
    /// Its epitaph.
    pub text: &'a str,
}

impl<'a> End<'a> {
    /// Parses a line of `sip::diagnostics::epitaphs`.
    pub fn parse(line: &'a str) -> Option<End<'a>> {
        let mut parts = line.splitn(4, ' ');
        let (id, time_ns) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        Some(End { id, time_ns, program: parts.next()?, text: parts.next().unwrap_or_default() })
    }
}
