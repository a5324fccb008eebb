//! Refuses its first function in a long sentence of letters of four bytes each.

use contracts::register_allocator::ExpReady;
use sip::exheap::ExVec;

sip::startup!("allocator-wordy/manifest.toml");

/// Serves its parent.
pub fn main(startup: Startup) -> i32 {
    // The compiler's one thread takes the last of its endpoints.
    let ExpReady::Allocate { next, .. } = startup.other.receive() else { return 0 };
    let sentence = alloc::format!("a{}", "\u{1d11e}".repeat(1000));
    let Ok(reason) = ExVec::from_slice(sentence.as_bytes()) else { return 1 };
    // Until the channel is closed.
    let _ = next.refused(reason).receive();
    0
}
