//! Exits immediately, so that only the cost of a process remains.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

sip::startup!();

/// Exits.
pub fn main(_startup: Startup) -> i32 {
    0
}
