//! Linear memory: zeroed bytes whose address code has.

use alloc::alloc::{alloc_zeroed, dealloc};
use core::alloc::Layout;
use core::ptr::NonNull;

use sip::allocator::grow_in_place;
use wasm_record::{MAX_MEMORY_PAGES, WASM_PAGE_BYTES};

/// Alignment of linear memory, which lets its allocation be pages of its own.
const ALIGNMENT: usize = 4096;

/// Linear memory, in whole pages of WebAssembly.
pub(crate) struct LinearMemory {
    start: NonNull<u8>,
    bytes: usize,
    max_pages: u64,
}

fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes, ALIGNMENT).ok()
}

impl LinearMemory {
    /// Memory of this many pages, all zero; `None` if there is not enough.
    pub(crate) fn new(pages: u64, max_pages: u64) -> Option<LinearMemory> {
        let max_pages = max_pages.min(MAX_MEMORY_PAGES);
        let mut memory = LinearMemory { start: NonNull::dangling(), bytes: 0, max_pages };
        memory.grow(pages).map(|_| memory)
    }

    /// Adds pages, all zero; returns the former number of pages, or `None` if there is not enough.
    pub(crate) fn grow(&mut self, pages: u64) -> Option<u64> {
        let former = self.bytes as u64 / WASM_PAGE_BYTES;
        let wanted = former.checked_add(pages).filter(|&wanted| wanted <= self.max_pages)?;
        let bytes = usize::try_from(wanted * WASM_PAGE_BYTES).ok()?;
        if bytes == self.bytes {
            return Some(former);
        }
        if self.grow_in_place(bytes) {
            return Some(former);
        }
        // SAFETY: the size is not zero: it is more than before.
        let start = NonNull::new(unsafe { alloc_zeroed(layout(bytes)?) })?;
        // SAFETY: both have at least the former size, and the new one is distinct.
        unsafe { start.as_ptr().copy_from_nonoverlapping(self.start.as_ptr(), self.bytes) };
        self.free();
        self.start = start;
        self.bytes = bytes;
        Some(former)
    }

    /// Grows where it is, if the pages behind it are free: nothing is copied, and the quota has to cover no second copy.
    fn grow_in_place(&mut self, bytes: usize) -> bool {
        let Some(former) = layout(self.bytes).filter(|former| former.size() > 0) else { return false };
        // SAFETY: allocated with this layout, and borrowed.
        let is_grown = unsafe { grow_in_place(self.start, former, bytes) };
        if is_grown {
            // New pages are zeroed; both sizes are whole pages.
            self.bytes = bytes;
        }
        is_grown
    }

    /// Its address, for code.
    pub(crate) fn address(&self) -> usize {
        self.start.as_ptr().expose_provenance()
    }

    /// Its size.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Its bytes.
    pub(crate) fn slice(&mut self) -> &mut [u8] {
        // SAFETY: this many bytes are allocated there, and always initialized. Code does not run while they are borrowed.
        unsafe { core::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }

    fn free(&mut self) {
        if self.bytes > 0
            && let Some(layout) = layout(self.bytes)
        {
            // SAFETY: allocated with this layout, and not used afterwards.
            unsafe { dealloc(self.start.as_ptr(), layout) }
        }
        self.bytes = 0;
    }
}

impl Drop for LinearMemory {
    fn drop(&mut self) {
        self.free();
    }
}
