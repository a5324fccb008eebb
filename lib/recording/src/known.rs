//! Contents that are in the recording already: they are named, not written again.
//!
//! A file that is read again and again, and a page that is fetched by thousands, are in the recording once. Contents are
//! told apart by a keyed digest of 64 bits: two of a million different ones are taken for each other in one of 10
//! million recordings, and who does not know the key cannot make any. Deliberately not here: their bytes, which nobody
//! keeps.

use core::sync::atomic::{AtomicU64, Ordering};

/// Contents below this size in bytes are written: looking for them takes what writing them takes.
pub(crate) const MIN_BYTES: u64 = 256;
const LANES: usize = 4;
/// Digests that are known at once: 256 KiB of memory.
const SLOTS: usize = 32_768;

/// The digests of contents that were written, as far as there is room: one pushes out another.
#[derive(Debug)]
pub struct Known {
    key: [AtomicU64; LANES],
    /// By the lowest bits; 0 for none.
    slots: [AtomicU64; SLOTS],
}

impl Default for Known {
    fn default() -> Known {
        Known::new()
    }
}

impl Known {
    /// None, and no key yet.
    pub const fn new() -> Known {
        Known { key: [const { AtomicU64::new(0) }; LANES], slots: [const { AtomicU64::new(0) }; SLOTS] }
    }

    /// Sets the key, once, before there are contents. It should be different in each recording, and unknown.
    pub fn set_key(&self, seed: [u64; 2]) {
        let mut state = seed[0] ^ seed[1].rotate_left(32);
        for (place, more) in self.key.iter().zip([seed[0], seed[1], seed[0] >> 7, seed[1] >> 7]) {
            state = fold(state ^ more ^ 0x9e37_79b9_7f4a_7c15, 0xd6e8_feb8_6659_fd93);
            // Of an even number, products lose bits.
            place.store(state | 1, Ordering::Relaxed);
        }
    }

    /// The digest of contents.
    pub(crate) fn digest(&self, bytes: &[u8]) -> u64 {
        let key = self.key.each_ref().map(|word| word.load(Ordering::Relaxed));
        let mut lanes = key.map(|word| word.rotate_left(17) ^ bytes.len() as u64);
        let mut put = |words: &[u8; 8 * LANES]| {
            let (words, _) = words.as_chunks::<8>();
            for ((lane, word), key) in lanes.iter_mut().zip(words).zip(key) {
                *lane = fold(*lane ^ u64::from_le_bytes(*word), key);
            }
        };
        let (whole, rest) = bytes.as_chunks::<{ 8 * LANES }>();
        whole.iter().for_each(&mut put);
        let mut last = [0; 8 * LANES];
        last[..rest.len()].copy_from_slice(rest);
        put(&last);
        lanes.into_iter().fold(key[0], |sum, lane| fold(sum ^ lane, key[1]))
    }

    /// Whether contents with this digest were written; from now on they are.
    pub(crate) fn was_known(&self, digest: u64) -> bool {
        let slot = &self.slots[digest as usize % SLOTS];
        digest != 0 && slot.swap(digest, Ordering::Relaxed) == digest
    }
}

/// Both halves of a product, one upon the other.
fn fold(one: u64, other: u64) -> u64 {
    let product = u128::from(one) * u128::from(other);
    (product >> 64) as u64 ^ product as u64
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;
    use alloc::vec::Vec;

    use super::*;

    static KNOWN: Known = Known::new();
    static OTHER: Known = Known::new();

    #[test]
    fn contents_that_differ_in_a_bit_or_in_length_have_other_digests() {
        KNOWN.set_key([1, 2]);
        OTHER.set_key([1, 3]);
        let bytes: Vec<u8> = (0..300_u32).map(|at| (at * 6 + 1) as u8).collect();
        let mut found = BTreeSet::new();
        let mut count = 0;
        for length in [0, 7, 8, 31, 32, 33, 300] {
            for bit in 0..length * 8 {
                let mut changed = bytes[..length].to_vec();
                changed[bit / 8] ^= 1 << (bit % 8);
                found.extend([KNOWN.digest(&changed), OTHER.digest(&changed)]);
                count += 2;
            }
            // The same, and with a zero byte behind it.
            found.extend([KNOWN.digest(&bytes[..length]), KNOWN.digest(&[&bytes[..length], &[0][..]].concat())]);
            count += 2;
        }
        assert_eq!(found.len(), count);
    }

    #[test]
    fn contents_are_known_from_the_second_time_on() {
        static SOME: Known = Known::new();
        let one = 5;
        assert_eq!([one, one, one].map(|digest| SOME.was_known(digest)), [false, true, true]);
        assert!(!SOME.was_known(one + SLOTS as u64), "another with the same slot");
        assert!(!SOME.was_known(one), "it was pushed out");
        assert_eq!([0, 0].map(|digest| SOME.was_known(digest)), [false, false], "no digest");
    }
}
