//! Numbers that nobody else can foretell: initial sequence numbers, ports and identifiers are made of them.
//!
//! Who can foretell the initial sequence number of a connection can write into it without seeing its packets (RFC
//! 6528). Deliberately not here: where the seed comes from.

use sha2::{Digest, Sha256};

/// A secret, and how many numbers were made of it.
pub(crate) struct Random {
    seed: [u8; 32],
    counter: u64,
    left: [u64; 4],
    used: usize,
}

impl Random {
    pub(crate) fn new(seed: [u8; 32]) -> Random {
        Random { seed, counter: 0, left: [0; 4], used: 4 }
    }

    /// The next number.
    pub(crate) fn next(&mut self) -> u64 {
        if self.used == self.left.len() {
            let digest = Sha256::new().chain_update(self.seed).chain_update(self.counter.to_le_bytes()).finalize();
            for (number, bytes) in self.left.iter_mut().zip(digest.chunks_exact(8)) {
                *number = bytes.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
            }
            self.counter += 1;
            self.used = 0;
        }
        let number = self.left[self.used];
        // Who reads this memory later shall not learn what was given out.
        self.left[self.used] = 0;
        self.used += 1;
        number
    }
}
