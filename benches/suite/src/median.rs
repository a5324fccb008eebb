//! Median over rounds.

use alloc::vec::Vec;

use sip::debug::cycles;

/// Number of rounds of a measurement.
#[derive(Clone, Copy)]
pub struct Rounds(usize);

impl Rounds {
    /// Clamps to between one round and a thousand.
    pub fn new(rounds: i64) -> Rounds {
        Rounds(rounds.clamp(1, 1000) as usize)
    }

    /// Returns the cycles of one of the `count` repetitions that `round` makes: the median over the rounds.
    pub fn median(self, count: u64, mut round: impl FnMut(u64)) -> u64 {
        // The rounds are infallible.
        self.try_median::<()>(count, |count| {
            round(count);
            Ok(())
        })
        .unwrap_or(0)
    }

    /// Like [`median`](Rounds::median), for fallible rounds.
    pub fn try_median<E>(self, count: u64, mut round: impl FnMut(u64) -> Result<(), E>) -> Result<u64, E> {
        round(count)?;
        let mut costs = Vec::with_capacity(self.0);
        for _ in 0..self.0 {
            let before = cycles();
            round(count)?;
            costs.push((cycles() - before) / count);
        }
        costs.sort_unstable();
        Ok(costs[costs.len() / 2])
    }
}
