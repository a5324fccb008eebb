//! Compile-time assertions on declarations, called by generated code.

use crate::{Field, Value, Word};

/// Width of a register in bytes.
pub const fn register_bytes<V: Value>() -> u64 {
    <V::Word as Word>::BYTES
}

/// Size of a record's field in bytes.
pub const fn field_bytes<F: Field>() -> usize {
    F::BYTES
}

/// Whether `bytes` bytes from an offset lie within `whole` bytes.
pub const fn lies_within(offset: u64, bytes: u64, whole: u64) -> bool {
    match offset.checked_add(bytes) {
        Some(end) => end <= whole,
        None => false,
    }
}

/// Whether an offset is a multiple of the register's width, as accesses require.
pub const fn is_aligned(offset: u64, bytes: u64) -> bool {
    offset.is_multiple_of(bytes)
}

/// Whether two byte ranges are disjoint.
pub const fn are_apart(first: u64, first_bytes: u64, second: u64, second_bytes: u64) -> bool {
    first.saturating_add(first_bytes) <= second || second.saturating_add(second_bytes) <= first
}
