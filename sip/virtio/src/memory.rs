//! Byte-wise access to memory that a device may be writing.
//!
//! Deliberately not here: references to such memory; it changes under them.

use crate::platform::DeviceMemory;

/// Copies bytes in from `offset` on.
///
/// # Panics
///
/// If they do not fit; offsets are the adapter's own.
pub(crate) fn write(memory: &impl DeviceMemory, offset: usize, bytes: &[u8]) {
    let first = part(memory, offset, bytes.len());
    for (index, &byte) in bytes.iter().enumerate() {
        // SAFETY: `part` has checked that the bytes lie in the memory, which is valid while it is borrowed.
        unsafe { first.add(index).write_volatile(byte) };
    }
}

/// Copies bytes out from `offset` on.
///
/// # Panics
///
/// If they are not all inside the memory.
pub(crate) fn read(memory: &impl DeviceMemory, offset: usize, bytes: &mut [u8]) {
    let first = part(memory, offset, bytes.len());
    for (index, byte) in bytes.iter_mut().enumerate() {
        // SAFETY: as in `write`.
        *byte = unsafe { first.add(index).read_volatile() };
    }
}

/// Returns the address of the byte at `offset`, from which `bytes` bytes are inside the memory; panics if they are not.
pub(crate) fn part(memory: &impl DeviceMemory, offset: usize, bytes: usize) -> *mut u8 {
    let whole = memory.memory();
    let inside = offset.checked_add(bytes).is_some_and(|end| end <= whole.len());
    assert!(inside, "a part of {bytes} bytes at {offset} of {} bytes", whole.len());
    whole.as_ptr().cast::<u8>().wrapping_add(offset)
}
