//! The secret from which sequence numbers and ports are derived.

use client::namespace::Namespace;
use client::random::Source;
use sip::exheap::ExVec;

/// Length of the secret, in bytes.
const BYTES: usize = 32;

/// Draws the secret from the machine's random source. Without one it is derived from the time alone, and an attacker
/// that guesses it can inject into connections blindly.
pub fn draw(namespace: &mut Namespace) -> [u8; BYTES] {
    let mut seed = [0; BYTES];
    seed[..8].copy_from_slice(&sip::time::monotonic().to_le_bytes());
    seed[8..16].copy_from_slice(&sip::time::wall().to_le_bytes());
    let drawn = ExVec::<u8>::new(BYTES).ok().and_then(|block| {
        let (_, block) = Source::open(namespace).ok()?.fill(block).ok()?;
        Some(block)
    });
    if let Some(block) = drawn {
        for (byte, random) in seed.iter_mut().zip(block.iter()) {
            *byte ^= random;
        }
    }
    seed
}
