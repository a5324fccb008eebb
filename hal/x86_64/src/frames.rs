//! Physical frames for stacks, the kernel's heap and page tables.
//!
//! Lock-free, because a page fault allocates a frame wherever it occurs: a stack may grow while the
//! kernel, on that very stack, is in here. Free frames form a Treiber stack, linked
//! through their first word; frames never used before come from ranges. The run for images serves the
//! kernel as well: images take its pages from the start, and the kernel, once there are no other frames,
//! from the end.
//! Deliberately not here: memory of SIPs and blocks, which is one run that the kernel divides.

use core::ptr;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::paging;
use crate::regions::Region;

/// Bytes of a frame.
pub(crate) const FRAME_BYTES: usize = 4096;
/// Frames reserved for the kernel: for stack pages it faults on, its heap and page tables.
const RESERVED_FRAMES: usize = 256;
const MAX_RANGES: usize = 32;

/// Purpose of a frame.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum For {
    /// Growth of a SIP's stack.
    Sip,
    /// Needed by the kernel to go on.
    Kernel,
}

struct Fresh {
    next: AtomicU64,
    end: AtomicU64,
}

static FRESH: [Fresh; MAX_RANGES] = [const { Fresh { next: AtomicU64::new(0), end: AtomicU64::new(0) } }; MAX_RANGES];
/// Low 32 bits: number of the first free frame, 0 for none. High 32 bits: generation, incremented with each change
/// against the ABA problem.
static FREE: AtomicU64 = AtomicU64::new(0);
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// Start of the run for images.
static IMAGES: AtomicU64 = AtomicU64::new(0);
/// Its free pages. Low 32 bits: index of the first, which follows those of images. High 32 bits: index after the last;
/// later pages are the kernel's.
static IMAGES_FREE: AtomicU64 = AtomicU64::new(0);

/// Returns the number of frames available to SIPs' stacks.
pub(crate) fn spare() -> usize {
    left().saturating_sub(kept())
}

/// Returns the number of frames that SIPs' stacks must not take.
fn kept() -> usize {
    let (first, end) = images_free(IMAGES_FREE.load(Ordering::Relaxed));
    RESERVED_FRAMES + (end - first) as usize
}

/// Returns the number of free frames, including those reserved for images and for the kernel.
pub(crate) fn left() -> usize {
    COUNT.load(Ordering::Relaxed)
}

/// Adds a range of memory.
///
/// # Safety
/// The range is whole frames of ordinary memory, identity-mapped and writable by the time a frame is
/// taken, that nothing else uses. Called by one processor at a time.
pub(crate) unsafe fn add(region: Region) {
    let count = (region.bytes() as usize) / FRAME_BYTES;
    let Some(fresh) = FRESH.iter().find(|fresh| fresh.end.load(Ordering::Relaxed) == 0) else { return };
    fresh.next.store(region.start, Ordering::Relaxed);
    fresh.end.store(region.end, Ordering::Release);
    COUNT.fetch_add(count, Ordering::Relaxed);
}

/// Adds the run for images.
///
/// # Safety
/// As for [`add`], except for the mapping: nothing of it is mapped, and its page tables exist down to 4 KiB pages.
/// Called once, by one processor.
pub(crate) unsafe fn add_images(region: Region) {
    let count = region.bytes() / FRAME_BYTES as u64;
    IMAGES.store(region.start, Ordering::Relaxed);
    IMAGES_FREE.store(count << 32, Ordering::Release);
    COUNT.fetch_add(count as usize, Ordering::Relaxed);
}

fn images_free(value: u64) -> (u64, u64) {
    (value & u64::from(u32::MAX), value >> 32)
}

/// Reserves the pages of the run for images below the address `end` for images. False if the kernel has taken some of
/// them for lack of other memory.
pub(crate) fn give_to_images(end: usize) -> bool {
    let wanted = (end as u64).saturating_sub(IMAGES.load(Ordering::Relaxed)).div_ceil(FRAME_BYTES as u64);
    let mut value = IMAGES_FREE.load(Ordering::Acquire);
    loop {
        let (first, free_end) = images_free(value);
        if wanted <= first {
            return true;
        }
        let count = (wanted - first) as usize;
        let less = |left: usize| left.checked_sub(count);
        if wanted > free_end || COUNT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_err() {
            return false;
        }
        let new = free_end << 32 | wanted;
        match IMAGES_FREE.compare_exchange(value, new, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return true,
            Err(current) => {
                COUNT.fetch_add(count, Ordering::Release);
                value = current;
            }
        }
    }
}

/// Takes the last free page of the run for images as a frame, permanently.
fn from_images() -> Option<usize> {
    let less = |value: u64| {
        let (first, end) = images_free(value);
        (first < end).then(|| (end - 1) << 32 | first)
    };
    let before = IMAGES_FREE.fetch_update(Ordering::AcqRel, Ordering::Acquire, less).ok()?;
    let (_, end) = images_free(before);
    let address = IMAGES.load(Ordering::Relaxed) as usize + (end as usize - 1) * FRAME_BYTES;
    paging::map_frame(address);
    Some(address)
}

/// Allocates a zeroed frame and returns its address.
pub(crate) fn take(who: For) -> Option<usize> {
    let least = if who == For::Sip { kept() } else { 0 };
    let less = |count: usize| (count > least).then(|| count - 1);
    COUNT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).ok()?;
    // The count guarantees a frame: it is incremented after the frame is pushed.
    loop {
        if let Some(address) = pop().or_else(fresh).or_else(from_images) {
            // SAFETY: the frame came off a list, so it has no other owner; it is identity-mapped memory (`add`).
            unsafe { ptr::write_bytes(ptr::with_exposed_provenance_mut::<u64>(address), 0, FRAME_BYTES / 8) };
            return Some(address);
        }
        core::hint::spin_loop();
    }
}

/// Frees a frame.
///
/// # Safety
/// It came from [`take`], and there is no reference to it any more, on any processor.
pub(crate) unsafe fn give(address: usize) {
    let link = address as *const AtomicU64;
    let mut head = FREE.load(Ordering::Acquire);
    loop {
        // SAFETY: the caller owns the frame, which is identity-mapped and aligned.
        unsafe { (*link).store(head & u64::from(u32::MAX), Ordering::Relaxed) };
        let new = (head >> 32).wrapping_add(1) << 32 | (address / FRAME_BYTES) as u64;
        match FREE.compare_exchange_weak(head, new, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => break,
            Err(current) => head = current,
        }
    }
    COUNT.fetch_add(1, Ordering::Release);
}

fn pop() -> Option<usize> {
    let mut head = FREE.load(Ordering::Acquire);
    loop {
        let number = head & u64::from(u32::MAX);
        if number == 0 {
            return None;
        }
        let address = number as usize * FRAME_BYTES;
        // SAFETY: frames stay mapped for ever. If another processor has taken this one meanwhile, the value
        // read is garbage, and the exchange below fails because the generation has changed.
        let next = unsafe { (*(address as *const AtomicU64)).load(Ordering::Relaxed) };
        let new = (head >> 32).wrapping_add(1) << 32 | next & u64::from(u32::MAX);
        match FREE.compare_exchange_weak(head, new, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return Some(address),
            Err(current) => head = current,
        }
    }
}

fn fresh() -> Option<usize> {
    FRESH.iter().find_map(|range| {
        let end = range.end.load(Ordering::Acquire);
        let more = |next: u64| (next < end).then(|| next + FRAME_BYTES as u64);
        range.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok().map(|address| address as usize)
    })
}
