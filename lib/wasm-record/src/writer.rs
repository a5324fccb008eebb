//! Writes what [`reader`](crate::reader) reads.

use alloc::vec::Vec;

pub(crate) fn u32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

pub(crate) fn u64(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_le_bytes());
}

pub(crate) fn u128(out: &mut Vec<u8>, value: u128) {
    out.extend_from_slice(&value.to_le_bytes());
}

pub(crate) fn bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    u32(out, bytes.len() as u32);
    out.extend_from_slice(bytes);
}

pub(crate) fn list<T>(out: &mut Vec<u8>, items: &[T], mut item: impl FnMut(&mut Vec<u8>, &T)) {
    u32(out, items.len() as u32);
    for one in items {
        item(out, one);
    }
}
