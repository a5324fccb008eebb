//! The kernel's heap, counted: the boot program wraps its global allocator in this.

use core::alloc::{GlobalAlloc, Layout};
use core::sync::atomic::{AtomicUsize, Ordering};

static IN_USE: AtomicUsize = AtomicUsize::new(0);
/// What was in use when counting began.
static BEFORE: AtomicUsize = AtomicUsize::new(0);

/// Bytes currently allocated, since counting began.
pub fn in_use() -> usize {
    IN_USE.load(Ordering::Relaxed).saturating_sub(BEFORE.load(Ordering::Relaxed))
}

/// An allocator whose bytes are counted.
pub struct CountedHeap<A>(A);

impl<A> CountedHeap<A> {
    /// Wraps an allocator.
    pub const fn new(heap: A) -> CountedHeap<A> {
        CountedHeap(heap)
    }

    /// Leaves out what is allocated at this moment and stays so: what the boot program got from its host, such as its
    /// command line, which differs from host to host.
    pub fn count_from_here(&self) {
        BEFORE.store(IN_USE.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

// SAFETY: every function passes its arguments on unchanged and returns the allocator's result.
unsafe impl<A: GlobalAlloc> GlobalAlloc for CountedHeap<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: by the caller, here and below.
        let memory = unsafe { self.0.alloc(layout) };
        if !memory.is_null() {
            IN_USE.fetch_add(layout.size(), Ordering::Relaxed);
        }
        memory
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        let memory = unsafe { self.0.alloc_zeroed(layout) };
        if !memory.is_null() {
            IN_USE.fetch_add(layout.size(), Ordering::Relaxed);
        }
        memory
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { self.0.dealloc(memory, layout) };
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: as above.
        let moved = unsafe { self.0.realloc(memory, layout, bytes) };
        if !moved.is_null() {
            IN_USE.fetch_add(bytes.wrapping_sub(layout.size()), Ordering::Relaxed);
        }
        moved
    }
}
