//! Linear memory: zeroed bytes whose address code has.
//!
//! Guarded code gets a window, whose address never changes; checked code an allocation, which moves when it cannot grow.

use alloc::alloc::{alloc_zeroed, dealloc};
use core::alloc::Layout;
use core::ptr::NonNull;

use sip::allocator::grow_in_place;
use sip::window::{self, Window};
use wasm_record::layout::{self, Bounds};
use wasm_record::{Limits, MAX_MEMORY_PAGES, WASM_PAGE_BYTES};

use crate::StartError;

/// Alignment of linear memory, which lets its allocation be pages of its own.
const ALIGNMENT: usize = 4096;
/// What the verifier proves accesses to lie in is what the kernel reserves, and memory cannot be larger.
const _: () = assert!(window::WINDOW_BYTES as u64 == layout::WINDOW_BYTES);

/// Linear memory, in whole pages of WebAssembly.
pub(crate) struct LinearMemory {
    place: Place,
    max_pages: u64,
}

enum Place {
    Allocated(Allocation),
    Window(Window),
}

/// Bytes that may move.
struct Allocation {
    start: NonNull<u8>,
    bytes: usize,
}

impl LinearMemory {
    /// Memory of the minimum of pages, all zero, where code with these bounds has it.
    pub(crate) fn new(bounds: Bounds, limits: Limits) -> Result<LinearMemory, StartError> {
        let max_pages = limits.max.min(MAX_MEMORY_PAGES);
        let too_large = StartError::Memory { pages: limits.min };
        if limits.min > max_pages {
            return Err(too_large);
        }
        let bytes =
            usize::try_from(limits.min * WASM_PAGE_BYTES).map_err(|_| StartError::Memory { pages: limits.min })?;
        let place = match bounds {
            Bounds::Checked => {
                let mut allocation = Allocation { start: NonNull::dangling(), bytes: 0 };
                allocation.grow(bytes).ok_or(too_large)?;
                Place::Allocated(allocation)
            }
            Bounds::Guarded => Place::Window(match Window::reserve(bytes / ALIGNMENT) {
                Ok(window) => window,
                // Without pages it fails if the addresses are what is missing.
                Err(_) => match Window::reserve(0) {
                    Ok(_) => return Err(too_large),
                    Err(status) => return Err(StartError::Window(status)),
                },
            }),
        };
        Ok(LinearMemory { place, max_pages })
    }

    /// Adds pages, all zero; returns the former number of pages, or `None` if there is not enough.
    pub(crate) fn grow(&mut self, pages: u64) -> Option<u64> {
        let former = self.bytes() as u64 / WASM_PAGE_BYTES;
        let wanted = former.checked_add(pages).filter(|&wanted| wanted <= self.max_pages)?;
        let bytes = usize::try_from(wanted * WASM_PAGE_BYTES).ok()?;
        match &mut self.place {
            Place::Allocated(allocation) => allocation.grow(bytes)?,
            Place::Window(window) => window.grow((bytes - window.bytes()) / ALIGNMENT).ok()?,
        }
        Some(former)
    }

    /// Its address, for code.
    pub(crate) fn address(&self) -> usize {
        match &self.place {
            Place::Allocated(allocation) => allocation.start.as_ptr().expose_provenance(),
            Place::Window(window) => window.address(),
        }
    }

    /// Its size.
    pub(crate) fn bytes(&self) -> usize {
        match &self.place {
            Place::Allocated(allocation) => allocation.bytes,
            Place::Window(window) => window.bytes(),
        }
    }

    /// Its bytes.
    pub(crate) fn slice(&mut self) -> &mut [u8] {
        match &mut self.place {
            Place::Allocated(allocation) => allocation.slice(),
            Place::Window(window) => window.slice(),
        }
    }
}

fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes, ALIGNMENT).ok()
}

impl Allocation {
    /// Grows to a size, which is not smaller.
    fn grow(&mut self, bytes: usize) -> Option<()> {
        if bytes == self.bytes || self.grow_in_place(bytes) {
            return Some(());
        }
        // SAFETY: the size is not zero: it is more than before.
        let start = NonNull::new(unsafe { alloc_zeroed(layout(bytes)?) })?;
        // SAFETY: both have at least the former size, and the new one is distinct.
        unsafe { start.as_ptr().copy_from_nonoverlapping(self.start.as_ptr(), self.bytes) };
        self.free();
        self.start = start;
        self.bytes = bytes;
        Some(())
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

    fn slice(&mut self) -> &mut [u8] {
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

impl Drop for Allocation {
    fn drop(&mut self) {
        self.free();
    }
}
