//! Names a register far beyond all that there are, in its third answer.

use alloc::vec::Vec;

sip::startup!("allocator-astray/manifest.toml");

/// A register, of index 255.
const NOWHERE: u32 = 1 << 29 | 255;

/// Serves its parent.
pub fn main(startup: Startup) -> i32 {
    crate::serve(startup.client, startup.other, |number, _, mut answer: Vec<u8>| {
        if number == 2
            && let Some(last) = answer.last_chunk_mut()
        {
            *last = NOWHERE.to_le_bytes();
        }
        answer
    })
}
