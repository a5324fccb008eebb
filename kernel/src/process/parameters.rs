//! Parameter values, which a parent gives a child and the kernel keeps for the child's life.
//!
//! They are kernel memory and not charged to the child's quota, as it does not run yet. So they are bounded here, and
//! count as held by the child when memory is reclaimed.

use alloc::vec::Vec;

use abi::Status;
use abi::limits::{PARAMETER_BYTES, PARAMETERS_BYTES};

/// The values given so far, by index.
#[derive(Default)]
pub struct Parameters {
    values: Vec<Option<Vec<u8>>>,
    bytes: usize,
    /// Allocated bytes of the values, which exceed those used: a value grows by doubling.
    held: usize,
}

impl Parameters {
    /// Resizes to this many values, none given.
    pub fn reset(&mut self, count: usize) {
        self.clear();
        self.values.resize(count, None);
    }

    /// Drops all values; their vector keeps its capacity.
    pub fn clear(&mut self) {
        self.values.clear();
        self.bytes = 0;
        self.held = 0;
    }

    /// The value at this index.
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        self.values.get(index)?.as_deref()
    }

    /// Allocated bytes of all values.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Appends to the value at this index.
    pub fn add(&mut self, index: usize, more: &[u8]) -> Result<(), Status> {
        let place = self.values.get_mut(index).ok_or(Status::NotFound)?;
        let length = place.as_ref().map_or(0, Vec::len);
        if more.len() > PARAMETER_BYTES - length || more.len() > PARAMETERS_BYTES - self.bytes {
            return Err(Status::TooLarge);
        }
        let value = place.get_or_insert_default();
        let before = value.capacity();
        if value.try_reserve(more.len()).is_err() {
            if length == 0 {
                *place = None;
            }
            return Err(Status::Exhausted);
        }
        value.extend_from_slice(more);
        self.held += value.capacity() - before;
        self.bytes += more.len();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_and_all_together_are_bounded() {
        let mut parameters = Parameters::default();
        parameters.reset(256);
        let piece = [7; 512];
        let mut given = 0;
        for index in 0..256 {
            while parameters.add(index, &piece) == Ok(()) {
                given += piece.len();
            }
            assert!(parameters.get(index).is_none_or(|value| value.len() <= PARAMETER_BYTES));
            assert_eq!(parameters.add(index, &piece), Err(Status::TooLarge));
        }
        assert_eq!(parameters.get(0).map(<[u8]>::len), Some(PARAMETER_BYTES));
        assert_eq!(given, PARAMETERS_BYTES);
        assert_eq!(parameters.bytes, PARAMETERS_BYTES);
        assert_eq!(parameters.held(), parameters.values.iter().flatten().map(Vec::capacity).sum::<usize>());
        // An empty value counts as given, even where there is room for nothing more.
        assert_eq!(parameters.get(255), None);
        assert_eq!(parameters.add(255, b""), Ok(()));
        assert_eq!(parameters.get(255), Some(&b""[..]));
        assert_eq!(parameters.add(256, b""), Err(Status::NotFound));
        parameters.reset(1);
        assert_eq!((parameters.bytes, parameters.held(), parameters.get(0)), (0, 0, None));
        assert_eq!(parameters.add(0, &piece), Ok(()));
    }
}
