//! `malloc` and its relatives over the allocator of the runtime. Each block begins with its size, in front of the
//! address that C gets.

use alloc::alloc::{alloc, alloc_zeroed, dealloc, realloc};
use core::alloc::Layout;
use core::ptr;

/// Alignment of every block, that of C's `max_align_t`; and the room for its size.
const ALIGN: usize = 16;

fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes.checked_add(ALIGN)?, ALIGN).ok()
}

/// Notes the size of new memory; returns the address for C, or null.
///
/// # Safety
/// `memory` is null or of the layout of this many bytes.
unsafe fn given(memory: *mut u8, bytes: usize) -> *mut u8 {
    if memory.is_null() {
        return memory;
    }
    // SAFETY: the memory has ALIGN bytes in front of what C gets, aligned for a word.
    unsafe {
        memory.cast::<usize>().write(bytes);
        memory.add(ALIGN)
    }
}

/// C's `malloc`.
pub fn allocate(bytes: usize) -> *mut u8 {
    let Some(layout) = layout(bytes) else { return ptr::null_mut() };
    // SAFETY: the layout is not empty; its memory is passed on.
    unsafe { given(alloc(layout), bytes) }
}

/// C's `calloc`.
pub fn allocate_zeroed(count: usize, bytes: usize) -> *mut u8 {
    let Some(bytes) = count.checked_mul(bytes) else { return ptr::null_mut() };
    let Some(layout) = layout(bytes) else { return ptr::null_mut() };
    // SAFETY: as for `allocate`.
    unsafe { given(alloc_zeroed(layout), bytes) }
}

/// C's `realloc`.
///
/// # Safety
/// The block is null, or came from this heap and was not freed.
pub unsafe fn reallocate(block: *mut u8, bytes: usize) -> *mut u8 {
    if block.is_null() {
        return allocate(bytes);
    }
    // SAFETY: the caller's; the size in front of the block is that of its layout.
    unsafe {
        let memory = block.sub(ALIGN);
        let old = memory.cast::<usize>().read();
        match (layout(old), layout(bytes)) {
            (Some(layout), Some(new)) => given(realloc(memory, layout, new.size()), bytes),
            _ => ptr::null_mut(),
        }
    }
}

/// C's `free`.
///
/// # Safety
/// As for [`reallocate`].
pub unsafe fn free(block: *mut u8) {
    if block.is_null() {
        return;
    }
    // SAFETY: the caller's.
    unsafe {
        let memory = block.sub(ALIGN);
        if let Some(layout) = layout(memory.cast::<usize>().read()) {
            dealloc(memory, layout);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_aligned_keep_what_is_in_them_and_can_be_empty() {
        // SAFETY: blocks of this heap, within their sizes.
        unsafe {
            let block = allocate(5);
            assert!(block.addr().is_multiple_of(ALIGN));
            ptr::write_bytes(block, 7, 5);
            let more = reallocate(block, 5000);
            assert_eq!(core::slice::from_raw_parts(more, 5), [7; 5]);
            free(more);
            let zeroed = allocate_zeroed(3, 4);
            assert_eq!(core::slice::from_raw_parts(zeroed, 12), [0; 12]);
            free(reallocate(zeroed, 0));
            free(reallocate(ptr::null_mut(), 0));
            free(ptr::null_mut());
        }
    }

    #[test]
    fn sizes_that_overflow_give_no_block() {
        assert!(allocate(usize::MAX).is_null() && allocate(isize::MAX as usize).is_null());
        assert!(allocate_zeroed(usize::MAX, 2).is_null());
        let block = allocate(1);
        // SAFETY: the block stays as it was.
        unsafe {
            assert!(reallocate(block, usize::MAX).is_null());
            free(block);
        }
    }
}
