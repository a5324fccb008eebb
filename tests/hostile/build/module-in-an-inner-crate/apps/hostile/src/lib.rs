//! A hostile program.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod inner;

use stdio::Output;

sip::startup!();

/// Says something.
pub fn main(startup: Startup) -> i32 {
    let mut output = Output::new(startup.output);
    output.write(inner::WORDS).map_or(1, |()| output.finish_with(0))
}
