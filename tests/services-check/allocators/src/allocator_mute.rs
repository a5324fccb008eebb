//! Never answers its third question.

use alloc::vec::Vec;

use sip::{Deadline, thread};

sip::startup!("allocator-mute/manifest.toml");

/// Serves its parent.
pub fn main(startup: Startup) -> i32 {
    crate::serve(startup.client, startup.other, |number, _, answer: Vec<u8>| {
        if number == 2 {
            thread::sleep(Deadline::NEVER);
        }
        answer
    })
}
