//! Bit sets of numbers from 0 to a known limit.

use alloc::vec::Vec;

use super::CheckError;

/// A set of block or inode numbers.
#[derive(Default)]
pub(super) struct Bits {
    words: Vec<u64>,
}

impl Bits {
    /// An empty set for numbers below `limit`.
    pub(super) fn new(limit: u32) -> Result<Bits, CheckError> {
        Ok(Bits { words: filled(limit.div_ceil(64) as usize, 0)? })
    }

    /// Returns whether a number is in the set; one beyond the limit is not.
    pub(super) fn has(&self, number: u32) -> bool {
        self.words.get(number as usize / 64).is_some_and(|word| word >> (number % 64) & 1 != 0)
    }

    /// Inserts a number; returns whether it was present.
    pub(super) fn insert(&mut self, number: u32) -> bool {
        let Some(word) = self.words.get_mut(number as usize / 64) else { return false };
        let bit = 1 << (number % 64);
        let had = *word & bit != 0;
        *word |= bit;
        had
    }

    /// Removes a number.
    pub(super) fn remove(&mut self, number: u32) {
        if let Some(word) = self.words.get_mut(number as usize / 64) {
            *word &= !(1 << (number % 64));
        }
    }

    /// Inserts all members of another set.
    pub(super) fn insert_all(&mut self, other: &Bits) {
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word |= other;
        }
    }

    /// Returns the first number in `from..end` that is in neither set.
    pub(super) fn first_gap(sets: [&Bits; 2], from: u32, end: u32) -> Option<u32> {
        let mut number = from;
        while number < end {
            let [one, other] = sets.map(|set| set.words.get(number as usize / 64));
            let word = one? | other? | ((1u64 << (number % 64)) - 1);
            let base = number & !63;
            if word != u64::MAX {
                return Some(base + word.trailing_ones()).filter(|&found| found < end);
            }
            number = base.checked_add(64)?;
        }
        None
    }
}

/// Returns a vector of `count` times `value`, or an error if out of memory.
pub(super) fn filled<T: Clone>(count: usize, value: T) -> Result<Vec<T>, CheckError> {
    let mut vector = Vec::new();
    vector.try_reserve_exact(count).map_err(|_| CheckError::NoMemory)?;
    vector.resize(count, value);
    Ok(vector)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_found() {
        let mut bits = Bits::new(200).unwrap();
        for number in 0..150 {
            assert!(!bits.insert(number));
        }
        bits.remove(70);
        let none = Bits::new(200).unwrap();
        assert_eq!(Bits::first_gap([&bits, &none], 0, 200), Some(70));
        assert_eq!(Bits::first_gap([&bits, &none], 71, 200), Some(150));
        assert_eq!(Bits::first_gap([&none, &bits], 71, 150), None);
        assert_eq!(Bits::first_gap([&bits, &none], 150, 151), Some(150));
        let mut other = Bits::new(200).unwrap();
        other.insert(70);
        assert_eq!(Bits::first_gap([&bits, &other], 0, 200), Some(150));
        other.insert_all(&bits);
        assert!(other.has(149) && other.has(70) && !other.has(150));
        assert!(bits.has(149) && !bits.has(70) && !bits.has(100_000));
    }
}
