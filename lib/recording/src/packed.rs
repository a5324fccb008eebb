//! Words without their leading zero bytes: most words of an event are small.
//!
//! One byte for each two words tells how many bytes each has, the first in its low half; then come these bytes. Writing
//! has no branch that depends on a word. Deliberately not here: contents of blocks, which are kept as they are.

use alloc::vec::Vec;

const WORD_BYTES: usize = 8;

/// Appends words, those of all lists in order.
#[inline]
pub fn put<const N: usize>(into: &mut Vec<u8>, lists: &[&[u64]; N]) {
    let count: usize = lists.iter().map(|list| list.len()).sum();
    let (start, sizes) = (into.len(), count.div_ceil(2));
    into.resize(start + sizes + count * WORD_BYTES, 0);
    let (controls, data) = into[start..].split_at_mut(sizes);
    let (mut index, mut at) = (0, 0);
    for &word in lists.iter().flat_map(|list| list.iter()) {
        let bytes = (u64::BITS - word.leading_zeros()).div_ceil(8) as usize;
        data[at..at + WORD_BYTES].copy_from_slice(&word.to_le_bytes());
        controls[index / 2] |= (bytes as u8) << (index % 2 * 4);
        at += bytes;
        index += 1;
    }
    into.truncate(start + sizes + at);
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
            let mut bytes = alloc::vec![9];
            put(&mut bytes, &[&words[..count / 3], &words[count / 3..count]]);
            let mut rest = &bytes[1..];
            assert_eq!(take(&mut rest, count).as_deref(), Some(&words[..count]));
            assert_eq!(rest, [0; 0]);
        }
    }

    #[test]
    fn words_that_are_cut_or_too_long_are_none() {
        let mut bytes = Vec::new();
        put(&mut bytes, &[&[1, 0x1234, u64::MAX]]);
        assert_eq!(bytes.len(), 2 + 1 + 2 + 8);
        for length in 0..bytes.len() {
            assert_eq!(take(&mut &bytes[..length], 3), None, "{length}");
        }
        assert_eq!(take(&mut [9; 20].as_slice(), 1), None);
    }
}
