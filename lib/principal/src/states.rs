//! Sets of automaton states: 256 bits.

/// Maximum states of a pattern.
pub const STATE_LIMIT: usize = 256;

/// A set of states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct States([u64; STATE_LIMIT / 64]);

impl States {
    pub(crate) const NONE: States = States([0; STATE_LIMIT / 64]);

    pub(crate) fn only(state: u8) -> States {
        let mut states = States::NONE;
        states.insert(state);
        states
    }

    pub(crate) fn insert(&mut self, state: u8) {
        self.0[usize::from(state >> 6)] |= 1 << (state & 63);
    }

    pub(crate) fn add(&mut self, other: &States) {
        for (word, more) in self.0.iter_mut().zip(other.0) {
            *word |= more;
        }
    }

    pub(crate) fn common(&self, other: &States) -> States {
        let mut common = *self;
        for (word, other) in common.0.iter_mut().zip(other.0) {
            *word &= other;
        }
        common
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|&word| word == 0)
    }

    /// The states in ascending order.
    pub(crate) fn each(&self) -> impl Iterator<Item = u8> {
        self.0.iter().zip(0u8..).flat_map(|(&word, at)| {
            let mut rest = word;
            core::iter::from_fn(move || {
                if rest == 0 {
                    return None;
                }
                // Four words of 64 bits.
                let bit = rest.trailing_zeros() as u8;
                rest &= rest - 1;
                Some(at * 64 + bit)
            })
        })
    }
}
