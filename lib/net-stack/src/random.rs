//! Unpredictable numbers, for initial sequence numbers, ports and identifiers.
//!
//! An attacker who can predict the initial sequence number of a connection can inject data blindly (RFC 6528).
//! Deliberately not here: the source of the seed.

use sha2::{Digest, Sha256};
use smoltcp::wire::IpAddress;

use crate::ends::End;

/// A generator: its secret, and how many numbers were drawn.
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

    /// Returns the initial sequence number of a connection: a 4 us clock plus a secret offset for its two ends (RFC
    /// 6528, section 3).
    pub(crate) fn initial_sequence_number(&self, local: End, remote: End, now_ns: u64) -> u32 {
        let mut hash = Sha256::new().chain_update(b"first sequence number").chain_update(self.seed);
        for end in [local, remote] {
            match end.address {
                IpAddress::Ipv4(address) => hash.update(address.octets()),
                IpAddress::Ipv6(address) => hash.update(address.octets()),
            }
            hash.update(end.port.to_be_bytes());
        }
        let digest = hash.finalize();
        let secret = digest.iter().take(4).fold(0, |sum: u32, byte| sum << 8 | u32::from(*byte));
        // The clock wraps.
        secret.wrapping_add((now_ns / 4000) as u32)
    }

    /// Returns the next number.
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
        // Erased, so that a later leak of this memory does not reveal past output.
        self.left[self.used] = 0;
        self.used += 1;
        number
    }
}
