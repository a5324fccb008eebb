//! The secret that sequence numbers and ports are made of.

use client::namespace::Namespace;
use client::random::Source;
use sip::exheap::ExVec;

/// Bytes of it.
const BYTES: usize = 32;

/// Draws the secret from the machine's source of random bytes. A machine without one has the time alone, which
/// others can guess: then who can guess it can also disturb connections without seeing them.
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
