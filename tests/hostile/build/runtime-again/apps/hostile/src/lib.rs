//! A hostile program.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::boxed::Box;

sip::startup!();

/// Begins again, with what it has on its heap.
pub fn main(_: Startup) -> i32 {
    let first = Box::new([1u8; 64]);
    if first[0] == 1 {
        sip::entry::run(|()| 0);
    }
    0
}
