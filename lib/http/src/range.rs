//! Range requests (RFC 9110, section 14).

use alloc::vec::Vec;

use crate::text::list_members;

/// Maximum ranges per request; for more, the whole content is sent.
pub const MAX_RANGES: usize = 16;

/// A byte range of at least one byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteRange {
    /// Offset of the first byte.
    pub start: u64,
    /// Number of bytes.
    pub length: u64,
}

/// The ranges that a `Range` field requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ranges {
    /// All of the content: the field is not understood, or asks for too much.
    Whole,
    /// One range.
    One(ByteRange),
    /// Several, in the order requested.
    Many(Vec<ByteRange>),
    /// 416 Range Not Satisfiable: none of them lies within the content.
    NotSatisfiable,
}

/// Parses a `Range` field, for content of `size` bytes.
pub fn parse(value: &[u8], size: u64) -> Ranges {
    let Some(set) = value.split_at_checked(6).filter(|(unit, _)| unit.eq_ignore_ascii_case(b"bytes=")) else {
        return Ranges::Whole;
    };
    let mut found: Option<ByteRange> = None;
    let mut more: Vec<ByteRange> = Vec::new();
    let mut members = 0;
    for member in list_members(set.1) {
        members += 1;
        let Some(range) = parse_one(member, size) else { return Ranges::Whole };
        if members > MAX_RANGES {
            return Ranges::Whole;
        }
        let Some(range) = range else { continue };
        match found {
            None => found = Some(range),
            Some(first) => {
                if more.is_empty() {
                    more.push(first);
                }
                more.push(range);
            }
        }
    }
    match (members, found) {
        (0, _) => Ranges::Whole,
        (_, None) => Ranges::NotSatisfiable,
        (_, Some(one)) if more.is_empty() => Ranges::One(one),
        // Section 14.2: many overlapping ranges are an attack or a mistake.
        _ if more.iter().fold(0u64, |sum, range| sum.saturating_add(range.length)) > size => Ranges::Whole,
        _ => Ranges::Many(more),
    }
}

/// Parses one range: `None` if it is malformed, `Some(None)` if it is unsatisfiable.
fn parse_one(member: &[u8], size: u64) -> Option<Option<ByteRange>> {
    let dash = member.iter().position(|byte| *byte == b'-')?;
    let (first, last) = (&member[..dash], &member[dash + 1..]);
    if first.is_empty() {
        let length = number(last)?.min(size);
        return Some((length > 0).then_some(ByteRange { start: size - length, length }));
    }
    let first = number(first)?;
    let last = if last.is_empty() { u64::MAX } else { number(last)? };
    if last < first {
        return None;
    }
    let end = last.saturating_add(1).min(size);
    Some((first < size).then(|| ByteRange { start: first, length: end - first }))
}

/// Parses a number, saturating.
fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let add = |sum: u64, digit: &u8| sum.saturating_mul(10).saturating_add(u64::from(digit - b'0'));
    Some(digits.iter().fold(0, add))
}
