//! Content coding `gzip` (RFC 1952; RFC 9110, section 8.4.1.3).

use alloc::vec::Vec;

use crate::request::Request;
use crate::text::{list_members, trim};

/// Compression level: from 6 on, pages hardly shrink further and the time doubles.
const LEVEL: u8 = 5;

/// Compresses content with `gzip`.
pub fn compress(content: &[u8]) -> Vec<u8> {
    // No name, no time; extra flags 0; operating system 255, unknown.
    const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    let compressed = miniz_oxide::deflate::compress_to_vec(content, LEVEL);
    let mut coded = Vec::with_capacity(HEADER.len() + compressed.len() + 8);
    coded.extend_from_slice(&HEADER);
    coded.extend_from_slice(&compressed);
    coded.extend_from_slice(&crc32fast::hash(content).to_le_bytes());
    // ISIZE is the length modulo 2^32.
    coded.extend_from_slice(&(content.len() as u32).to_le_bytes());
    coded
}

/// Returns whether a client accepts the coding `gzip` (RFC 9110, section 12.5.3). Several fields form one list.
pub fn is_accepted(request: &Request<'_, '_>) -> bool {
    accepts_gzip(
        request.headers().filter(|(name, _)| name.eq_ignore_ascii_case("accept-encoding")).map(|(_, value)| value),
    )
}

/// `identity` counts as listed last unless it is listed itself or covered by `*`.
fn accepts_gzip<'b>(values: impl Iterator<Item = &'b [u8]>) -> bool {
    let (mut gzip, mut identity, mut any) = (None, None, None);
    for member in values.flat_map(list_members) {
        let mut parts = member.split(|byte| *byte == b';').map(trim);
        let coding = parts.next().unwrap_or(&[]);
        let weight = parts.find_map(weight).unwrap_or(Some(FULL_WEIGHT)).unwrap_or(0);
        let listed = match () {
            () if coding.eq_ignore_ascii_case(b"gzip") || coding.eq_ignore_ascii_case(b"x-gzip") => &mut gzip,
            () if coding.eq_ignore_ascii_case(b"identity") => &mut identity,
            () if coding == b"*" => &mut any,
            () => continue,
        };
        listed.get_or_insert(weight);
    }
    let gzip = gzip.or(any).unwrap_or(0);
    gzip > 0 && gzip >= identity.or(any).unwrap_or(0)
}

/// The weight `q=1`, in thousandths.
const FULL_WEIGHT: u16 = 1000;

/// Returns the weight in thousandths if the parameter is one; `Some(None)` if it is a malformed one (RFC 9110,
/// 12.4.2).
fn weight(parameter: &[u8]) -> Option<Option<u16>> {
    let [b'q' | b'Q', b'=', value @ ..] = parameter else { return None };
    let (whole, fraction) = match value {
        [whole @ (b'0' | b'1')] => (whole, &[][..]),
        [whole @ (b'0' | b'1'), b'.', fraction @ ..] if fraction.len() <= 3 => (whole, fraction),
        _ => return Some(None),
    };
    let digits = fraction.iter().chain(b"000").take(3);
    let thousandths = digits.fold(0, |sum, digit| sum * 10 + u16::from(digit.wrapping_sub(b'0')).min(10));
    let weight = u16::from(whole - b'0') * FULL_WEIGHT + thousandths;
    let is_in_grammar = fraction.iter().all(u8::is_ascii_digit) && weight <= FULL_WEIGHT;
    Some(is_in_grammar.then_some(weight))
}
