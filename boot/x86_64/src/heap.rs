//! The kernel's heap: talc over address space to which the machine maps frames on demand.

use core::alloc::Layout;
use core::ptr;

use talc::TalcLock;
use talc::base::Talc;
use talc::base::binning::Binning;
use talc::source::Source;

/// Minimum growth of the heap.
const GROWTH_BYTES: usize = 64 * 1024;
/// talc's overhead per heap area: tags at both ends.
const TAGS_BYTES: usize = 128;

/// The allocator. Interrupt handlers do not allocate, so they cannot deadlock on its lock.
pub type Heap = TalcLock<spin::Mutex<()>, Frames>;

/// Returns an empty heap.
pub const fn empty() -> Heap {
    TalcLock::new(Frames)
}

/// Source of the heap's memory.
#[derive(Debug)]
pub struct Frames;

// SAFETY: the range that `grow_heap` returns is mapped, writable, without another user and never unmapped.
unsafe impl Source for Frames {
    fn acquire<B: Binning>(talc: &mut Talc<Self, B>, layout: Layout) -> Result<(), ()> {
        let bytes = layout.size().checked_add(layout.align()).and_then(|sum| sum.checked_add(TAGS_BYTES)).ok_or(())?;
        let (start, bytes) = hal_x86_64::grow_heap(bytes.max(GROWTH_BYTES)).ok_or(())?;
        // SAFETY: as above.
        unsafe { talc.claim(ptr::with_exposed_provenance_mut(start), bytes) }.map(drop).ok_or(())
    }
}
