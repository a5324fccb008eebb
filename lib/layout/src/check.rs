//! What is asserted of a declaration while it is compiled. Generated code calls this.

use crate::{Field, Value, Word};

/// Bytes of a register that holds this.
pub const fn register_bytes<V: Value>() -> u64 {
    <V::Word as Word>::BYTES
}

/// Bytes of a record's field.
pub const fn field_bytes<F: Field>() -> usize {
    F::BYTES
}

/// Whether so many bytes from an offset lie within a whole of this many.
pub const fn lies_within(offset: u64, bytes: u64, whole: u64) -> bool {
    match offset.checked_add(bytes) {
        Some(end) => end <= whole,
        None => false,
    }
}

/// Whether an offset is a multiple of the register's width; no access reaches others.
pub const fn is_aligned(offset: u64, bytes: u64) -> bool {
    offset.is_multiple_of(bytes)
}

/// Whether two runs of bytes have none in common.
pub const fn are_apart(first: u64, first_bytes: u64, second: u64, second_bytes: u64) -> bool {
    first.saturating_add(first_bytes) <= second || second.saturating_add(second_bytes) <= first
}
