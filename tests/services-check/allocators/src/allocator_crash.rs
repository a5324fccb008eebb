//! Ends with its third question, before it has answered.

use alloc::vec::Vec;

use sip::process;

sip::startup!("allocator-crash/manifest.toml");

/// Serves its parent.
pub fn main(startup: Startup) -> i32 {
    crate::serve(startup.client, startup.other, |number, _, answer: Vec<u8>| {
        if number == 2 {
            process::exit(7);
        }
        answer
    })
}
