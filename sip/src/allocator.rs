//! The global allocator of a SIP: talc over pages from the kernel, with its state in the process's first pages.
//!
//! An image has no writable data, so everything that the threads of a process share hangs off one
//! runtime word of their thread blocks, which points to `Shared`. Small allocations come from
//! heaps that grow by a few pages; large ones are pages of their own and go back at once, unless [`keep_pages`] says
//! otherwise.
//! Deliberately not here: exchange-heap blocks, which belong to [`exheap`](crate::exheap).

use alloc::boxed::Box;
use core::alloc::{GlobalAlloc, Layout};
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicBool, Ordering};

use abi::Status;
use abi::limits::PAGE_BYTES;
use talc::base::Talc;
use talc::base::binning::Binning;
use talc::source::Source;
use talc::sync::TalcLock;

use crate::raw;
use crate::thread_block::{self, SHARED};

/// Pages of the first heap, which also holds [`Shared`].
const FIRST_PAGES: usize = 2;
/// Minimum growth of the heap, in pages.
const GROWTH_PAGES: usize = 4;
/// Minimum size in bytes of an allocation that gets pages of its own.
const LARGE_BYTES: usize = 32 * 1024;

/// Maximum number of freed runs of pages that are kept.
const MAX_KEPT: usize = 32;
/// Maximum number of allocations in kept runs that are larger than they need.
const MAX_LARGER: usize = 32;
/// How many times as large a kept run may be as the allocation that it is used for.
const MAX_TIMES: usize = 4;

/// State shared by the threads of a process. It lies at the start of the first heap and lives as long as the process.
struct Shared {
    heap: TalcLock<SpinThenYield, PagedMemory, SmallBinning>,
    /// None unless the program asks for it: the first heap is small.
    kept: lock_api::Mutex<SpinThenYield, Option<Box<Kept>>>,
}

/// Freed runs of pages, oldest first, for allocations of as many pages or less.
struct Kept {
    /// Address and number of pages of each.
    runs: [(usize, usize); MAX_KEPT],
    count: usize,
    /// Number of all their pages, and the most there may be.
    pages: usize,
    max_pages: usize,
    /// The same of runs in use that are larger than their allocation, which alone says of others how large they are.
    larger: [(usize, usize); MAX_LARGER],
    larger_count: usize,
}

impl Kept {
    const NONE: Kept = Kept {
        runs: [(0, 0); MAX_KEPT],
        count: 0,
        pages: 0,
        max_pages: 0,
        larger: [(0, 0); MAX_LARGER],
        larger_count: 0,
    };

    /// Takes the smallest run out that has this many pages and not many times as many.
    fn take(&mut self, pages: usize) -> Option<usize> {
        let max = if self.larger_count < MAX_LARGER { pages.saturating_mul(MAX_TIMES) } else { pages };
        let fitting = self.runs[..self.count].iter().enumerate().filter(|(_, run)| (pages..=max).contains(&run.1));
        // Of several the one that was freed last, which a cache may hold.
        let (index, _) = fitting.rev().min_by_key(|(_, run)| run.1)?;
        let (address, found) = self.remove(index);
        if found > pages {
            self.larger[self.larger_count] = (address, found);
            self.larger_count += 1;
        }
        Some(address)
    }

    /// The number of pages of a run in use, which has `pages` if it is not larger; from now on it is not.
    fn take_size(&mut self, address: usize, pages: usize) -> usize {
        let Some(index) = self.larger[..self.larger_count].iter().position(|run| run.0 == address) else {
            return pages;
        };
        let (_, found) = self.larger[index];
        self.larger_count -= 1;
        self.larger[index] = self.larger[self.larger_count];
        found
    }

    /// Notes the size of a run in use, for which there is room after [`Kept::take_size`] with the lock held.
    fn put_size(&mut self, address: usize, pages: usize, used: usize) {
        if pages > used
            && let Some(place) = self.larger.get_mut(self.larger_count)
        {
            *place = (address, pages);
            self.larger_count += 1;
        }
    }

    /// Adds a run; whether there is room, for which older ones go back to the kernel.
    fn add(&mut self, address: usize, pages: usize) -> bool {
        if pages > self.max_pages {
            return false;
        }
        while self.count == MAX_KEPT || self.pages + pages > self.max_pages {
            self.give_back_oldest();
        }
        self.runs[self.count] = (address, pages);
        self.count += 1;
        self.pages += pages;
        true
    }

    fn remove(&mut self, index: usize) -> (usize, usize) {
        let run = self.runs[index];
        self.runs.copy_within(index + 1..self.count, index);
        self.count -= 1;
        self.pages -= run.1;
        run
    }

    fn give_back_oldest(&mut self) {
        let (address, _) = self.remove(0);
        // SAFETY: it was freed by its owner, and nobody has it now.
        let _ = unsafe { raw::memory_free(address as u64) };
    }
}

/// Lets the process keep freed allocations of 32 KiB and more for new ones, up to this many bytes: for programs that
/// allocate and free them often, since each is a call of the kernel otherwise. An allocation may use one of up to four
/// times its size. They go back when memory is short. Without a heap it does nothing.
pub fn keep_pages(bytes: usize) {
    let Some(shared) = shared() else { return };
    let mut kept = shared.kept.lock();
    // Small, so that it is in the heap and needs no kept run itself.
    let kept = kept.get_or_insert_with(|| Box::new(Kept::NONE));
    kept.max_pages = bytes / PAGE_BYTES;
    while kept.pages > kept.max_pages {
        kept.give_back_oldest();
    }
}

/// Creates the heap of the process.
///
/// # Errors
/// The kernel's error if quota or memory do not suffice for the first pages; [`Status::WrongState`] if there is a heap.
///
/// # Safety
///
/// The caller is the first thread, and nothing has been allocated yet.
pub(crate) unsafe fn start() -> Result<(), Status> {
    if shared_word() != 0 {
        return Err(Status::WrongState);
    }
    // SAFETY: the pages are new and have no other owner.
    let address = unsafe { raw::memory_allocate(FIRST_PAGES as u64) }.into_result()?;
    let shared: *mut Shared = core::ptr::with_exposed_provenance_mut(address as usize);
    let bytes = FIRST_PAGES * PAGE_BYTES;
    // SAFETY: `shared` is page-aligned, writable and larger than Shared; it is never freed. The rest
    // of the pages is given to the heap and used by nothing else.
    unsafe {
        shared.write(Shared { heap: TalcLock::new(PagedMemory), kept: lock_api::Mutex::new(None) });
        let rest = shared.add(1).cast::<u8>();
        (*shared).heap.lock().claim(rest, bytes - size_of::<Shared>());
    }
    thread_block::set_runtime_word(SHARED, address);
    Ok(())
}

/// Returns the word by which a new thread of the process finds the heap.
pub(crate) fn shared_word() -> u64 {
    thread_block::runtime_word(SHARED)
}

/// Lets the calling thread use the heap of its process.
///
/// # Safety
///
/// `word` was returned by [`shared_word`] on another thread of the same process.
pub(crate) unsafe fn adopt(word: u64) {
    thread_block::set_runtime_word(SHARED, word);
}

/// Adds zeroed pages behind an allocation of [`SipAllocator`] that has pages of its own, if the kernel has free ones
/// there; whether it did. The allocation has the new size then.
///
/// # Safety
///
/// `pointer` was allocated with `layout`, and no other thread frees or resizes it meanwhile.
#[doc(hidden)]
pub unsafe fn grow_in_place(pointer: NonNull<u8>, layout: Layout, new_size: usize) -> bool {
    let (former, wanted) = (layout.size().div_ceil(PAGE_BYTES), new_size.div_ceil(PAGE_BYTES));
    if !is_large(layout) || new_size < layout.size() {
        return false;
    }
    let address = pointer.as_ptr().expose_provenance();
    if wanted == former {
        return true;
    }
    match grow_run(address, former, wanted) {
        Ok(Behind::Zero) => true,
        Ok(Behind::Used) => {
            let (start, bytes) = (former * PAGE_BYTES, (wanted - former) * PAGE_BYTES);
            // SAFETY: these pages are part of the run, and from now on of the allocation, which is the caller's.
            unsafe { pointer.as_ptr().add(start).write_bytes(0, bytes) }
            true
        }
        Err(_) => false,
    }
}

/// What is in the pages by which an allocation has grown.
enum Behind {
    Zero,
    /// Anything.
    Used,
}

/// Gives an allocation of `former` pages more of them where it is. The caller owns it.
fn grow_run(address: usize, former: usize, wanted: usize) -> Result<Behind, Status> {
    let shared = shared().ok_or(Status::WrongState)?;
    let mut kept = shared.kept.lock();
    let size = kept.as_mut().map_or(former, |kept| kept.take_size(address, former));
    let grown = match wanted.checked_sub(size) {
        None | Some(0) => Ok(0),
        // SAFETY: the new pages become part of the allocation.
        Some(more) => unsafe { raw::memory_grow(address as u64, more as u64) }.into_result(),
    };
    let used = if grown.is_ok() { wanted } else { former };
    if let Some(kept) = &mut *kept {
        kept.put_size(address, size.max(used), used);
    }
    grown.map(|_| if size > former { Behind::Used } else { Behind::Zero })
}

/// The allocator to name in `#[global_allocator]`; [`entry!`](crate::entry!) does it.
#[derive(Clone, Copy, Debug)]
pub struct SipAllocator;

fn shared() -> Option<&'static Shared> {
    let address = shared_word() as usize;
    if address == 0 {
        return None;
    }
    let shared: *const Shared = core::ptr::with_exposed_provenance(address);
    // SAFETY: only `start` and `adopt` set the word, to a Shared that is never freed or moved.
    Some(unsafe { &*shared })
}

fn heap() -> Option<&'static TalcLock<SpinThenYield, PagedMemory, SmallBinning>> {
    shared().map(|shared| &shared.heap)
}

fn is_large(layout: Layout) -> bool {
    layout.size() >= LARGE_BYTES && layout.align() <= PAGE_BYTES
}

fn pages(bytes: usize) -> Option<NonNull<u8>> {
    let count = bytes.div_ceil(PAGE_BYTES) as u64;
    // SAFETY: the pages are new and have no other owner.
    let address = unsafe { raw::memory_allocate(count) }.into_result().ok()?;
    NonNull::new(core::ptr::with_exposed_provenance_mut(address as usize))
}

/// Pages for a large allocation: kept ones, whose content is arbitrary, or new ones, which are zero.
fn large_pages(bytes: usize) -> Option<(NonNull<u8>, bool)> {
    let kept = shared().and_then(|shared| shared.kept.lock().as_mut()?.take(bytes.div_ceil(PAGE_BYTES)));
    if let Some(address) = kept {
        return NonNull::new(core::ptr::with_exposed_provenance_mut(address)).map(|start| (start, false));
    }
    let new = pages(bytes).or_else(|| {
        if let Some(kept) = &mut *shared()?.kept.lock() {
            (0..kept.count).for_each(|_| kept.give_back_oldest());
        }
        pages(bytes)
    });
    new.map(|start| (start, true))
}

// SAFETY: small layouts are served by talc, large ones by whole pages; the choice depends on the layout alone, which
// the caller passes again when it frees. No function unwinds.
unsafe impl GlobalAlloc for SipAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let allocated = if is_large(layout) {
            large_pages(layout.size()).map(|(start, _)| start)
        } else {
            // SAFETY: the size is not zero, by this function's own contract.
            heap().and_then(|heap| unsafe { heap.lock().allocate(layout) })
        };
        allocated.map_or(null_mut(), NonNull::as_ptr)
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if is_large(layout) {
            let (address, pages) = (pointer.expose_provenance(), layout.size().div_ceil(PAGE_BYTES));
            let is_kept = shared().is_some_and(|shared| {
                shared.kept.lock().as_mut().is_some_and(|kept| {
                    let pages = kept.take_size(address, pages);
                    kept.add(address, pages)
                })
            });
            if is_kept {
                return;
            }
            // SAFETY: `pointer` came from `pages`, and the caller no longer uses it.
            let _ = unsafe { raw::memory_free(address as u64) };
        } else if let Some(heap) = heap() {
            // SAFETY: `pointer` came from this heap with this layout.
            unsafe { heap.lock().deallocate(pointer, layout) }
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let (pointer, is_zero) = if is_large(layout) {
            large_pages(layout.size()).map_or((null_mut(), true), |(start, is_new)| (start.as_ptr(), is_new))
        } else {
            // SAFETY: passed on from the caller.
            (unsafe { self.alloc(layout) }, false)
        };
        if !pointer.is_null() && !is_zero {
            // SAFETY: just allocated with at least that size.
            unsafe { pointer.write_bytes(0, layout.size()) }
        }
        pointer
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller's contract makes size and alignment a valid layout.
        let new_layout = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        if is_large(layout) && is_large(new_layout) {
            let (former, wanted) = (layout.size().div_ceil(PAGE_BYTES), new_size.div_ceil(PAGE_BYTES));
            if former == wanted || former < wanted && grow_run(pointer.expose_provenance(), former, wanted).is_ok() {
                return pointer;
            }
        } else if !is_large(layout)
            && !is_large(new_layout)
            && let Some(heap) = heap()
            // SAFETY: `pointer` came from this heap with this layout, and the new size is not zero.
            && unsafe { heap.lock().try_realloc_in_place(pointer, layout, new_size) }
        {
            return pointer;
        }
        // SAFETY: the new block is distinct from the old one and both have at least the copied size.
        unsafe {
            let moved = self.alloc(new_layout);
            if !moved.is_null() {
                moved.copy_from_nonoverlapping(pointer, layout.size().min(new_size));
                self.dealloc(pointer, layout);
            }
            moved
        }
    }
}

/// Source of more memory for talc: pages, a few at a time.
#[derive(Debug)]
struct PagedMemory;

// SAFETY: `acquire` claims new pages without another owner and does not touch the allocator.
unsafe impl Source for PagedMemory {
    fn acquire<B: Binning>(talc: &mut Talc<Self, B>, layout: Layout) -> Result<(), ()> {
        // Room for the request, for its alignment and for talc's tags at both ends of a heap.
        let bytes = layout.size().checked_add(layout.align()).and_then(|sum| sum.checked_add(128)).ok_or(())?;
        let bytes = bytes.max(GROWTH_PAGES * PAGE_BYTES).next_multiple_of(PAGE_BYTES);
        let base = pages(bytes).ok_or(())?;
        // SAFETY: the pages are new, and the process keeps them until it ends.
        unsafe { talc.claim(base.as_ptr(), bytes) }.map(drop).ok_or(())
    }
}

/// Few free lists: their heads lie in the first heap of every process, however small it is.
struct SmallBinning;

impl Binning for SmallBinning {
    type AvailabilityBitField = u64;
    const BIN_COUNT: u32 = u64::BITS - 1;

    #[inline]
    fn size_to_bin(size: usize) -> u32 {
        talc::base::binning::linear_extent_then_linearly_divided_exponential_binning::<4, 4>(size)
    }
}

/// A lock that works before there is a heap: spins [`SPINS`] times, then yields the processor.
struct SpinThenYield {
    taken: AtomicBool,
}

const SPINS: u32 = 64;

// SAFETY: `taken` goes from false to true in exactly one thread at a time.
unsafe impl lock_api::RawMutex for SpinThenYield {
    // The usual way to make a fresh lock in an initializer; each use makes a new one.
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: SpinThenYield = SpinThenYield { taken: AtomicBool::new(false) };

    type GuardMarker = lock_api::GuardNoSend;

    #[inline]
    fn lock(&self) {
        while !self.try_lock() {
            for _ in 0..SPINS {
                if !self.taken.load(Ordering::Relaxed) {
                    break;
                }
                core::hint::spin_loop();
            }
            if self.taken.load(Ordering::Relaxed) {
                // Yielding cannot fail.
                let _ = raw::value::thread_yield();
            }
        }
    }

    #[inline]
    fn try_lock(&self) -> bool {
        self.taken.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    #[inline]
    unsafe fn unlock(&self) {
        self.taken.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use core::alloc::{GlobalAlloc, Layout};

    use super::{LARGE_BYTES, MAX_KEPT, MAX_LARGER, SipAllocator, grow_in_place, keep_pages, start};
    use crate::double;

    /// The pages of all tests are counted together, and each leaves those of its heap.
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());

    /// Pseudo-random sizes and lifetimes, the same in each run.
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, bound: u64) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((self.0 >> 33) % bound) as usize
        }
    }

    struct Piece {
        pointer: *mut u8,
        layout: Layout,
        mark: u8,
    }

    impl Piece {
        fn new(size: usize, align: usize, mark: u8) -> Piece {
            let layout = Layout::from_size_align(size, align).unwrap();
            // SAFETY: the size is not zero.
            let pointer = unsafe { SipAllocator.alloc(layout) };
            assert!(!pointer.is_null() && (pointer as usize).is_multiple_of(align), "{layout:?}");
            // SAFETY: just allocated.
            unsafe { pointer.write_bytes(mark, size) };
            Piece { pointer, layout, mark }
        }

        fn check(&self, length: usize) {
            // SAFETY: allocated with at least this length, and not freed yet.
            let bytes = unsafe { core::slice::from_raw_parts(self.pointer, length) };
            assert!(bytes.iter().all(|&byte| byte == self.mark), "somebody else wrote here");
        }

        fn resize(&mut self, size: usize) {
            // SAFETY: allocated with this layout; the new size is not zero.
            self.pointer = unsafe { SipAllocator.realloc(self.pointer, self.layout, size) };
            assert!(!self.pointer.is_null());
            self.check(size.min(self.layout.size()));
            self.layout = Layout::from_size_align(size, self.layout.align()).unwrap();
            // SAFETY: just allocated.
            unsafe { self.pointer.write_bytes(self.mark, size) };
        }

        fn free(self) {
            self.check(self.layout.size());
            // SAFETY: allocated with this layout.
            unsafe { SipAllocator.dealloc(self.pointer, self.layout) };
        }
    }

    #[test]
    fn allocations_do_not_overlap_and_large_ones_go_back() {
        let _alone = ALONE.lock();
        double::run(|| {
            let before = double::pages_alive();
            // SAFETY: a new thread of the kernel double, which has allocated nothing.
            assert_eq!(unsafe { start() }, Ok(()));
            // SAFETY: a second heap is refused.
            assert_eq!(unsafe { start() }, Err(abi::Status::WrongState));
            assert_eq!(double::pages_alive(), before + 2, "a process begins with two pages");
            let mut numbers = Numbers(1);
            let mut pieces = std::vec::Vec::new();
            let mut max_pages = 0;
            for round in 0..20_000 {
                if pieces.len() > 200 || (round > 19_000 && !pieces.is_empty()) {
                    let index = numbers.below(pieces.len() as u64);
                    let piece: Piece = pieces.swap_remove(index);
                    piece.free();
                } else if numbers.below(4) == 0 && !pieces.is_empty() {
                    let index = numbers.below(pieces.len() as u64);
                    let size = 1 + numbers.below(2 * LARGE_BYTES as u64);
                    pieces[index].resize(size);
                } else {
                    let size = match numbers.below(20) {
                        0 => 1 + numbers.below(4 * LARGE_BYTES as u64),
                        _ => 1 + numbers.below(600),
                    };
                    pieces.push(Piece::new(size, 1 << numbers.below(8), round as u8));
                }
                max_pages = max_pages.max(double::pages_alive());
            }
            pieces.into_iter().for_each(Piece::free);
            let left = double::pages_alive();
            // Freed allocations below LARGE_BYTES stay in the heap for reuse.
            assert!(left < max_pages, "{left} pages left of {max_pages}");
            let piece = Piece::new(LARGE_BYTES * 100, 64, 1);
            assert_eq!(double::pages_alive(), left + LARGE_BYTES as u64 * 100 / 4096);
            piece.free();
            assert_eq!(double::pages_alive(), left, "a large allocation is pages of its own");
        });
    }

    #[test]
    fn freed_pages_are_kept_within_a_limit_and_used_again() {
        let _alone = ALONE.lock();
        double::run(|| {
            // SAFETY: a new thread of the kernel double, which has allocated nothing.
            assert_eq!(unsafe { start() }, Ok(()));
            let begin = double::pages_alive();
            let pages = LARGE_BYTES as u64 / 4096;
            keep_pages(4 * LARGE_BYTES);
            let first = Piece::new(LARGE_BYTES, 1, 7);
            let address = first.pointer;
            first.free();
            assert_eq!(double::pages_alive(), begin + pages, "it is kept");
            // One of another size does not take it.
            let other = Piece::new(2 * LARGE_BYTES, 1, 8);
            assert_ne!(other.pointer, address);
            let layout = Layout::from_size_align(LARGE_BYTES, 8).unwrap();
            // SAFETY: the size is not zero.
            let again = unsafe { SipAllocator.alloc_zeroed(layout) };
            assert_eq!(again, address);
            // SAFETY: just allocated.
            let bytes = unsafe { core::slice::from_raw_parts(again, LARGE_BYTES) };
            assert!(bytes.iter().all(|&byte| byte == 0), "it is not zero");
            // SAFETY: allocated with this layout.
            unsafe { SipAllocator.dealloc(again, layout) };
            other.free();
            assert_eq!(double::pages_alive(), begin + 3 * pages);
            // The oldest go for newer ones; one that is larger than all is not kept.
            Piece::new(3 * LARGE_BYTES, 1, 9).free();
            assert_eq!(double::pages_alive(), begin + 3 * pages, "two sizes went");
            Piece::new(5 * LARGE_BYTES, 1, 9).free();
            assert_eq!(double::pages_alive(), begin + 3 * pages);
            keep_pages(1000 * LARGE_BYTES);
            let many: std::vec::Vec<Piece> =
                (0..2 * MAX_KEPT).map(|mark| Piece::new(LARGE_BYTES, 1, mark as u8)).collect();
            many.into_iter().for_each(Piece::free);
            assert_eq!(double::pages_alive(), begin + MAX_KEPT as u64 * pages);
            keep_pages(0);
            assert_eq!(double::pages_alive(), begin);
        });
    }

    #[test]
    fn a_kept_run_may_be_larger_than_what_it_is_used_for() {
        let _alone = ALONE.lock();
        double::run(|| {
            // SAFETY: a new thread of the kernel double, which has allocated nothing.
            assert_eq!(unsafe { start() }, Ok(()));
            let begin = double::pages_alive();
            let pages = |bytes: usize| (bytes / 4096) as u64;
            keep_pages(100 * LARGE_BYTES);
            let run = Piece::new(4 * LARGE_BYTES, 1, 1);
            let address = run.pointer;
            run.free();
            // A quarter of it takes it, less does not.
            let mut quarter = Piece::new(LARGE_BYTES, 1, 2);
            assert_eq!(quarter.pointer, address);
            assert_eq!(double::pages_alive(), begin + pages(4 * LARGE_BYTES));
            // It grows there without the kernel.
            quarter.resize(3 * LARGE_BYTES);
            assert_eq!((quarter.pointer, double::pages_alive()), (address, begin + pages(4 * LARGE_BYTES)));
            quarter.free();
            let layout = Layout::from_size_align(2 * LARGE_BYTES, 8).unwrap();
            // SAFETY: the size is not zero.
            let half = unsafe { SipAllocator.alloc(layout) };
            assert_eq!(half, address, "its size is known again");
            let half = core::ptr::NonNull::new(half).unwrap();
            // SAFETY: allocated with this layout; nobody else has it.
            assert!(unsafe { grow_in_place(half, layout, 4 * LARGE_BYTES) });
            // SAFETY: it has this size now.
            let bytes = unsafe { core::slice::from_raw_parts(half.as_ptr(), 4 * LARGE_BYTES) };
            assert!(bytes[2 * LARGE_BYTES..].iter().all(|&byte| byte == 0), "what was used before is cleared");
            let layout = Layout::from_size_align(4 * LARGE_BYTES, 8).unwrap();
            // SAFETY: it has this size.
            unsafe { SipAllocator.dealloc(half.as_ptr(), layout) };
            // As many as can be told apart; the others are of their own size.
            let runs = (0..MAX_KEPT).map(|mark| Piece::new(4 * LARGE_BYTES, 1, mark as u8));
            runs.collect::<std::vec::Vec<_>>().into_iter().for_each(Piece::free);
            let used: std::vec::Vec<_> =
                (0..MAX_LARGER + 8).map(|mark| Piece::new(2 * LARGE_BYTES, 1, mark as u8)).collect();
            used.into_iter().for_each(Piece::free);
            keep_pages(0);
            assert_eq!(double::pages_alive(), begin);
        });
    }
}
