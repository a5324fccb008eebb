//! Memory: stack slots, pages of SIPs, and room for exchange-heap blocks.
//!
//! Free pages and free exchange memory always read as zero: they are cleared when they are freed,
//! large runs by giving them back to the machine. Locks: one for each kind, none held over another.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering};

use abi::limits::{BLOCK_ALIGN, PAGE_BYTES, STACK_GUARD_BYTES, STACK_SLOT_BYTES};
use buddy_system_allocator::FrameAllocator;

use crate::lock::SpinLock;
use crate::machine::machine;

/// Free stacks that keep their memory for the next thread.
const WARM_STACKS: usize = 256;
/// Runs of at least this many bytes are given back to the machine when freed rather than cleared.
const DECOMMIT_BYTES: usize = 128 * 1024;
/// Sizes of exchange blocks that are carved from chunks: 64 bytes to 2 KiB.
const SMALL_CLASSES: usize = 6;
const CHUNK_BYTES: usize = 16 * 1024;
const ORDERS: usize = 32;

struct Stacks {
    warm: Vec<usize>,
    cold: Vec<usize>,
    made: usize,
}

struct Exchange {
    runs: FrameAllocator<ORDERS>,
    small: [Vec<usize>; SMALL_CLASSES],
}

static STACKS: SpinLock<Stacks> = SpinLock::new(Stacks { warm: Vec::new(), cold: Vec::new(), made: 0 });
static PAGES: SpinLock<Option<FrameAllocator<ORDERS>>> = SpinLock::new(None);
static EXCHANGE: SpinLock<Option<Exchange>> = SpinLock::new(None);
static PAGES_USED: AtomicUsize = AtomicUsize::new(0);
static EXCHANGE_USED: AtomicUsize = AtomicUsize::new(0);
static STACKS_USED: AtomicUsize = AtomicUsize::new(0);

/// Takes the machine's arenas into use.
pub fn start() {
    let layout = machine().layout();
    let mut pages = FrameAllocator::new();
    pages.add_frame(0, layout.pages.bytes / PAGE_BYTES);
    *PAGES.lock() = Some(pages);
    let mut runs = FrameAllocator::new();
    runs.add_frame(0, layout.exchange.bytes / PAGE_BYTES);
    *EXCHANGE.lock() = Some(Exchange { runs, small: Default::default() });
}

/// Pages, exchange bytes and stacks in use.
pub fn usage() -> (usize, usize, usize) {
    let used = |counter: &AtomicUsize| counter.load(Ordering::Relaxed);
    (used(&PAGES_USED), used(&EXCHANGE_USED), used(&STACKS_USED))
}

/// A stack slot with its guard; its lowest address.
pub fn allocate_stack() -> Option<usize> {
    let mut stacks = STACKS.lock();
    let recycled = stacks.warm.pop().or_else(|| stacks.cold.pop());
    STACKS_USED.fetch_add(1, Ordering::Relaxed);
    if recycled.is_some() {
        return recycled;
    }
    let arena = machine().layout().stacks;
    let offset = stacks.made * STACK_SLOT_BYTES;
    if offset + STACK_SLOT_BYTES > arena.bytes {
        STACKS_USED.fetch_sub(1, Ordering::Relaxed);
        return None;
    }
    stacks.made += 1;
    // Room for every slot on either list, so that burying a thread needs no memory.
    let made = stacks.made;
    let cold = made.saturating_sub(stacks.cold.len());
    stacks.cold.reserve(cold);
    if stacks.warm.capacity() < WARM_STACKS {
        stacks.warm.reserve(WARM_STACKS);
    }
    drop(stacks);
    let slot = arena.base + offset;
    machine().guard(slot, STACK_GUARD_BYTES);
    Some(slot)
}

/// Takes a slot back that no processor stands on.
pub fn free_stack(slot: usize) {
    STACKS_USED.fetch_sub(1, Ordering::Relaxed);
    let mut stacks = STACKS.lock();
    if stacks.warm.len() < WARM_STACKS {
        stacks.warm.push(slot);
        return;
    }
    drop(stacks);
    machine().decommit(slot + STACK_GUARD_BYTES, STACK_SLOT_BYTES - STACK_GUARD_BYTES);
    STACKS.lock().cold.push(slot);
}

/// Fills the thread block at the top of a stack slot that nobody uses yet.
pub fn clear_thread_block(address: usize, abi_table: usize, thread: u64) {
    let block = abi::ThreadBlock {
        message: [0; abi::limits::MESSAGE_WORDS],
        abi_table: abi_table as u64,
        thread,
        runtime: [0; abi::RUNTIME_WORDS],
        reserved: [0; 128 - 2 - abi::limits::MESSAGE_WORDS - abi::RUNTIME_WORDS],
    };
    // SAFETY: `address` is the last KiB of an allocated stack slot, which no thread uses yet.
    unsafe { core::ptr::write(address as *mut abi::ThreadBlock, block) };
}

/// Contiguous zeroed pages; the first address.
pub fn allocate_pages(count: usize) -> Option<usize> {
    let first = PAGES.lock().as_mut()?.alloc(count)?;
    PAGES_USED.fetch_add(count, Ordering::Relaxed);
    Some(machine().layout().pages.base + first * PAGE_BYTES)
}

/// Takes pages back.
pub fn free_pages(address: usize, count: usize) {
    clear(address, count * PAGE_BYTES);
    PAGES_USED.fetch_sub(count, Ordering::Relaxed);
    let first = (address - machine().layout().pages.base) / PAGE_BYTES;
    if let Some(pages) = PAGES.lock().as_mut() {
        pages.dealloc(first, count);
    }
}

fn small_class(bytes: usize) -> Option<usize> {
    let class = bytes.next_power_of_two().trailing_zeros().saturating_sub(BLOCK_ALIGN.trailing_zeros()) as usize;
    (class < SMALL_CLASSES).then_some(class)
}

/// Zeroed room for a block; `bytes` is a multiple of 64.
pub fn allocate_exchange(bytes: usize) -> Option<usize> {
    let base = machine().layout().exchange.base;
    let mut guard = EXCHANGE.lock();
    let exchange = guard.as_mut()?;
    let address = match small_class(bytes) {
        None => base + exchange.runs.alloc(bytes.div_ceil(PAGE_BYTES))? * PAGE_BYTES,
        Some(class) => {
            if exchange.small[class].is_empty() {
                let chunk = base + exchange.runs.alloc(CHUNK_BYTES / PAGE_BYTES)? * PAGE_BYTES;
                let size = BLOCK_ALIGN << class;
                exchange.small[class].extend((0..CHUNK_BYTES / size).rev().map(|number| chunk + number * size));
            }
            exchange.small[class].pop()?
        }
    };
    EXCHANGE_USED.fetch_add(bytes, Ordering::Relaxed);
    Some(address)
}

/// Takes a block's room back.
pub fn free_exchange(address: usize, bytes: usize) {
    clear(address, bytes);
    EXCHANGE_USED.fetch_sub(bytes, Ordering::Relaxed);
    let base = machine().layout().exchange.base;
    let mut guard = EXCHANGE.lock();
    let Some(exchange) = guard.as_mut() else { return };
    match small_class(bytes) {
        Some(class) => exchange.small[class].push(address),
        None => exchange.runs.dealloc((address - base) / PAGE_BYTES, bytes.div_ceil(PAGE_BYTES)),
    }
}

fn clear(address: usize, bytes: usize) {
    if bytes >= DECOMMIT_BYTES {
        machine().decommit(address, bytes.next_multiple_of(PAGE_BYTES));
    } else {
        // SAFETY: the memory lies in an arena, was allocated, and its owner has just given it up; no
        // SIP can still reach it, because nobody but the owner ever could.
        unsafe { core::ptr::write_bytes(address as *mut u8, 0, bytes) };
    }
}

/// Copies bytes into a block that the kernel has just made or owns.
pub fn write_block(address: usize, size: usize, bytes: &[u8]) {
    let count = bytes.len().min(size);
    // SAFETY: the block is `size` bytes at `address` in the exchange arena and in the kernel's hands.
    unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), address as *mut u8, count) };
}

mod sealed {
    /// A record of `#[repr(C)]` whose fields are u64s and byte arrays of a multiple of 8: no padding.
    pub trait Record: Copy {}
    impl Record for abi::ProcessRecord {}
    impl Record for abi::ThreadRecord {}
    impl Record for abi::ChannelRecord {}
    impl Record for abi::CounterRecord {}
    impl Record for abi::TraceRecord {}
}

/// Writes as many records as fit into a block that is in the kernel's hands.
pub fn write_records<R: sealed::Record>(address: usize, size: usize, records: &[R]) {
    let count = records.len().min(size / size_of::<R>());
    // SAFETY: as for `write_block`; `count` records lie within `size`, blocks are aligned to 64, and a
    // Record has no padding and any bits are valid for it.
    unsafe { core::ptr::copy_nonoverlapping(records.as_ptr(), address as *mut R, count) };
}
