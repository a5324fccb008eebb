//! A hostile program.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use stdio::Output;

sip::startup!();

macro_rules! place {
    ($name:ident, $module:ident) => {
        #[$name = "../../text/words.rs"]
        mod $module;
    };
}
place!(path, words);

/// Says something.
pub fn main(startup: Startup) -> i32 {
    let mut output = Output::new(startup.output);
    output.write(b"hello\n").map_or(1, |()| output.finish_with(0))
}
