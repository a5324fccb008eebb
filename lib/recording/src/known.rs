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
/// Words of which a digest is made at a time: two for each lane.
const STEP_WORDS: usize = 2 * LANES;
const STEP_BYTES: usize = 8 * STEP_WORDS;
/// Digests with the same lowest bits that are known at once.
const WAYS: usize = 4;
/// With [`WAYS`], 512 KiB of memory.
const SETS: usize = 16_384;

/// The digests of contents that were written, as far as there is room: one pushes out another.
#[derive(Debug)]
pub struct Known {
    key: [AtomicU64; LANES],
    /// By the lowest bits; 0 for none.
    sets: [Set; SETS],
}

/// Digests with the same lowest bits, those found last further to the front; in one cache line.
#[derive(Debug)]
#[repr(align(32))]
struct Set([AtomicU64; WAYS]);

impl Set {
    /// Whether it has a digest. What another processor changes meanwhile may get lost.
    fn has(&self, digest: u64) -> bool {
        let Set(ways) = self;
        let found = ways.iter().position(|way| way.load(Ordering::Relaxed) == digest);
        if let Some(place @ 1..) = found {
            // One place to the front, past one that was not found as often.
            ways[place].store(ways[place - 1].load(Ordering::Relaxed), Ordering::Relaxed);
            ways[place - 1].store(digest, Ordering::Relaxed);
        }
        found.is_some()
    }
}

/// Contents of a block, which others may change while they are read.
pub trait Contents {
    /// The words from byte `first` on, all of which are there.
    fn words(&self, first: usize) -> [u64; STEP_WORDS];
    /// Copies the bytes from byte `first` on.
    fn copy(&self, first: usize, into: &mut [u8]);
}

impl Contents for &[u8] {
    fn words(&self, first: usize) -> [u64; STEP_WORDS] {
        let mut bytes = [0; STEP_BYTES];
        self.copy(first, &mut bytes);
        let (words, _) = bytes.as_chunks::<8>();
        core::array::from_fn(|index| u64::from_le_bytes(words[index]))
    }

    fn copy(&self, first: usize, into: &mut [u8]) {
        into.copy_from_slice(&self[first..first + into.len()]);
    }
}

impl Default for Known {
    fn default() -> Known {
        Known::new()
    }
}

impl Known {
    /// None, and no key yet.
    pub const fn new() -> Known {
        Known {
            key: [const { AtomicU64::new(0) }; LANES],
            sets: [const { Set([const { AtomicU64::new(0) }; WAYS]) }; SETS],
        }
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

    /// The digest of contents of this size in bytes, without a copy of them.
    #[inline]
    pub(crate) fn digest(&self, contents: &impl Contents, bytes: usize) -> u64 {
        let key = self.key.each_ref().map(|word| word.load(Ordering::Relaxed));
        let mut lanes = key.map(|word| word.rotate_left(17) ^ bytes as u64);
        let mut add = |words: [u64; STEP_WORDS]| {
            let (pairs, _) = words.as_chunks::<2>();
            for ((lane, [one, other]), key) in lanes.iter_mut().zip(pairs).zip(key) {
                *lane = fold(*lane ^ one, key ^ other);
            }
        };
        let whole = bytes - bytes % STEP_BYTES;
        (0..whole).step_by(STEP_BYTES).for_each(|first| add(contents.words(first)));
        let mut last = [0; STEP_BYTES];
        contents.copy(whole, &mut last[..bytes - whole]);
        add(last.as_slice().words(0));
        lanes.into_iter().fold(key[0], |sum, lane| fold(sum ^ lane, key[1]))
    }

    /// Whether contents with this digest were written.
    pub(crate) fn has(&self, digest: u64) -> bool {
        digest != 0 && self.set(digest).has(digest)
    }

    /// Notes that contents with this digest are written, in the place of those that were found least.
    pub(crate) fn add(&self, digest: u64) {
        let Set([.., last]) = self.set(digest);
        last.store(digest, Ordering::Relaxed);
    }

    fn set(&self, digest: u64) -> &Set {
        &self.sets[digest as usize % SETS]
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
        for length in [0, 7, 8, 63, 64, 65, 300] {
            for bit in 0..length * 8 {
                let mut changed = bytes[..length].to_vec();
                changed[bit / 8] ^= 1 << (bit % 8);
                found.extend([digest(&KNOWN, &changed), digest(&OTHER, &changed)]);
                count += 2;
            }
            // The same, and with a zero byte behind it.
            found.extend([digest(&KNOWN, &bytes[..length]), digest(&KNOWN, &[&bytes[..length], &[0][..]].concat())]);
            count += 2;
        }
        assert_eq!(found.len(), count);
    }

    fn digest(known: &Known, bytes: &[u8]) -> u64 {
        known.digest(&bytes, bytes.len())
    }

    #[test]
    fn contents_are_known_from_the_second_time_on() {
        static SOME: Known = Known::new();
        let same_set = |number: u64| 5 + number * SETS as u64;
        let was_known = |digest| {
            let has = SOME.has(digest);
            if !has {
                SOME.add(digest);
            }
            has
        };
        assert_eq!([5, 5, 5].map(was_known), [false, true, true]);
        for other in 1..WAYS as u64 {
            assert!(!was_known(same_set(other)), "another with the same lowest bits");
            assert!(was_known(5), "it stays beside it");
        }
        // One that is seen once takes the place of others like it.
        for other in 10..100 {
            assert!(!was_known(same_set(other)));
        }
        assert_eq!([5, same_set(99), same_set(98)].map(was_known), [true, true, false]);
        assert_eq!([0, 0].map(was_known), [false, false], "no digest");
    }
}
