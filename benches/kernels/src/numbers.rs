//! Input that looks random and is the same everywhere: xorshift64* (Vigna, 2016).

/// A sequence of numbers.
pub struct Numbers(u64);

impl Numbers {
    /// The sequence of a seed, which is not 0.
    pub const fn of(seed: u64) -> Numbers {
        Numbers(seed)
    }

    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// The next number below a bound, which is not 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        (self.next() >> 33) % bound
    }
}

/// A digest of numbers that depends on their order: FNV-1a (Fowler, Noll, Vo) over words.
pub fn digest(numbers: impl IntoIterator<Item = u64>) -> u64 {
    numbers.into_iter().fold(0xcbf2_9ce4_8422_2325, |sum, number| (sum ^ number).wrapping_mul(0x0100_0000_01b3))
}
