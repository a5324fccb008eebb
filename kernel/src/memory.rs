//! Memory: stack slots, pages of SIPs, and room for exchange-heap blocks.
//!
//! Pages and exchange blocks come from one arena. Free memory always reads as zero: it is cleared when
//! it is freed, large runs by giving them back to the machine. Locks: stacks; small exchange blocks,
//! then the arena.

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
/// Memory is low when less than one part of so many of the pages is free.
const LOW_PART: usize = 32;
/// Memory is low when fewer pages than this are left for stacks and the kernel's own objects: enough for
/// the kernel to end every SIP of a large tree.
const LOW_FRAMES: usize = 1024;
/// What is cleared at once when memory that was never used before is taken.
const STRETCH_BYTES: usize = 256 * 1024;

struct Stacks {
    warm: Vec<usize>,
    cold: Vec<usize>,
    made: usize,
}

/// Free room for small exchange blocks, by class.
type Small = [Vec<usize>; SMALL_CLASSES];

struct Memory {
    runs: FrameAllocator<ORDERS>,
    /// Where the machine's memory is not clear: for each stretch of [`STRETCH_BYTES`], whether it has
    /// been cleared.
    cleared: Option<Vec<bool>>,
}

impl Memory {
    /// A run of pages; its offset in pages.
    fn allocate(&mut self, count: usize) -> Option<usize> {
        let first = self.runs.alloc(count)?;
        RUNS_USED.fetch_add(count.next_power_of_two(), Ordering::Relaxed);
        if let Some(cleared) = &mut self.cleared {
            let base = machine().layout().memory.base;
            let end = (first + count.next_power_of_two()) * PAGE_BYTES;
            for stretch in first * PAGE_BYTES / STRETCH_BYTES..end.div_ceil(STRETCH_BYTES) {
                if cleared.get_mut(stretch).is_some_and(|cleared| !core::mem::replace(cleared, true)) {
                    let start = stretch * STRETCH_BYTES;
                    let bytes = STRETCH_BYTES.min(machine().layout().memory.bytes - start);
                    machine().decommit(base + start, bytes);
                }
            }
        }
        Some(first)
    }
}

static STACKS: SpinLock<Stacks> = SpinLock::new(Stacks { warm: Vec::new(), cold: Vec::new(), made: 0 });
static MEMORY: SpinLock<Option<Memory>> = SpinLock::new(None);
static SMALL: SpinLock<Small> = SpinLock::new([const { Vec::new() }; SMALL_CLASSES]);
/// Pages taken out of the arena.
static RUNS_USED: AtomicUsize = AtomicUsize::new(0);
static PAGES_USED: AtomicUsize = AtomicUsize::new(0);
static EXCHANGE_USED: AtomicUsize = AtomicUsize::new(0);
static STACKS_USED: AtomicUsize = AtomicUsize::new(0);

/// Takes the machine's arenas into use.
pub fn start() {
    let layout = machine().layout();
    let mut runs = FrameAllocator::new();
    runs.add_frame(0, layout.memory.bytes / PAGE_BYTES);
    let stretches = layout.memory.bytes.div_ceil(STRETCH_BYTES);
    let cleared = (!layout.memory_is_clear).then(|| alloc::vec![false; stretches]);
    *MEMORY.lock() = Some(Memory { runs, cleared });
}

fn allocate_run(count: usize) -> Option<usize> {
    let first = MEMORY.lock().as_mut()?.allocate(count)?;
    Some(machine().layout().memory.base + first * PAGE_BYTES)
}

fn free_run(address: usize, count: usize) {
    let first = (address - machine().layout().memory.base) / PAGE_BYTES;
    if let Some(memory) = MEMORY.lock().as_mut() {
        RUNS_USED.fetch_sub(count.next_power_of_two(), Ordering::Relaxed);
        memory.runs.dealloc(first, count);
    }
}

/// Pages, exchange bytes and stacks in use.
pub fn usage() -> (usize, usize, usize) {
    let used = |counter: &AtomicUsize| counter.load(Ordering::Relaxed);
    (used(&PAGES_USED), used(&EXCHANGE_USED), used(&STACKS_USED))
}

/// Bytes of the machine's memory that are not free; none where another operating system keeps that account.
pub fn in_use_bytes() -> Option<u64> {
    let arena = (RUNS_USED.load(Ordering::Relaxed) * PAGE_BYTES) as u64;
    machine().memory_in_use().map(|others| others + arena)
}

/// Whether memory is so short that nothing new may be made for a SIP: what is left is for the kernel and
/// for SIPs that run.
pub fn is_low() -> bool {
    if machine().spare_frames() < LOW_FRAMES {
        return true;
    }
    let pages = machine().layout().memory.bytes / PAGE_BYTES;
    RUNS_USED.load(Ordering::Relaxed) > pages - pages / LOW_PART
}

/// A stack slot with its guard; its lowest address.
pub fn allocate_stack() -> Option<usize> {
    if is_low() {
        return None;
    }
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
    if stacks.warm.len() < WARM_STACKS && !is_low() {
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
    let address = allocate_run(count)?;
    PAGES_USED.fetch_add(count, Ordering::Relaxed);
    Some(address)
}

/// Takes pages back.
pub fn free_pages(address: usize, count: usize) {
    clear(address, count * PAGE_BYTES);
    PAGES_USED.fetch_sub(count, Ordering::Relaxed);
    free_run(address, count);
}

fn small_class(bytes: usize) -> Option<usize> {
    let class = bytes.next_power_of_two().trailing_zeros().saturating_sub(BLOCK_ALIGN.trailing_zeros()) as usize;
    (class < SMALL_CLASSES).then_some(class)
}

/// Zeroed room for a block; `bytes` is a multiple of 64.
pub fn allocate_exchange(bytes: usize) -> Option<usize> {
    let address = match small_class(bytes) {
        None => allocate_run(bytes.div_ceil(PAGE_BYTES))?,
        Some(class) => {
            let free = &mut SMALL.lock()[class];
            if free.is_empty() {
                let chunk = allocate_run(CHUNK_BYTES / PAGE_BYTES)?;
                let size = BLOCK_ALIGN << class;
                free.extend((0..CHUNK_BYTES / size).rev().map(|number| chunk + number * size));
            }
            free.pop()?
        }
    };
    EXCHANGE_USED.fetch_add(bytes, Ordering::Relaxed);
    Some(address)
}

/// Takes a block's room back.
pub fn free_exchange(address: usize, bytes: usize) {
    clear(address, bytes);
    EXCHANGE_USED.fetch_sub(bytes, Ordering::Relaxed);
    match small_class(bytes) {
        Some(class) => SMALL.lock()[class].push(address),
        None => free_run(address, bytes.div_ceil(PAGE_BYTES)),
    }
}

/// Gives back what is kept for speed alone: the memory behind free stacks, and chunks of which no block is in
/// use.
pub fn trim() {
    loop {
        let Some(slot) = STACKS.lock().warm.pop() else { break };
        machine().decommit(slot + STACK_GUARD_BYTES, STACK_SLOT_BYTES - STACK_GUARD_BYTES);
        STACKS.lock().cold.push(slot);
    }
    let base = machine().layout().memory.base;
    for class in 0..SMALL_CLASSES {
        let free = &mut SMALL.lock()[class];
        let blocks_in_chunk = CHUNK_BYTES / (BLOCK_ALIGN << class);
        // A run of pages is aligned to its size, so a block's address tells its chunk.
        let chunk_of = |address: usize| address - (address - base) % CHUNK_BYTES;
        free.sort_unstable();
        let (mut kept, mut next) = (0, 0);
        while let Some(&first) = free.get(next) {
            let chunk = chunk_of(first);
            let count = free[next..].iter().take_while(|&&address| chunk_of(address) == chunk).count();
            if count == blocks_in_chunk {
                free_run(chunk, CHUNK_BYTES / PAGE_BYTES);
            } else {
                free.copy_within(next..next + count, kept);
                kept += count;
            }
            next += count;
        }
        free.truncate(kept);
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

/// A copy of the first `count` bytes of a block that is in the kernel's hands, if they are there and the kernel has
/// room for them.
pub fn copy_of_block(address: usize, size: usize, count: usize) -> Option<Vec<u8>> {
    let mut copy = Vec::new();
    if count > size || is_low() || copy.try_reserve_exact(count).is_err() {
        return None;
    }
    // SAFETY: the block is `size` bytes at `address` in the exchange arena, and as it is in the kernel's hands nobody
    // writes to it.
    copy.extend_from_slice(unsafe { core::slice::from_raw_parts(address as *const u8, count) });
    Some(copy)
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
