//! Words without their leading zero bytes: most words of an event are small.
//!
//! One byte for each two words tells how many bytes each has, the first in its low half; then come these bytes. Writing
//! has no branch that depends on a word. Deliberately not here: contents of blocks, which are kept as they are.

use alloc::vec::Vec;

const WORD_BYTES: usize = 8;

/// Maximum bytes of so many words.
pub const fn bytes_at_most(count: usize) -> usize {
    count.div_ceil(2) + count * WORD_BYTES
}

/// Words being written to the start of memory that has room for [`bytes_at_most`].
pub struct Packing<'a> {
    controls: &'a mut [u8],
    data: &'a mut [u8],
    index: usize,
    at: usize,
    control: u8,
}

impl<'a> Packing<'a> {
    /// Of exactly so many words.
    #[inline(always)]
    pub fn new(into: &'a mut [u8], count: usize) -> Packing<'a> {
        let (controls, data) = into.split_at_mut(count.div_ceil(2));
        Packing { controls, data, index: 0, at: 0, control: 0 }
    }

    /// Adds the next one.
    #[inline(always)]
    pub fn add(&mut self, word: u64) {
        let bytes = (u64::BITS + 7 - word.leading_zeros()) / 8;
        self.data[self.at..self.at + WORD_BYTES].copy_from_slice(&word.to_le_bytes());
        self.control = if self.index.is_multiple_of(2) { bytes as u8 } else { self.control | (bytes as u8) << 4 };
        self.controls[self.index / 2] = self.control;
        self.at += bytes as usize;
        self.index += 1;
    }

    /// Bytes of all so far.
    #[inline(always)]
    pub fn length(self) -> usize {
        self.controls.len() + self.at
    }
}

/// Writes words, those of all lists in order, to the start of `into`, which has room for [`bytes_at_most`]; returns the
/// number of bytes.
pub fn put<const N: usize>(into: &mut [u8], lists: &[&[u64]; N]) -> usize {
    let mut packing = Packing::new(into, lists.iter().map(|list| list.len()).sum());
    for list in lists {
        for &word in *list {
            packing.add(word);
        }
    }
    packing.length()
}

/// Takes as many words from the start of `bytes`; `None` if they are not there.
pub fn take(bytes: &mut &[u8], count: usize) -> Option<Vec<u64>> {
    let (sizes, mut rest) = bytes.split_at_checked(count.div_ceil(2))?;
    let mut words = Vec::with_capacity(count);
    for index in 0..count {
        let size = sizes[index / 2] >> (index % 2 * 4) & 0xf;
        let (own, left) = rest.split_at_checked(size.into()).filter(|_| usize::from(size) <= WORD_BYTES)?;
        words.push(own.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)));
        rest = left;
    }
    *bytes = rest;
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_every_length_come_back() {
        let words: Vec<u64> = (0..64).flat_map(|bit| [0, 1 << bit, u64::MAX >> bit]).collect();
        for count in 0..words.len() {
            let mut bytes = alloc::vec![0xff; bytes_at_most(count)];
            let length = put(&mut bytes, &[&words[..count / 3], &words[count / 3..count]]);
            let mut rest = &bytes[..length];
            assert_eq!(take(&mut rest, count).as_deref(), Some(&words[..count]));
            assert_eq!(rest, [0; 0]);
        }
    }

    #[test]
    fn words_that_are_cut_or_too_long_are_none() {
        let mut bytes = [0; bytes_at_most(3)];
        let whole = put(&mut bytes, &[&[1, 0x1234, u64::MAX]]);
        assert_eq!(whole, 2 + 1 + 2 + 8);
        for length in 0..whole {
            assert_eq!(take(&mut &bytes[..length], 3), None, "{length}");
        }
        assert_eq!(take(&mut [9; 20].as_slice(), 1), None);
    }
}
