//! Seeded pseudo-random numbers.

use core::cell::Cell;

/// A pseudo-random generator.
pub(crate) struct Numbers(Cell<u64>);

impl Numbers {
    pub(crate) fn new(seed: u64) -> Numbers {
        Numbers(Cell::new(seed))
    }

    /// Any number: splitmix64.
    pub(crate) fn next(&self) -> u64 {
        let state = self.0.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.0.set(state);
        hostile_contract::pattern::word(state, 0)
    }

    /// A number below the bound.
    pub(crate) fn below(&self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    /// True with probability 1 / this.
    pub(crate) fn once_in(&self, times: usize) -> bool {
        self.below(times) == 0
    }
}
