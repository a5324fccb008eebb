//! Random bytes for a volume's UUID and hash seed, from the machine's source or else from its clocks.

use client::namespace::Namespace;
use client::random::Source;
use sip::exheap::ExVec;

const BYTES: usize = 32;

/// A random UUID for a volume, and its hash seed.
pub(crate) fn identities(namespace: &mut Namespace) -> ([u8; 16], [u8; 16]) {
    let bytes = of_machine(namespace).unwrap_or_else(of_clocks);
    let (mut uuid, mut seed) = ([0; 16], [0; 16]);
    uuid.copy_from_slice(&bytes[..16]);
    seed.copy_from_slice(&bytes[16..]);
    // Version 4, variant 1, of RFC 9562.
    uuid[6] = uuid[6] & 0x0f | 0x40;
    uuid[8] = uuid[8] & 0x3f | 0x80;
    (uuid, seed)
}

fn of_machine(namespace: &mut Namespace) -> Option<[u8; BYTES]> {
    let block = ExVec::<u8>::new(BYTES).ok()?;
    let (_source, block) = Source::open(namespace).ok()?.fill(block).ok()?;
    block.first_chunk().copied()
}

/// Bytes unique to this call: both clocks have nanosecond resolution.
fn of_clocks() -> [u8; BYTES] {
    let mut state = sip::time::wall() ^ sip::time::monotonic().rotate_left(32) ^ sip::process::id() << 48;
    let mut bytes = [0; BYTES];
    for chunk in bytes.chunks_exact_mut(8) {
        // SplitMix64.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = state;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        chunk.copy_from_slice(&(word ^ word >> 31).to_le_bytes());
    }
    bytes
}
