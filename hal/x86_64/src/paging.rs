//! Page tables: identity-mapped memory, with the largest pages the processor supports, and the stacks, which
//! grow page by page.
//!
//! One set of tables for all processors: everything but code in domains (`domains`) runs in one address space. Ordinary memory, images
//! and devices are mapped at their physical addresses; stacks and the kernel's heap have ranges of
//! their own, far above. W^X holds, and no memory is mapped twice, except
//! that in the windows of programs, and briefly an image that is copied. Entries are changed by atomic exchanges and
//! never under a lock, because a page fault may occur anywhere in the kernel. Neighbour: `frames`.

use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use abi::limits::WINDOW_BYTES;
use abi::stack;
use x86_64::instructions::tlb;
use x86_64::{PhysAddr, VirtAddr};

use crate::frames::{self, FRAME_BYTES, For};
use crate::processors;

const PRESENT: u64 = 1;
const WRITABLE: u64 = 1 << 1;
const WRITE_THROUGH: u64 = 1 << 3;
const UNCACHED: u64 = 1 << 4;
const LARGE: u64 = 1 << 7;
const NO_EXECUTE: u64 = 1 << 63;
const ADDRESS: u64 = 0x000f_ffff_ffff_f000;
/// Bits of an entry that points to a table: the last level determines the access rights.
const TABLE: u64 = PRESENT | WRITABLE;

/// Start of the stacks.
pub(crate) const STACKS_BASE: usize = 0x1000_0000_0000;
/// Size of the stacks' range: 65,536 of the usual size, and the larger ones.
pub(crate) const STACKS_BYTES: usize = stack::range_bytes(65_536);
/// Start of the kernel's heap.
const HEAP_BASE: usize = 0x2000_0000_0000;
const HEAP_MAX_BYTES: usize = 64 << 30;
/// Start of the windows of programs: where a process of Linux has nothing, so that a recording can be replayed in one.
pub(crate) const WINDOWS_BASE: usize = 0x3000_0000_0000;
/// Size of their range: 4,096 windows.
pub(crate) const WINDOWS_BYTES: usize = 4096 * WINDOW_BYTES;
/// Start of the pages, one per processor, through which image pages are written.
const WINDOW_BASE: usize = 0x2800_0000_0000;

/// Access rights of a page.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Read.
    Read,
    /// Read and write.
    Write,
    /// Read and execute.
    Execute,
    /// Read and write, registers of a device: uncached, strongly ordered.
    Device,
}

impl Access {
    fn bits(self) -> u64 {
        PRESENT
            | match self {
                Access::Read => NO_EXECUTE,
                Access::Write => WRITABLE | NO_EXECUTE,
                Access::Execute => 0,
                Access::Device => WRITABLE | NO_EXECUTE | UNCACHED | WRITE_THROUGH,
            }
    }
}

/// Page sizes in use.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageSize {
    /// 4 KiB only: SIP-Page in the papers.
    Small,
    /// Up to 2 MiB.
    Large,
    /// Up to 1 GiB.
    Huge,
}

impl PageSize {
    /// Returns the largest that this processor supports.
    pub(crate) fn largest() -> Self {
        let features = core::arch::x86_64::__cpuid(0x8000_0001).edx;
        if features >> 26 & 1 == 1 { Self::Huge } else { Self::Large }
    }

    fn bytes(self) -> usize {
        match self {
            Self::Small => 1 << 12,
            Self::Large => 1 << 21,
            Self::Huge => 1 << 30,
        }
    }
}

/// There is no frame for a page or a page table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NoFrame;

pub(crate) type Table = [AtomicU64; 512];

#[repr(align(4096))]
pub(crate) struct Root(Table);

/// The top-level table. In the kernel's own memory, below 4 GiB, where starting processors can load it.
pub(crate) static ROOT: Root = Root([const { AtomicU64::new(0) }; 512]);
static HEAP_BYTES: AtomicUsize = AtomicUsize::new(0);
static HEAP_GROWS: AtomicBool = AtomicBool::new(false);

/// Returns the physical address of the tables.
pub(crate) fn root() -> u64 {
    ptr::from_ref(&ROOT).addr() as u64
}

/// Loads the tables on this processor.
///
/// # Safety
/// They map the running code, its stack and all that it refers to, as these were mapped before.
pub(crate) unsafe fn activate() {
    let frame = x86_64::structures::paging::PhysFrame::containing_address(PhysAddr::new(root()));
    // SAFETY: passed on to the caller.
    unsafe { x86_64::registers::control::Cr3::write(frame, x86_64::registers::control::Cr3Flags::empty()) };
}

/// Returns the table that an entry points to.
pub(crate) fn table(entry: u64) -> &'static Table {
    // SAFETY: an entry that points to a table holds the address of a frame that `descend` made a table, or of
    // one of the tables in `ROOT`, which are never freed; or of one of a domain, which frees it when nothing refers to
    // it. Frames are identity-mapped.
    unsafe { &*ptr::with_exposed_provenance((entry & ADDRESS) as usize) }
}

/// Returns the table that an entry points to, allocated if there is none; `None` for an entry of a large page.
fn descend(entry: &AtomicU64, who: For) -> Result<Option<&'static Table>, NoFrame> {
    let value = entry.load(Ordering::Acquire);
    if value & LARGE != 0 {
        return Ok(None);
    }
    if value != 0 {
        return Ok(Some(table(value)));
    }
    let frame = frames::take(who).ok_or(NoFrame)?;
    match entry.compare_exchange(0, frame as u64 | TABLE, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => Ok(Some(table(frame as u64))),
        Err(other) => {
            // SAFETY: the frame was allocated here and has not been published.
            unsafe { frames::give(frame) };
            Ok((other & LARGE == 0).then(|| table(other)))
        }
    }
}

/// Returns the index of an address in a table of a level; 0 is the last.
pub(crate) fn index(address: usize, level: u32) -> usize {
    address >> (12 + 9 * level) & 511
}

/// Returns the last-level entry of an address, allocating tables on the way.
fn entry_of(address: usize) -> Result<Option<&'static AtomicU64>, NoFrame> {
    Ok(last_table(address, For::Kernel)?.map(|table| &table[index(address, 0)]))
}

/// Returns the last-level table of an address, allocating tables on the way; `None` in a large page.
fn last_table(address: usize, who: For) -> Result<Option<&'static Table>, NoFrame> {
    let mut table = &ROOT.0;
    for level in [3, 2, 1] {
        match descend(&table[index(address, level)], who)? {
            Some(next) => table = next,
            None => return Ok(None),
        }
    }
    Ok(Some(table))
}

/// Returns the last-level entry of an address, if there are tables for it.
fn existing_entry(address: usize) -> Option<&'static AtomicU64> {
    let mut table_here = &ROOT.0;
    for level in [3, 2, 1] {
        let value = table_here[index(address, level)].load(Ordering::Acquire);
        if value & PRESENT == 0 || value & LARGE != 0 {
            return None;
        }
        table_here = table(value);
    }
    Some(&table_here[index(address, 0)])
}

/// Identity-maps memory, with the largest pages that fit and that `largest` allows. Existing
/// mappings are kept.
pub(crate) fn map_identity(start: u64, end: u64, access: Access, largest: PageSize) -> Result<(), NoFrame> {
    let mut address = start as usize;
    let end = end as usize;
    while address < end {
        let fits = |size: PageSize| {
            size.bytes() <= largest.bytes() && address.is_multiple_of(size.bytes()) && end - address >= size.bytes()
        };
        let (size, level) = match () {
            () if fits(PageSize::Huge) => (PageSize::Huge, 2),
            () if fits(PageSize::Large) => (PageSize::Large, 1),
            () => (PageSize::Small, 0),
        };
        set_identity(address, access.bits(), level)?;
        address += size.bytes();
    }
    Ok(())
}

fn set_identity(address: usize, bits: u64, level: u32) -> Result<(), NoFrame> {
    let mut table = &ROOT.0;
    for upper in (level + 1..=3).rev() {
        match descend(&table[index(address, upper)], For::Kernel)? {
            Some(next) => table = next,
            None => return Ok(()),
        }
    }
    let large = if level > 0 { LARGE } else { 0 };
    // An entry in use keeps its mapping.
    let _ = table[index(address, level)].compare_exchange(
        0,
        address as u64 | bits | large,
        Ordering::AcqRel,
        Ordering::Acquire,
    );
    Ok(())
}

/// Unmaps a range of 4 KiB pages, on this processor.
pub(crate) fn unmap_identity(start: usize, end: usize) {
    for address in (start..end).step_by(FRAME_BYTES) {
        if let Some(entry) = existing_entry(address) {
            entry.store(0, Ordering::Release);
            tlb::flush(VirtAddr::new(address as u64));
        }
    }
}

/// Returns whether an address may get a stack page: it is in a stack, above its guard.
pub(crate) fn is_stack(address: usize) -> bool {
    address.wrapping_sub(STACKS_BASE) < STACKS_BYTES && stack::is_usable(address)
}

/// Maps a zeroed stack page. Another processor may do the same concurrently.
pub(crate) fn grow_stack(address: usize, who: For) -> Result<(), NoFrame> {
    map_fresh(address & !(FRAME_BYTES - 1), who)
}

fn map_fresh(page: usize, who: For) -> Result<(), NoFrame> {
    let Some(entry) = entry_of(page)? else { return Ok(()) };
    if entry.load(Ordering::Acquire) != 0 {
        return Ok(());
    }
    let frame = frames::take(who).ok_or(NoFrame)?;
    let value = frame as u64 | Access::Write.bits();
    if entry.compare_exchange(0, value, Ordering::AcqRel, Ordering::Acquire).is_err() {
        // SAFETY: the frame was allocated here and has not been published.
        unsafe { frames::give(frame) };
    }
    Ok(())
}

/// Returns the frame behind a page of a stack.
pub(crate) fn frame_of(page: usize) -> Option<usize> {
    let value = existing_entry(page)?.load(Ordering::Acquire);
    (value & PRESENT != 0).then_some((value & ADDRESS) as usize)
}

/// Returns the bytes of frames behind pages of stacks.
pub(crate) fn stack_in_use(address: usize, bytes: usize) -> usize {
    let pages = (address..address + bytes).step_by(FRAME_BYTES);
    let is_there = |&page: &usize| existing_entry(page).is_some_and(|entry| entry.load(Ordering::Relaxed) != 0);
    pages.filter(is_there).count() * FRAME_BYTES
}

/// Frees the frames behind pages of stacks, after a TLB shootdown on all processors.
pub(crate) fn shrink_stack(address: usize, bytes: usize) {
    /// Maximum frames collected before a TLB shootdown.
    const BATCH: usize = 64;
    let mut gone = [0; BATCH];
    let mut count = 0;
    for page in (address..address + bytes).step_by(FRAME_BYTES) {
        let value = existing_entry(page).map_or(0, |entry| entry.swap(0, Ordering::AcqRel));
        if value != 0 {
            tlb::flush(VirtAddr::new(page as u64));
            gone[count] = (value & ADDRESS) as usize;
            count += 1;
        }
        if count == BATCH {
            give_forgotten(&gone);
            count = 0;
        }
    }
    give_forgotten(&gone[..count]);
}

fn give_forgotten(frames_gone: &[usize]) {
    if frames_gone.is_empty() {
        return;
    }
    processors::forget_translations();
    for &frame in frames_gone {
        // SAFETY: it came from `take`, its entry is cleared, and no TLB holds it any more.
        unsafe { frames::give(frame) };
    }
}

/// Maps pages of memory at those of a window, whose owner changes nothing else in it meanwhile. All or nothing, but for
/// tables.
pub(crate) fn map_window(address: usize, memory: usize, bytes: usize) -> Result<(), NoFrame> {
    const SPAN: usize = 512 * FRAME_BYTES;
    let end = address + bytes;
    for page in (address & !(SPAN - 1)..end).step_by(SPAN) {
        last_table(page, For::Sip)?;
    }
    for page in (address..end).step_by(FRAME_BYTES) {
        if let Some(entry) = existing_entry(page) {
            entry.store((memory + (page - address)) as u64 | Access::Write.bits(), Ordering::Release);
        }
    }
    Ok(())
}

/// Unmaps all of a window, and frees its tables after a TLB shootdown on all processors. A window is whole tables of the
/// second level, and its owner maps nothing in it meanwhile.
pub(crate) fn release_window(address: usize) {
    const SPAN: usize = 1 << 30;
    const _: () = assert!(WINDOW_BYTES.is_multiple_of(SPAN) && WINDOW_BYTES / SPAN <= 512);
    let upper = ROOT.0[index(address, 3)].load(Ordering::Acquire);
    if upper & PRESENT == 0 {
        return;
    }
    let first = index(address, 2);
    let gone: [u64; WINDOW_BYTES / SPAN] =
        core::array::from_fn(|number| table(upper)[first + number].swap(0, Ordering::AcqRel));
    tlb::flush_all();
    processors::forget_translations();
    for middle in gone.into_iter().filter(|entry| entry & PRESENT != 0) {
        let last = table(middle).iter().map(|entry| entry.load(Ordering::Acquire));
        for entry in last.filter(|entry| entry & PRESENT != 0).chain([middle]) {
            // SAFETY: a table that `descend` took for this window alone; no entry leads to it, and no TLB holds one.
            unsafe { frames::give((entry & ADDRESS) as usize) };
        }
    }
}

/// Grows the kernel's heap by at least `bytes`; returns start and length of the new range, which follows the last one.
pub(crate) fn grow_heap(bytes: usize) -> Option<(usize, usize)> {
    let wanted = bytes.checked_next_multiple_of(FRAME_BYTES)?;
    while HEAP_GROWS.swap(true, Ordering::Acquire) {
        core::hint::spin_loop();
    }
    let used = HEAP_BYTES.load(Ordering::Relaxed);
    let mut grown = None;
    if wanted <= HEAP_MAX_BYTES - used {
        let start = HEAP_BASE + used;
        let mut pages = (start..start + wanted).step_by(FRAME_BYTES);
        // Pages that were mapped before frames ran out are used by the next, smaller growth.
        if pages.all(|page| map_fresh(page, For::Kernel).is_ok()) {
            HEAP_BYTES.store(used + wanted, Ordering::Relaxed);
            grown = Some((start, wanted));
        }
    }
    HEAP_GROWS.store(false, Ordering::Release);
    grown
}

/// Identity-maps one page of an image, containing `bytes` and then zeroes. Fails if it is mapped
/// already.
///
/// # Safety
/// The page is memory of the image arena without another user. The caller is not migrated to another
/// processor meanwhile.
pub(crate) unsafe fn map_image_page(page: usize, bytes: &[u8], access: Access, number: usize) -> Result<(), NoFrame> {
    let entry = entry_of(page)?.ok_or(NoFrame)?;
    if entry.load(Ordering::Acquire) != 0 {
        return Err(NoFrame);
    }
    let window = WINDOW_BASE + number * FRAME_BYTES;
    let window_entry = entry_of(window)?.ok_or(NoFrame)?;
    window_entry.store(page as u64 | Access::Write.bits(), Ordering::Release);
    let place = ptr::with_exposed_provenance_mut::<u8>(window);
    // SAFETY: the window maps the page for now, on this processor alone, and `bytes` is not larger
    // than a page.
    unsafe {
        ptr::write_bytes(place.cast::<u64>(), 0, FRAME_BYTES / 8);
        ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len().min(FRAME_BYTES));
    }
    window_entry.store(0, Ordering::Release);
    tlb::flush(VirtAddr::new(window as u64));
    entry.store(page as u64 | access.bits(), Ordering::Release);
    Ok(())
}

/// Identity-maps one page writable; for a range of [`reserve_small`].
pub(crate) fn map_frame(page: usize) {
    if let Some(entry) = existing_entry(page) {
        entry.store(page as u64 | Access::Write.bits(), Ordering::Release);
    }
}

/// Allocates last-level page tables for an empty range, so that its pages can be mapped one by one.
pub(crate) fn reserve_small(start: u64, end: u64) -> Result<(), NoFrame> {
    for address in (start as usize..end as usize).step_by(PageSize::Large.bytes()) {
        entry_of(address)?;
    }
    Ok(())
}
