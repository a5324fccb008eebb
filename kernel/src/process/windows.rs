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
    /// Reserves a window with this many pages; returns its address.
    ///
    /// # Errors
    /// The machine has none, all are taken, it has not so many pages, or a quota is exhausted.
    pub fn reserve_window(&self, pages: usize) -> Result<usize, Status> {
        if !windows::has_any() {
            return Err(Status::NotFound);
        }
        if pages > MAX_PAGES {
            return Err(Status::BadArgument);
        }
        self.charge_kernel(WINDOW_KERNEL_BYTES)?;
        let Some(mut window) = windows::take(pages, self.space.get().is_some()) else {
            self.refund_kernel(WINDOW_KERNEL_BYTES);
            return Err(Status::Exhausted);
        };
        // Nobody else finds it before it has its pages.
        if pages > 0
            && let Err(status) = self.add_pages(&mut window, pages)
        {
            self.release_window(window);
            return Err(status);
        }
        let address = window.address;
        self.pages.lock().windows.push(window);
        if pages > 0 {
            self.trace.add(TraceKind::MemoryAllocated, address as u64, pages as u64);
        }
        Ok(address)
    }

    /// Adds pages to a window that nobody else finds; all or none.
    fn add_pages(&self, window: &mut Window, more: usize) -> Result<(), Status> {
        let allowed = self.allowed_pages();
        let mut pages = self.pages.lock();
        if pages.count.checked_add(more).is_none_or(|sum| sum > allowed) {
            drop(pages);
            return Err(self.quota_exceeded(QUOTA_MEMORY));
        }
        pages.count += more;
        drop(pages);
        let no_room = || no_room(more.saturating_mul(PAGE_BYTES));
        let mut grow = || windows::grow(window, more, self.space.get()).then_some(()).ok_or_else(no_room);
        let grown = self.may_grow().and_then(|()| grow());
        if grown.is_err() {
            self.pages.lock().count -= more;
        }
        grown
    }

    /// Adds pages to a window; returns the address of the first. `None` if it has no window there.
    pub(super) fn grow_window(&self, address: usize, more: usize) -> Option<Result<usize, Status>> {
        let mut pages = self.pages.lock();
        let index = pages.windows.iter().position(|window| window.address == address)?;
        let mut window = pages.windows.swap_remove(index);
        drop(pages);
        let end = address + window.pages * PAGE_BYTES;
        let grown = match more > MAX_PAGES - window.pages {
            true => Err(Status::BadArgument),
            false => self.add_pages(&mut window, more),
        };
        self.pages.lock().windows.push(window);
        if grown.is_ok() {
            self.trace.add(TraceKind::MemoryAllocated, end as u64, more as u64);
        }
        Some(grown.map(|()| end))
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

#[cfg(test)]
mod tests {
    use core::sync::atomic::Ordering;

    use super::*;
    use crate::lifecycle::end;
    use crate::memory;
    use crate::process::Epitaph;
    use crate::test_machine::{alone, domains, with_quota};

    /// Number of pages that the processes of these tests may have.
    const ALLOWED: usize = 64;

    fn process() -> crate::process::ProcessRef {
        with_quota(|quota| quota.memory_kib = (ALLOWED * PAGE_BYTES / 1024) as u32)
    }

    #[test]
    fn a_window_grows_within_the_quota_and_goes_back_as_a_whole() {
        let _alone = alone();
        let process = process();
        let (before, held) = (memory::usage().0, process.held_bytes());
        let window = process.reserve_window(0).expect("a window");
        assert!(window.is_multiple_of(WINDOW_BYTES));
        assert_eq!(process.grow_pages(window, 3), Ok(window));
        assert_eq!(process.grow_pages(window, 5), Ok(window + 3 * PAGE_BYTES));
        assert_eq!(process.grow_pages(window, ALLOWED - 7), Err(Status::QuotaExceeded));
        assert_eq!(process.grow_pages(window, MAX_PAGES - 7), Err(Status::BadArgument));
        assert_eq!(process.grow_pages(window + PAGE_BYTES, 1), Err(Status::BadArgument));
        assert_eq!((process.page_usage().0, memory::usage().0 - before), (8, 8));
        assert_eq!(process.free_pages(window + PAGE_BYTES), Err(Status::BadArgument));
        assert_eq!(process.free_pages(window), Ok(8));
        assert_eq!(process.free_pages(window), Err(Status::BadArgument));
        assert_eq!((process.page_usage().0, memory::usage().0, process.held_bytes()), (0, before, held));
        end(process, Epitaph::exited(0));
    }

    #[test]
    fn a_window_that_cannot_grow_is_as_before() {
        let _alone = alone();
        let process = process();
        let before = memory::usage().0;
        let window = process.reserve_window(0).expect("a window");
        assert_eq!(process.grow_pages(window, 2), Ok(window));
        domains::HAS_FRAMES.store(false, Ordering::Relaxed);
        assert_eq!(process.grow_pages(window, 2), Err(Status::Exhausted));
        domains::HAS_FRAMES.store(true, Ordering::Relaxed);
        assert_eq!((process.page_usage().0, memory::usage().0 - before), (2, 2));
        assert_eq!(process.grow_pages(window, 2), Ok(window + 2 * PAGE_BYTES));
        end(process, Epitaph::exited(0));
        assert_eq!(memory::usage().0, before, "what is left of it");
    }

    #[test]
    fn windows_end_with_their_process_and_are_given_again() {
        let _alone = alone();
        let (first, second) = (process(), process());
        let windows = [first.reserve_window(0), second.reserve_window(0)].map(|window| window.expect("a window"));
        assert_ne!(windows[0], windows[1]);
        assert_eq!(first.reserve_window(0), Err(Status::Exhausted), "the test machine has two");
        assert_eq!(second.grow_pages(windows[0], 1), Err(Status::BadArgument), "it is another's");
        assert_eq!(second.free_pages(windows[0]), Err(Status::BadArgument), "it is another's");
        end(first, Epitaph::exited(0));
        assert_eq!(second.reserve_window(0), Ok(windows[0]));
        end(second, Epitaph::exited(0));
    }

    #[test]
    fn a_window_is_reserved_with_its_pages_or_not_at_all() {
        let _alone = alone();
        let process = process();
        let before = (memory::usage().0, process.held_bytes());
        assert_eq!(process.reserve_window(MAX_PAGES + 1), Err(Status::BadArgument));
        assert_eq!(process.reserve_window(ALLOWED + 1), Err(Status::QuotaExceeded));
        domains::HAS_FRAMES.store(false, Ordering::Relaxed);
        assert_eq!(process.reserve_window(2), Err(Status::Exhausted));
        domains::HAS_FRAMES.store(true, Ordering::Relaxed);
        assert_eq!((process.page_usage().0, memory::usage().0, process.held_bytes()), (0, before.0, before.1));
        let window = process.reserve_window(3).expect("a window");
        assert_eq!((process.page_usage().0, memory::usage().0 - before.0), (3, 3));
        assert_eq!(process.grow_pages(window, 1), Ok(window + 3 * PAGE_BYTES));
        assert_eq!(process.free_pages(window), Ok(4));
        assert_eq!((process.page_usage().0, memory::usage().0, process.held_bytes()), (0, before.0, before.1));
        end(process, Epitaph::exited(0));
    }

    #[test]
    fn pages_that_were_cleared_stay_for_whoever_wants_as_many() {
        let _alone = alone();
        let process = process();
        let counts = || [domains::MAPPED_WINDOWS.load(Ordering::Relaxed), domains::RELEASED.load(Ordering::Relaxed)];
        domains::CLEARS_WINDOWS.store(true, Ordering::Relaxed);
        let window = process.reserve_window(3).expect("a window");
        assert_eq!(process.free_pages(window), Ok(3));
        let [mapped, released] = counts();
        assert_eq!(process.reserve_window(3), Ok(window));
        assert_eq!(counts(), [mapped, released], "the pages were there");
        assert_eq!(process.free_pages(window), Ok(3));
        let other = process.reserve_window(2).expect("a window");
        assert_eq!(counts(), [mapped + 1, released]);
        assert_ne!(other, window, "it has another number of pages");
        // The test machine has two: for no pages, those of the other are taken away first.
        assert_eq!(process.reserve_window(0), Ok(window));
        assert_eq!(counts(), [mapped + 1, released + 1]);
        domains::CLEARS_WINDOWS.store(false, Ordering::Relaxed);
        assert_eq!((process.free_pages(window), process.free_pages(other)), (Ok(0), Ok(2)));
        assert_eq!(counts(), [mapped + 1, released + 2]);
        end(process, Epitaph::exited(0));
    }

    #[test]
    fn windows_are_bounded_by_kernel_memory() {
        let _alone = alone();
        let process = process();
        process.kernel_quota.store(WINDOW_KERNEL_BYTES, Ordering::Relaxed);
        let window = process.reserve_window(0).expect("a window");
        assert_eq!(process.reserve_window(0), Err(Status::QuotaExceeded));
        assert_eq!(process.free_pages(window), Ok(0));
        assert_eq!(process.reserve_window(0), Ok(window));
        end(process, Epitaph::exited(0));
    }
}
