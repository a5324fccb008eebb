//! Volatile write cache of the disk.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Unit that is kept or lost as a whole.
const SECTOR_BYTES: usize = 512;

/// A write that is not on the medium.
pub struct Write {
    /// Start offset.
    pub offset: u64,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Unflushed writes, in order.
#[derive(Default)]
pub struct Cache {
    writes: VecDeque<Write>,
    bytes: usize,
}

impl Cache {
    /// Adds a write. `None` if out of memory.
    pub fn push(&mut self, offset: u64, bytes: &[u8]) -> Option<()> {
        let mut copy = Vec::new();
        copy.try_reserve_exact(bytes.len()).ok()?;
        copy.extend_from_slice(bytes);
        self.writes.try_reserve(1).ok()?;
        self.bytes += bytes.len();
        self.writes.push_back(Write { offset, bytes: copy });
        Some(())
    }

    /// Removes the oldest write.
    pub fn pop(&mut self) -> Option<Write> {
        let write = self.writes.pop_front()?;
        self.bytes -= write.bytes.len();
        Some(write)
    }

    /// Number of writes.
    pub fn count(&self) -> usize {
        self.writes.len()
    }

    /// Total bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Overlays the latest writes on bytes read from the medium, from `offset` on.
    pub fn cover(&self, offset: u64, target: &mut [u8]) {
        let end = offset + target.len() as u64;
        for write in &self.writes {
            let first = write.offset.max(offset);
            let last = (write.offset + write.bytes.len() as u64).min(end);
            if first < last {
                let from = (first - write.offset) as usize;
                let (at, bytes) = ((first - offset) as usize, (last - first) as usize);
                target[at..at + bytes].copy_from_slice(&write.bytes[from..from + bytes]);
            }
        }
    }

    /// Simulates a power loss: seed 0 keeps all, 1 nothing, each other one a subset of the sectors.
    pub fn lose(&mut self, seed: u64) {
        match seed {
            0 => {}
            1 => *self = Cache::default(),
            _ => {
                let mut random = seed;
                let writes = core::mem::take(self).writes;
                for write in writes {
                    for (number, sector) in write.bytes.chunks(SECTOR_BYTES).enumerate() {
                        if next(&mut random) & 1 == 1 {
                            // Without memory, fewer sectors are kept, which is a valid subset as well.
                            let _ = self.push(write.offset + (number * SECTOR_BYTES) as u64, sector);
                        }
                    }
                }
            }
        }
    }
}

/// The generator SplitMix64.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut value = *state;
    value = (value ^ value >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    value = (value ^ value >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ value >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covered(cache: &Cache) -> Vec<u8> {
        let mut target = alloc::vec![0; 4096];
        cache.cover(0, &mut target);
        target
    }

    #[test]
    fn later_writes_cover_earlier_ones() {
        let mut cache = Cache::default();
        cache.push(512, &[1; 1024]);
        cache.push(1024, &[2; 1024]);
        let target = covered(&cache);
        assert_eq!([511, 512, 1023, 1024, 2047, 2048].map(|at| target[at]), [0, 1, 1, 2, 2, 0]);
        let mut part = [9; 2];
        cache.cover(1023, &mut part);
        assert_eq!(part, [1, 2]);
        assert_eq!((cache.bytes(), cache.count()), (2048, 2));
        assert_eq!(cache.pop().map(|write| write.offset), Some(512));
        assert_eq!((cache.bytes(), cache.count()), (1024, 1));
    }

    #[test]
    fn a_loss_keeps_what_the_seed_says() {
        let filled = || {
            let mut cache = Cache::default();
            cache.push(0, &[1; 4096]);
            cache.push(0, &[2; 4096]);
            cache
        };
        let after = |seed| {
            let mut cache = filled();
            cache.lose(seed);
            covered(&cache)
        };
        assert_eq!(after(0), [2; 4096]);
        assert_eq!(after(1), [0; 4096]);
        let kept: Vec<Vec<u8>> = (2..40).map(after).collect();
        assert!(kept.iter().all(|bytes| bytes.chunks(512).all(|sector| sector.iter().all(|byte| *byte == sector[0]))));
        for byte in 0..3 {
            assert!(kept.iter().any(|bytes| bytes.contains(&byte)), "{byte}");
        }
    }
}
