//! The kernel's heap: talc over address space that the machine fills with frames as it is needed.

use core::alloc::Layout;
use core::ptr;

use talc::TalcLock;
use talc::base::Talc;
use talc::base::binning::Binning;
use talc::source::Source;

/// The heap grows by at least so much.
const GROWTH_BYTES: usize = 64 * 1024;
/// What talc needs of a new heap beside the request itself: tags at both ends.
const TAGS_BYTES: usize = 128;

/// The allocator. Its lock is never wanted by an interrupt, because interrupts allocate nothing.
pub type Heap = TalcLock<spin::Mutex<()>, Frames>;

/// An empty heap.
pub const fn empty() -> Heap {
    TalcLock::new(Frames)
}

/// Where the heap's memory comes from.
#[derive(Debug)]
pub struct Frames;

// SAFETY: what `grow_heap` gives is mapped, writable, nobody else's and never taken back.
unsafe impl Source for Frames {
    fn acquire<B: Binning>(talc: &mut Talc<Self, B>, layout: Layout) -> Result<(), ()> {
        let bytes = layout.size().checked_add(layout.align()).and_then(|sum| sum.checked_add(TAGS_BYTES)).ok_or(())?;
        let (start, bytes) = hal_x86_64::grow_heap(bytes.max(GROWTH_BYTES)).ok_or(())?;
        // SAFETY: as above.
        unsafe { talc.claim(ptr::with_exposed_provenance_mut(start), bytes) }.map(drop).ok_or(())
    }
}
