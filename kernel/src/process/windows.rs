//! The windows of a SIP: addresses that it has reserved, with the pages that it has added from their start.
//!
//! While a window grows nobody finds it, as with an allocation of pages. Its pages count as pages, itself as kernel
//! memory. Deliberately not here: where the pages are.

use abi::limits::{PAGE_BYTES, WINDOW_BYTES, WINDOW_KERNEL_BYTES};
use abi::{Status, TraceKind};

use super::Process;
use super::quota::QUOTA_MEMORY;
use crate::memory::windows::{self, Window};
use crate::shortage::no_room;
use crate::slab::Slot;

/// Maximum number of a window's pages.
const MAX_PAGES: usize = WINDOW_BYTES / PAGE_BYTES;

impl Slot<Process> {
    /// Reserves a window; returns its address.
    ///
    /// # Errors
    /// The machine has none, all are taken, or the quota of kernel memory is exhausted.
    pub fn reserve_window(&self) -> Result<usize, Status> {
        if !windows::has_any() {
            return Err(Status::NotFound);
        }
        self.charge_kernel(WINDOW_KERNEL_BYTES)?;
        let Some(window) = windows::take() else {
            self.refund_kernel(WINDOW_KERNEL_BYTES);
            return Err(Status::Exhausted);
        };
        let address = window.address;
        self.pages.lock().windows.push(window);
        Ok(address)
    }

    /// Adds pages to a window; returns the address of the first. `None` if it has no window there.
    pub(super) fn grow_window(&self, address: usize, more: usize, allowed: usize) -> Option<Result<usize, Status>> {
        let mut pages = self.pages.lock();
        let index = pages.windows.iter().position(|window| window.address == address)?;
        let end = address + pages.windows[index].pages * PAGE_BYTES;
        if more > MAX_PAGES - pages.windows[index].pages {
            return Some(Err(Status::BadArgument));
        }
        if pages.count.checked_add(more).is_none_or(|sum| sum > allowed) {
            drop(pages);
            return Some(Err(self.quota_exceeded(QUOTA_MEMORY)));
        }
        pages.count += more;
        let mut window = pages.windows.swap_remove(index);
        drop(pages);
        let no_room = || no_room(more.saturating_mul(PAGE_BYTES));
        let mut grow = || windows::grow(&mut window, more, self.space.get()).then_some(()).ok_or_else(no_room);
        let grown = self.may_grow().and_then(|()| grow());
        let mut pages = self.pages.lock();
        pages.windows.push(window);
        if let Err(status) = grown {
            pages.count -= more;
            return Some(Err(status));
        }
        drop(pages);
        self.trace.add(TraceKind::MemoryAllocated, end as u64, more as u64);
        Some(Ok(end))
    }

    /// Gives a window up; returns the number of its pages. `None` if it has no window there.
    pub(super) fn free_window(&self, address: usize) -> Option<usize> {
        let mut pages = self.pages.lock();
        let index = pages.windows.iter().position(|window| window.address == address)?;
        let window = pages.windows.swap_remove(index);
        pages.count -= window.pages;
        drop(pages);
        Some(self.release_window(window))
    }

    /// Gives all windows up. None of its threads will run.
    pub fn free_windows(&self) {
        loop {
            let mut pages = self.pages.lock();
            let Some(window) = pages.windows.pop() else { return };
            pages.count -= window.pages;
            drop(pages);
            self.release_window(window);
        }
    }

    fn release_window(&self, window: Window) -> usize {
        let count = window.pages;
        windows::free(window, self.space.get());
        self.refund_kernel(WINDOW_KERNEL_BYTES);
        count
    }
}
