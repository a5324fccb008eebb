//! Content in the coding `gzip` (RFC 1952; RFC 9110, section 8.4.1.3).

use alloc::vec::Vec;

use crate::request::Request;
use crate::text::{list_members, trim};

/// How hard it is tried: from 6 on, pages get hardly shorter and the time doubles.
const LEVEL: u8 = 5;

/// The content in the coding `gzip`.
pub fn compress(content: &[u8]) -> Vec<u8> {
    // No name, no time; extra flags 0; operating system 255, unknown.
    const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    let compressed = miniz_oxide::deflate::compress_to_vec(content, LEVEL);
    let mut coded = Vec::with_capacity(HEADER.len() + compressed.len() + 8);
    coded.extend_from_slice(&HEADER);
    coded.extend_from_slice(&compressed);
    coded.extend_from_slice(&crc32fast::hash(content).to_le_bytes());
    // The length is told modulo 2^32.
    coded.extend_from_slice(&(content.len() as u32).to_le_bytes());
    coded
}

/// Whether a client takes content in the coding `gzip` (RFC 9110, section 12.5.3). Several fields are one list.
pub fn is_accepted(request: &Request<'_, '_>) -> bool {
    accepts_gzip(
        request.headers().filter(|(name, _)| name.eq_ignore_ascii_case("accept-encoding")).map(|(_, value)| value),
    )
}

fn accepts_gzip<'b>(values: impl Iterator<Item = &'b [u8]>) -> bool {
    let mut any = false;
    for member in values.flat_map(list_members) {
        let mut parts = member.split(|byte| *byte == b';').map(trim);
        let coding = parts.next().unwrap_or(&[]);
        let is_zero = parts.any(is_zero_weight);
        if coding.eq_ignore_ascii_case(b"gzip") || coding.eq_ignore_ascii_case(b"x-gzip") {
            return !is_zero;
        }
        any |= coding == b"*" && !is_zero;
    }
    any
}

/// `q=0`, `q=0.`, `q=0.000`
fn is_zero_weight(parameter: &[u8]) -> bool {
    let value = match parameter {
        [b'q' | b'Q', b'=', value @ ..] => value,
        _ => return false,
    };
    value.first() == Some(&b'0') && value[1..].iter().all(|byte| matches!(byte, b'.' | b'0'))
}
