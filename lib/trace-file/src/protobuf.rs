//! Fields of protobuf messages, as far as Perfetto's need them.

use alloc::vec::Vec;

const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const LENGTH_DELIMITED: u64 = 2;

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a number.
pub(crate) fn number(out: &mut Vec<u8>, field: u64, value: u64) {
    varint(out, field << 3 | VARINT);
    varint(out, value);
}

/// Appends a number of eight bytes.
pub(crate) fn fixed(out: &mut Vec<u8>, field: u64, value: u64) {
    varint(out, field << 3 | FIXED64);
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends bytes, text, or a message of its own.
pub(crate) fn bytes(out: &mut Vec<u8>, field: u64, value: &[u8]) {
    varint(out, field << 3 | LENGTH_DELIMITED);
    varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_those_of_the_specification() {
        // The examples of protobuf.dev/programming-guides/encoding.
        let mut out = Vec::new();
        number(&mut out, 1, 150);
        assert_eq!(out, [0x08, 0x96, 0x01]);
        out.clear();
        bytes(&mut out, 2, b"testing");
        assert_eq!(out, [0x12, 0x07, 0x74, 0x65, 0x73, 0x74, 0x69, 0x6e, 0x67]);
        out.clear();
        fixed(&mut out, 3, 1);
        assert_eq!(out, [0x19, 1, 0, 0, 0, 0, 0, 0, 0]);
    }
}
