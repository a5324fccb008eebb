//! Writing what a process was given to where it was, after checking that this is memory of programs: the addresses come
//! from a file.

use abi::limits::{PAGE_BYTES, STACK_SLOT_BYTES, WINDOW_BYTES};
use recording::{Block, Content};

use crate::machine::machine;

/// Writes what is in a block, if all of it lies in the memory arena; whether it does.
pub fn write(block: &Block) -> bool {
    let (Ok(address), Ok(bytes)) = (usize::try_from(block.address), usize::try_from(block.bytes)) else { return false };
    if !is_inside(address, bytes) && !is_of_window(address, bytes) {
        return false;
    }
    match &block.content {
        Content::Left | Content::Again(_) => {}
        // SAFETY: the bytes lie in the memory arena or in pages of windows, which only replayed programs use, and none runs.
        Content::Zero => unsafe { core::ptr::write_bytes(address as *mut u8, 0, bytes) },
        Content::Bytes(words) => {
            let count = bytes.min(words.len() * 8);
            // SAFETY: as above; the words are at least `count` bytes, and the machine is little-endian, as the file is.
            unsafe { core::ptr::copy_nonoverlapping(words.as_ptr().cast::<u8>(), address as *mut u8, count) };
        }
    }
    true
}

/// Notes what is in a block that another process has left.
pub fn fill_in(block: &mut Block) {
    if block.content == Content::Left {
        let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
        block.content = Content::Bytes(bytes(block.address, block.bytes).chunks(8).map(word).collect());
    }
}

/// The bytes at an address of the memory arena; empty if they are elsewhere. They are those of a replayed program, which
/// does not run while they are used.
pub fn bytes(address: u64, bytes: u64) -> &'static [u8] {
    match (usize::try_from(address), usize::try_from(bytes)) {
        // SAFETY: the bytes lie in the memory arena, which stays mapped, and no program runs meanwhile.
        (Ok(address), Ok(bytes)) if is_inside(address, bytes) => unsafe {
            core::slice::from_raw_parts(address as *const u8, bytes)
        },
        _ => &[],
    }
}

/// Bytes of the memory of this module's own.
pub const SCRATCH_BYTES: usize = PAGE_BYTES;

/// The address of memory of programs that none of them has: the end of the last stack slot.
fn scratch_address() -> usize {
    let stacks = machine().layout().stacks;
    stacks.base + stacks.bytes - SCRATCH_BYTES
}

/// Whether a replayed thread may have this stack slot: any but the one of [`scratch`].
pub fn may_run_in(slot: usize) -> bool {
    !(slot..slot + STACK_SLOT_BYTES).contains(&scratch_address())
}

/// Copies at most [`SCRATCH_BYTES`] to where devices reach them, until the next call.
pub fn scratch(bytes: &[u8]) -> &'static [u8] {
    let (address, count) = (scratch_address(), bytes.len().min(SCRATCH_BYTES));
    // SAFETY: the last slot of the stack arena, in which no thread runs (`may_run_in`); one loop replays, and waits for
    // its device before the next call.
    unsafe {
        core::ptr::copy_nonoverlapping(bytes.as_ptr(), address as *mut u8, count);
        core::slice::from_raw_parts(address as *const u8, count)
    }
}

/// Whether all of it lies in windows. They get pages as they grow, and lose them when they get their first ones anew.
fn is_of_window(address: usize, bytes: usize) -> bool {
    let windows = machine().layout().windows;
    let is_page = address.is_multiple_of(PAGE_BYTES) && bytes.is_multiple_of(PAGE_BYTES);
    if !windows.contains(address) || bytes > windows.bytes - (address - windows.base) || !is_page {
        return false;
    }
    if address.is_multiple_of(WINDOW_BYTES) {
        machine().window_release(address, WINDOW_BYTES);
    }
    bytes == 0 || machine().window_map(address, 0, bytes).is_ok()
}

fn is_inside(address: usize, bytes: usize) -> bool {
    let arena = machine().layout().memory;
    address.checked_sub(arena.base).is_some_and(|offset| offset <= arena.bytes && bytes <= arena.bytes - offset)
}
