//! Fault injection, reproducible from a seed or from bytes.

use std::vec::Vec;

/// Pseudo-random numbers, from a seed or from a fuzzer's bytes.
#[derive(Clone, Debug)]
pub struct Numbers {
    state: u64,
    bytes: Vec<u8>,
}

impl Numbers {
    /// Creates a generator from a seed.
    pub fn from_seed(seed: u64) -> Numbers {
        Numbers { state: seed.wrapping_mul(2).wrapping_add(1), bytes: Vec::new() }
    }

    /// Creates a generator that consumes the bytes first and then continues from a fixed seed.
    pub fn from_bytes(bytes: &[u8]) -> Numbers {
        Numbers { state: 1, bytes: bytes.iter().rev().copied().collect() }
    }

    /// Returns the next number.
    pub fn number(&mut self) -> u64 {
        if let Some(byte) = self.bytes.pop() {
            let next = self.bytes.pop().unwrap_or(0);
            return u64::from(byte) | u64::from(next) << 8 | u64::from(byte ^ next) << 31;
        }
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // The low bits of the state have short periods.
        self.state >> 17 ^ self.state << 43
    }

    /// Returns a number below a bound, which must not be 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.number() % bound
    }
}

/// Fault rate of a device.
#[derive(Clone, Debug)]
pub struct Faults {
    /// Faults per thousand occasions.
    per_thousand: u64,
    numbers: Numbers,
}

impl Faults {
    /// No faults.
    pub fn none() -> Faults {
        Faults { per_thousand: 0, numbers: Numbers::from_seed(0) }
    }

    /// Faults at a rate per thousand occasions.
    pub fn often(per_thousand: u64, numbers: Numbers) -> Faults {
        Faults { per_thousand, numbers }
    }

    /// Returns whether a fault is injected now.
    pub(super) fn strikes(&mut self) -> bool {
        self.per_thousand != 0 && self.numbers.below(1000) < self.per_thousand
    }

    pub(super) fn numbers(&mut self) -> &mut Numbers {
        &mut self.numbers
    }
}
