//! Sets of a pattern's states: 256 bits.

/// States that one pattern has at most.
pub const STATE_LIMIT: usize = 256;

/// A set of states, by number.
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

    /// Every state of the set, the lowest first.
    pub(crate) fn each(&self) -> impl Iterator<Item = u8> {
        self.0.iter().zip(0u8..).flat_map(|(&word, at)| {
            let mut rest = word;
            core::iter::from_fn(move || {
                if rest == 0 {
                    return None;
                }
                // A word has 64 bits, and there are four of them.
                let bit = rest.trailing_zeros() as u8;
                rest &= rest - 1;
                Some(at * 64 + bit)
            })
        })
    }
}
