//! Ranges of bytes (RFC 9110, section 14).

use alloc::vec::Vec;

use crate::text::list_members;

/// Ranges that one request is answered with at most; for more, all of the content is sent.
pub const MAX_RANGES: usize = 16;

/// So many bytes from an offset on; at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteRange {
    /// The first byte.
    pub start: u64,
    /// How many.
    pub length: u64,
}

/// What a `Range` field asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ranges {
    /// All of it: the field is none that is understood, or asks for too much.
    Whole,
    /// One range.
    One(ByteRange),
    /// Several, in the order in which they were asked for.
    Many(Vec<ByteRange>),
    /// 416: none of them is there.
    NotSatisfiable,
}

/// Reads the value of a `Range` field, for content of `size` bytes.
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
        // Section 14.2: ranges that overlap much are an attack or a mistake.
        _ if more.iter().fold(0u64, |sum, range| sum.saturating_add(range.length)) > size => Ranges::Whole,
        _ => Ranges::Many(more),
    }
}

/// One range: none if it is not written as one, none within if it is not there.
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

/// A number; one that is too great is the greatest.
fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let add = |sum: u64, digit: &u8| sum.saturating_mul(10).saturating_add(u64::from(digit - b'0'));
    Some(digits.iter().fold(0, add))
}
