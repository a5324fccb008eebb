//! The smallest program: a manifest, and a `main` that receives the resources declared there.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::format;

use stdio::Output;

sip::startup!();

/// Prints a greeting.
pub fn main(startup: Startup) -> i32 {
    let mut output = Output::new(startup.output);
    let text = format!("Hello, {}!\n", startup.name);
    output.write(text.as_bytes()).map_or(1, |()| output.finish_with(0))
}
