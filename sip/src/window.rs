//! Windows: memory that grows where it is, up to [`WINDOW_BYTES`], in addresses that are reserved for it.
//!
//! Key type: [`Window`]. Pages count against `memory_kib`; addresses alone cost a little kernel memory. What lies behind
//! the pages faults. Deliberately not here: allocation in it.

use core::ptr::NonNull;

use abi::Status;
use abi::limits::PAGE_BYTES;

use crate::raw;

pub use abi::limits::WINDOW_BYTES;

/// Reserved addresses with zeroed pages from their start. All of it goes back when it is dropped.
#[derive(Debug)]
pub struct Window {
    start: NonNull<u8>,
    bytes: usize,
}

impl Window {
    /// Reserves a window with this many zeroed pages of [`PAGE_BYTES`], or with none. That takes less time than to
    /// [grow](Window::grow) it afterwards.
    ///
    /// # Errors
    /// [`Status::NotFound`] if the machine reserves no addresses; [`Status::QuotaExceeded`] if the quota of pages or of
    /// kernel memory is exhausted; [`Status::Exhausted`] if there is no window left, or not so many pages;
    /// [`Status::BadArgument`] if a window is smaller.
    pub fn reserve(pages: usize) -> Result<Window, Status> {
        let bytes = pages.checked_mul(PAGE_BYTES).ok_or(Status::BadArgument)?;
        // SAFETY: the window is new and has no other owner.
        let address = unsafe { raw::memory_reserve(pages as u64) }.into_result()?;
        let start = NonNull::new(core::ptr::with_exposed_provenance_mut(address as usize)).ok_or(Status::NotFound)?;
        Ok(Window { start, bytes })
    }

    /// Adds zeroed pages of [`PAGE_BYTES`]. Nothing moves.
    ///
    /// # Errors
    /// The quota or the machine's memory does not suffice, or the window's end is reached: nothing has changed.
    pub fn grow(&mut self, pages: usize) -> Result<(), Status> {
        let bytes = pages.checked_mul(PAGE_BYTES).and_then(|more| self.bytes.checked_add(more));
        let bytes = bytes.filter(|&bytes| bytes <= WINDOW_BYTES).ok_or(Status::BadArgument)?;
        if pages > 0 {
            // SAFETY: the pages become part of this window.
            unsafe { raw::memory_grow(self.address() as u64, pages as u64) }.into_result()?;
            self.bytes = bytes;
        }
        Ok(())
    }

    /// Its first address.
    pub fn address(&self) -> usize {
        self.start.as_ptr().expose_provenance()
    }

    /// Size of its pages, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Its pages.
    pub fn slice(&mut self) -> &mut [u8] {
        // SAFETY: this many bytes are there, zeroed when they were added, and borrowed with the window.
        unsafe { core::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // SAFETY: it is this window's, and not used afterwards. The kernel knows of it, so it does not refuse.
        let _ = unsafe { raw::memory_free(self.address() as u64) };
    }
}
