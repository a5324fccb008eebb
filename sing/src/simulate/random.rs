//! Numbers from a seed, for workloads: the same for ever, so that a seed means the same run.

/// A generator: SplitMix64 (Steele and others, 2014).
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Starts the numbers of a seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// Returns a number below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((word ^ word >> 31) % end as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_published_generator() {
        // The first outputs for the seed 1234567, as in the reference implementation's tests.
        let mut random = Random::new(1_234_567);
        let first = [6_457_827_717_110_365_317u64, 3_203_168_211_198_807_973];
        assert_eq!(first.map(|_| random.below(usize::MAX) as u64), first);
    }
}
