//! Clears the terminal.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use stdio::Output;

sip::startup!();

/// Sends a form feed, on which the console starts a page at the top of an empty screen.
pub fn main(startup: Startup) -> i32 {
    let mut output = Output::new(startup.output);
    output.write(b"\x0c").map_or(1, |()| output.finish_with(0))
}
