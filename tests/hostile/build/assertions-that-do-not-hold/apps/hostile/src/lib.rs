//! A program whose manifest promises more than its code keeps.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use stdio::Output;

sip::startup!();

const WORDS: [&[u8]; 4] = [b"a\n", b"b\n", b"c\n", b"d\n"];

/// Says something.
pub fn main(startup: Startup) -> i32 {
    let mut output = Output::new(startup.output);
    let place = sip::time::monotonic() as usize;
    output.write(first(place)).map_or(1, |()| output.finish_with(0))
}

#[inline(never)]
fn first(place: usize) -> &'static [u8] {
    second(place.wrapping_mul(3)).get(1..).unwrap_or_default()
}

#[inline(never)]
fn second(place: usize) -> &'static [u8] {
    WORDS[place]
}
