//! A hostile program.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use stdio::Output;
use zerocopy::FromBytes;

sip::startup!();

mod one {
    pub use core::marker::Sync as FromBytes;
}

#[derive(Clone, Copy, FromBytes)]
#[zerocopy(crate = "crate::one")]
#[repr(C)]
struct Shared(*const core::cell::Cell<u64>);

/// Says something.
pub fn main(startup: Startup) -> i32 {
    let mut output = Output::new(startup.output);
    output.write(b"hello\n").map_or(1, |()| output.finish_with(0))
}
