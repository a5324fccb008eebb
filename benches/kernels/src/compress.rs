//! Compression by references to what was before (Lempel, Ziv, 1977), and back: bytes, a table of places, copies.

use alloc::vec;
use alloc::vec::Vec;

use crate::numbers::{Numbers, digest};

const BYTES: usize = 1 << 20;
/// Shortest and longest reference, in bytes.
const LENGTHS: (usize, usize) = (4, 131);
const MAX_DISTANCE: usize = 0xffff;
const PLACES_BITS: u32 = 14;
/// Literal bytes in a row at most.
const MAX_LITERALS: usize = 128;

pub fn run() -> u64 {
    let mut numbers = Numbers::of(0x1277);
    let words: Vec<Vec<u8>> =
        (0..400).map(|_| (0..2 + numbers.below(9)).map(|_| b'a' + numbers.below(26) as u8).collect()).collect();
    let mut text = Vec::new();
    while text.len() < BYTES {
        text.extend(&words[(numbers.below(20) * numbers.below(20)) as usize]);
        text.push(b' ');
    }
    let packed = compress(&text);
    let same = expand(&packed).is_some_and(|expanded| expanded == text);
    digest([packed.len() as u64, u64::from(same), digest(packed.iter().map(|byte| u64::from(*byte)))])
}

fn place_of(bytes: &[u8]) -> usize {
    let word = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    (word.wrapping_mul(0x9e37_79b1) >> (32 - PLACES_BITS)) as usize
}

fn compress(bytes: &[u8]) -> Vec<u8> {
    let mut packed = Vec::new();
    let mut places = vec![usize::MAX; 1 << PLACES_BITS];
    let (mut at, mut literal) = (0, 0);
    while at + LENGTHS.0 <= bytes.len() {
        let place = &mut places[place_of(&bytes[at..at + 4])];
        let earlier = core::mem::replace(place, at);
        let length = if earlier < at && at - earlier <= MAX_DISTANCE { common(bytes, earlier, at) } else { 0 };
        if length < LENGTHS.0 {
            at += 1;
            continue;
        }
        literals(&mut packed, &bytes[literal..at]);
        packed.push(0x80 | (length - LENGTHS.0) as u8);
        packed.extend(((at - earlier) as u16).to_le_bytes());
        at += length;
        literal = at;
    }
    literals(&mut packed, &bytes[literal..]);
    packed
}

/// Number of bytes that are the same at two places.
fn common(bytes: &[u8], earlier: usize, at: usize) -> usize {
    let pairs = bytes[earlier..].iter().zip(&bytes[at..]);
    pairs.take(LENGTHS.1).take_while(|(one, other)| one == other).count()
}

fn literals(packed: &mut Vec<u8>, bytes: &[u8]) {
    for part in bytes.chunks(MAX_LITERALS) {
        packed.push((part.len() - 1) as u8);
        packed.extend(part);
    }
}

fn expand(packed: &[u8]) -> Option<Vec<u8>> {
    let mut bytes: Vec<u8> = Vec::new();
    let mut rest = packed;
    while let Some((&control, later)) = rest.split_first() {
        if control & 0x80 == 0 {
            let count = usize::from(control) + 1;
            bytes.extend(later.get(..count)?);
            rest = &later[count..];
            continue;
        }
        let (distance, later) = later.split_first_chunk::<2>()?;
        let from = bytes.len().checked_sub(u16::from_le_bytes(*distance).into())?;
        for index in 0..usize::from(control & 0x7f) + LENGTHS.0 {
            bytes.push(*bytes.get(from + index)?);
        }
        rest = later;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_comes_back_and_is_smaller() {
        for text in [&b""[..], b"abc", b"abcabcabcabcabcabcabcabc", &[7; 1000]] {
            let packed = compress(text);
            assert_eq!(expand(&packed).as_deref(), Some(text));
            assert!(text.len() < 20 || packed.len() < text.len());
        }
        assert_eq!(expand(&[0x80, 9, 0]), None);
    }
}
