//! Memory: stack slots, pages of SIPs, and storage of exchange-heap blocks.
//!
//! Pages and exchange blocks come from one arena. Free memory always reads as zero: it is cleared when freed, large
//! runs by decommitting them. Free runs of pages are in [`runs`], storage of small blocks in [`small`]. Clearing goes in
//! pieces with no lock held, and the caller may be preempted between two. What a SIP in a domain owns is mapped in its
//! space, and unmapped before it is cleared. Locks: stacks; the arena.

mod runs;
mod small;
pub mod windows;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use abi::limits::{PAGE_BYTES, STACK_GUARD_BYTES, STACK_SLOT_BYTES};
use abi::stack;
use hal_api::DomainAccess;

use crate::lock::{AtomicRef, SpinGuard, SpinLock};
use crate::machine::machine;
use crate::slab::Slot;
use crate::space::{SPARE_STACKS, SpaceRef};
use crate::{arch, heap, preempt, slab};

use self::runs::Runs;

pub use sealed::Record;
pub use small::Chunk;

/// Maximum free stacks of the usual size that stay committed for the next thread.
const WARM_STACKS: usize = 256;
/// Pieces of this many bytes, at multiples of it, are decommitted when freed rather than cleared: huge pages of the host.
/// A part of one would split it into small pages, which it then stays; and clearing costs no more than the faults when the
/// pages are used again.
const PIECE_BYTES: usize = 2 << 20;
/// Runs of at least this many bytes are cleared in steps, between which others may run.
const LONG_BYTES: usize = 128 * 1024;
/// Bytes copied out of a block between two preemption points.
const COPY_BYTES: usize = 256 * 1024;
/// Memory is low when less than 1/`LOW_PART` of the pages is free.
const LOW_PART: usize = 32;
/// Memory is low when fewer frames than this are left for stacks and the kernel's own objects. They suffice for the
/// kernel to end every SIP of a large tree.
const LOW_FRAMES: usize = 1024;
/// The kernel's heap may take 1/`HEAP_PART` of the arena, or a fixed number of bytes if that is more.
const HEAP_PART: usize = 2;
/// Beside slabs the heap may take 1/`HEAP_FRAMES_PART` of the frames.
const HEAP_FRAMES_PART: usize = 4;
const HEAP_MIN_BYTES: usize = 16 << 20;
/// Bytes cleared at once on first use of memory.
const STRETCH_BYTES: usize = 256 * 1024;

struct Stacks {
    warm: Vec<usize>,
    /// Those without memory, by size.
    cold: [Vec<usize>; stack::SIZES],
    made: [usize; stack::SIZES],
}

/// State of a stretch of memory that was not clear at boot.
mod stretch {
    pub const UNTOUCHED: u8 = 0;
    pub const BEING_CLEARED: u8 = 1;
    pub const CLEAR: u8 = 2;
}

static STACKS: SpinLock<Stacks> =
    SpinLock::new(Stacks { warm: Vec::new(), cold: [const { Vec::new() }; stack::SIZES], made: [0; stack::SIZES] });
static RUNS: SpinLock<Option<Runs>> = SpinLock::new(None);
/// For memory that is not clear at boot: the state of each stretch of [`STRETCH_BYTES`].
static STRETCHES: AtomicRef<Vec<AtomicU8>> = AtomicRef::none();
/// Pages of the arena.
static ARENA_PAGES: AtomicUsize = AtomicUsize::new(0);
/// Pages allocated from the arena.
static RUNS_USED: AtomicUsize = AtomicUsize::new(0);
static PAGES_USED: AtomicUsize = AtomicUsize::new(0);
static EXCHANGE_USED: AtomicUsize = AtomicUsize::new(0);
static STACKS_USED: AtomicUsize = AtomicUsize::new(0);
/// Memory is low when the kernel's heap beside slabs exceeds this many bytes.
static HEAP_LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Limits growth of the heap from its current size: to a part of the machine's frames, because a heap returns none and
/// stacks need them too, or to a part of the arena where the machine counts no frames.
pub fn bound_heap() {
    let room = match machine().spare_frames() {
        usize::MAX => (machine().layout().memory.bytes / HEAP_PART).max(HEAP_MIN_BYTES),
        frames => frames * PAGE_BYTES / HEAP_FRAMES_PART,
    };
    HEAP_LIMIT.store(heap_beside_slabs().saturating_add(room), Ordering::Relaxed);
}

/// Initializes the machine's arenas.
pub fn start() {
    let layout = machine().layout();
    ARENA_PAGES.store(layout.memory.bytes / PAGE_BYTES, Ordering::Relaxed);
    *RUNS.lock() = Some(Runs::new(layout.memory.bytes / PAGE_BYTES));
    if !layout.memory_is_clear {
        let stretches = layout.memory.bytes.div_ceil(STRETCH_BYTES);
        let untouched = (0..stretches).map(|_| AtomicU8::new(stretch::UNTOUCHED)).collect();
        STRETCHES.set(Some(Box::leak(Box::new(untouched))));
    }
}

/// Allocates a run of pages that read as zero. The caller holds no lock and may be preempted.
fn allocate_run(count: usize) -> Option<usize> {
    if preempt::is_observed() && machine().refuses_memory() {
        return None;
    }
    let first = RUNS.lock().as_mut()?.take(count)?;
    prepare(first, count);
    Some(machine().layout().memory.base + first * PAGE_BYTES)
}

/// Counts pages that were just taken, and clears those that were never used. The caller may be preempted.
fn prepare(first: usize, count: usize) {
    RUNS_USED.fetch_add(count, Ordering::Relaxed);
    if let Some(stretches) = STRETCHES.get() {
        let (start, end) = (first * PAGE_BYTES, (first + count) * PAGE_BYTES);
        for number in start / STRETCH_BYTES..end.div_ceil(STRETCH_BYTES) {
            if let Some(state) = stretches.get(number)
                && state.load(Ordering::Acquire) != stretch::CLEAR
            {
                clear_stretch(state, number);
                preempt::pause();
            }
        }
    }
}

/// Clears a stretch that was never used, or waits for the processor that is clearing it. Some of its pages may belong
/// to another owner, which waits likewise before using them.
fn clear_stretch(state: &AtomicU8, number: usize) {
    let claimed =
        state.compare_exchange(stretch::UNTOUCHED, stretch::BEING_CLEARED, Ordering::Acquire, Ordering::Acquire);
    if claimed.is_ok() {
        let memory = machine().layout().memory;
        let start = number * STRETCH_BYTES;
        machine().decommit(memory.base + start, STRETCH_BYTES.min(memory.bytes - start));
        state.store(stretch::CLEAR, Ordering::Release);
        return;
    }
    let mut spins = 0;
    while state.load(Ordering::Acquire) != stretch::CLEAR {
        spins += 1;
        machine().relax(spins);
    }
}

fn free_run(address: usize, count: usize) {
    let first = (address - machine().layout().memory.base) / PAGE_BYTES;
    if let Some(runs) = RUNS.lock().as_mut() {
        RUNS_USED.fetch_sub(count, Ordering::Relaxed);
        runs.give(first, count);
    }
}

/// Pages, exchange bytes and stacks in use.
pub fn usage() -> (usize, usize, usize) {
    let used = |counter: &AtomicUsize| counter.load(Ordering::Relaxed);
    (used(&PAGES_USED), used(&EXCHANGE_USED), used(&STACKS_USED))
}

/// Bytes allocated from the arena.
pub fn arena_in_use() -> usize {
    RUNS_USED.load(Ordering::Relaxed) * PAGE_BYTES
}

/// Bytes of the machine's memory in use; `None` where another operating system accounts for it.
pub fn in_use_bytes() -> Option<u64> {
    machine().memory_in_use().map(|others| others + arena_in_use() as u64)
}

/// Bytes of the heap that can be freed, excluding slabs.
fn heap_beside_slabs() -> usize {
    heap::in_use().saturating_sub(slab::all_bytes())
}

/// Whether memory is so short that no new object may be made for a SIP: the rest is for the kernel and running SIPs.
pub fn is_low() -> bool {
    if machine().spare_frames() < LOW_FRAMES || heap_beside_slabs() > HEAP_LIMIT.load(Ordering::Relaxed) {
        return true;
    }
    let pages = ARENA_PAGES.load(Ordering::Relaxed);
    RUNS_USED.load(Ordering::Relaxed) > pages - pages / LOW_PART
}

/// Allocates a stack of a size, with its guard, and returns the lowest address of its slot.
pub fn allocate_stack(size: usize) -> Option<usize> {
    if is_low() {
        return None;
    }
    let mut stacks = STACKS.lock();
    let warm = if size == 0 { stacks.warm.pop() } else { None };
    let recycled = warm.or_else(|| stacks.cold.get_mut(size)?.pop());
    STACKS_USED.fetch_add(1, Ordering::Relaxed);
    recycled.or_else(|| make_stack(stacks, size))
}

/// Allocates a stack for a thread in a domain, where its last page is mapped: one that a thread of the same space has
/// left, or one that reads as zero.
pub fn allocate_stack_in(space: SpaceRef, size: usize) -> Option<usize> {
    if is_low() {
        return None;
    }
    if size == 0
        && let Some(slot) = space.spare_stacks.lock().pop()
    {
        STACKS_USED.fetch_add(1, Ordering::Relaxed);
        return Some(slot);
    }
    let slot = allocate_clear_stack(size)?;
    let mapped = {
        let _stacks = space.spare_stacks.lock();
        space.map_stack(slot + STACK_SLOT_BYTES - 1)
    };
    if mapped.is_err() {
        STACKS_USED.fetch_sub(1, Ordering::Relaxed);
        free_clear_stack(slot);
        return None;
    }
    Some(slot)
}

fn allocate_clear_stack(size: usize) -> Option<usize> {
    let mut stacks = STACKS.lock();
    STACKS_USED.fetch_add(1, Ordering::Relaxed);
    if let Some(slot) = stacks.cold.get_mut(size)?.pop() {
        return Some(slot);
    }
    let warm = if size == 0 { stacks.warm.pop() } else { None };
    let Some(slot) = warm else { return make_stack(stacks, size) };
    drop(stacks);
    decommit_stack(slot);
    Some(slot)
}

/// Takes a slot that was never used. It counts as used already.
#[inline(never)]
fn make_stack(mut stacks: SpinGuard<'_, Stacks>, size: usize) -> Option<usize> {
    let arena = machine().layout().stacks;
    let offset = stack::slot_offset(size, stacks.made[size]);
    if offset + STACK_SLOT_BYTES > arena.bytes {
        STACKS_USED.fetch_sub(1, Ordering::Relaxed);
        return None;
    }
    stacks.made[size] += 1;
    // Capacity for every slot on either list, so that burying a thread does not allocate.
    let made = stacks.made[size];
    let cold = &mut stacks.cold[size];
    cold.reserve(made.saturating_sub(cold.len()));
    if stacks.warm.capacity() < WARM_STACKS {
        stacks.warm.reserve(WARM_STACKS);
    }
    drop(stacks);
    let slot = arena.base + offset;
    machine().guard(stack_start(slot), STACK_GUARD_BYTES);
    Some(slot)
}

/// Frees a stack slot that no processor is running on.
pub fn free_stack(slot: usize) {
    STACKS_USED.fetch_sub(1, Ordering::Relaxed);
    let mut stacks = STACKS.lock();
    if stack::size_at(slot) == 0 && stacks.warm.len() < WARM_STACKS && !is_low() {
        stacks.warm.push(slot);
        return;
    }
    drop(stacks);
    free_clear_stack(slot);
}

/// Frees a stack slot of a thread in a domain, which it does not enter any more; `stack` is 0 afterwards.
pub fn free_stack_in(space: SpaceRef, stack: &AtomicUsize) {
    STACKS_USED.fetch_sub(1, Ordering::Relaxed);
    let mut spare = space.spare_stacks.lock();
    let slot = stack.swap(0, Ordering::Relaxed);
    let is_kept = stack::size_at(slot) == 0
        && spare.len() < SPARE_STACKS
        && space.members() > 0
        && !is_low()
        && spare.try_reserve(1).is_ok();
    if is_kept {
        spare.push(slot);
        return;
    }
    drop(spare);
    unmap_stack(space, slot);
}

fn unmap_stack(space: SpaceRef, slot: usize) {
    let (start, bytes) = usable_stack(slot);
    space.unmap(start, bytes);
    free_clear_stack(slot);
}

/// Frees a stack slot that is mapped in no domain.
#[inline(never)]
fn free_clear_stack(slot: usize) {
    decommit_stack(slot);
    STACKS.lock().cold[stack::size_at(slot)].push(slot);
}

/// Frees what a space keeps for its next threads and blocks. A SIP is leaving it.
pub fn trim_space(space: SpaceRef) {
    small::trim(space);
    loop {
        let Some(slot) = space.spare_stacks.lock().pop() else { break };
        unmap_stack(space, slot);
        preempt::pause();
    }
}

fn decommit_stack(slot: usize) {
    let (start, bytes) = usable_stack(slot);
    machine().decommit(start, bytes);
}

/// The lowest address of the stack whose slot an address lies in.
#[inline(never)]
pub fn stack_start(address: usize) -> usize {
    stack::start(address)
}

/// The stack in a slot, above its guard: its lowest address and its bytes.
#[inline(never)]
pub fn usable_stack(slot: usize) -> (usize, usize) {
    (stack_start(slot) + STACK_GUARD_BYTES, stack::bytes_at(slot) - STACK_GUARD_BYTES)
}

/// Initializes the thread block at the top of an unused stack slot.
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

/// Allocates contiguous zeroed pages, mapped in a space, and returns the first address.
pub fn allocate_pages(count: usize, space: Option<SpaceRef>) -> Option<usize> {
    let address = allocate_run(count)?;
    if space.is_some_and(|space| space.map(address, count * PAGE_BYTES, DomainAccess::Write).is_err()) {
        free_run(address, count);
        return None;
    }
    PAGES_USED.fetch_add(count, Ordering::Relaxed);
    Some(address)
}

/// Adds zeroed pages right behind allocated ones, mapped in a space, if there are free ones; whether there were. The
/// caller may be preempted.
pub fn extend_pages(end: usize, more: usize, space: Option<SpaceRef>) -> bool {
    let first = (end - machine().layout().memory.base) / PAGE_BYTES;
    if is_low() || !RUNS.lock().as_mut().is_some_and(|runs| runs.extend(first, more)) {
        return false;
    }
    prepare(first, more);
    if space.is_some_and(|space| space.map(end, more * PAGE_BYTES, DomainAccess::Write).is_err()) {
        free_run(end, more);
        return false;
    }
    PAGES_USED.fetch_add(more, Ordering::Relaxed);
    true
}

/// Frees pages, mapped in a space.
pub fn free_pages(address: usize, count: usize, space: Option<SpaceRef>) {
    if let Some(space) = space {
        space.unmap(address, count * PAGE_BYTES);
    }
    clear(address, count * PAGE_BYTES);
    PAGES_USED.fetch_sub(count, Ordering::Relaxed);
    free_run(address, count);
}

/// Fills a page that every domain can read with these words, and zeroes; returns its address.
pub fn make_shared_page(words: &[u64]) -> Option<usize> {
    let address = allocate_run(1)?;
    for (index, &word) in words.iter().enumerate().take(PAGE_BYTES / size_of::<u64>()) {
        // SAFETY: the page was just allocated, and is not mapped in any domain yet.
        unsafe { (address as *mut u64).add(index).write(word) };
    }
    Some(address)
}

/// Storage of a block.
pub struct Room {
    /// Start address.
    pub address: usize,
    /// The chunk that contains it, if it is small.
    pub chunk: Option<&'static Slot<Chunk>>,
    /// The space that it is mapped in; of a small one, the chunk's.
    pub space: Option<SpaceRef>,
}

/// Bytes of the arena that a block of this size takes, or `None` on overflow.
#[inline(always)]
pub fn room_bytes(bytes: usize) -> Option<usize> {
    match small::class_of(bytes) {
        Some(class) => Some(small::bytes_of(class)),
        None => bytes.checked_next_multiple_of(PAGE_BYTES),
    }
}

/// Allocates storage for a block, zeroed but for what code in the space has written to it, in a space. The caller must
/// hold no lock.
pub fn allocate_exchange(bytes: usize, space: Option<SpaceRef>) -> Option<Room> {
    let room = match small::class_of(bytes) {
        None => {
            let room = Room { address: allocate_run(bytes.div_ceil(PAGE_BYTES))?, chunk: None, space: None };
            match space {
                Some(space) => map_room(room, bytes, space)?,
                None => room,
            }
        }
        Some(class) => {
            let (address, chunk) = small::allocate(class, space)?;
            Room { address, chunk: Some(chunk), space }
        }
    };
    EXCHANGE_USED.fetch_add(bytes, Ordering::Relaxed);
    Some(room)
}

#[cold]
fn map_room(mut room: Room, bytes: usize, space: SpaceRef) -> Option<Room> {
    if space.map(room.address, bytes, DomainAccess::Write).is_err() {
        free_run(room.address, bytes.div_ceil(PAGE_BYTES));
        return None;
    }
    room.space = Some(space.refer());
    Some(room)
}

/// Frees the storage of a block. The caller must hold no lock and may be preempted.
pub fn free_exchange(room: &Room, bytes: usize) {
    EXCHANGE_USED.fetch_sub(bytes, Ordering::Relaxed);
    match room.chunk {
        Some(chunk) => {
            clear(room.address, bytes);
            small::free(chunk, room.address);
        }
        None => {
            if let Some(space) = room.space {
                space.unmap(room.address, bytes);
                space.forget();
            }
            clear(room.address, bytes);
            free_run(room.address, bytes.div_ceil(PAGE_BYTES));
        }
    }
}

/// Moves the storage of a large block, which is mapped in `from`, to another space; all of it or, on failure, to the
/// kernel's own. The caller must hold no lock.
pub fn remap_exchange(
    address: usize,
    bytes: usize,
    from: Option<SpaceRef>,
    to: Option<SpaceRef>,
) -> Result<(), hal_api::MapError> {
    if let Some(from) = from {
        from.unmap(address, bytes);
        from.forget();
    }
    if let Some(to) = to {
        to.map(address, bytes, DomainAccess::Write)?;
        to.refer();
    }
    Ok(())
}

/// Copies the contents of a block, which code in a domain may be writing to, to new storage. The caller may be
/// preempted.
pub fn copy_exchange(from: usize, to: usize, bytes: usize) {
    // SAFETY: both are storage of blocks of at least `bytes` in the arena, in the kernel's hands, and do not overlap.
    unsafe { copy_in_pieces(from, to, bytes) };
}

/// Copies whole pages of a mapped image to newly allocated pages.
pub fn copy_image(from: usize, to: usize, bytes: usize) {
    // SAFETY: the image has so many bytes there, which nothing changes, and the pages are the caller's alone.
    unsafe { copy_in_pieces(from, to, bytes) };
}

/// Copies in pieces, between which the caller may be preempted.
///
/// # Safety
/// As for [`arch::copy_bytes`], until it returns.
unsafe fn copy_in_pieces(from: usize, to: usize, bytes: usize) {
    let mut done = 0;
    while done < bytes {
        let piece = COPY_BYTES.min(bytes - done);
        // SAFETY: the pieces lie within what the caller vouches for.
        unsafe { arch::copy_bytes(from + done, to + done, piece) };
        done += piece;
        preempt::pause();
    }
}

/// Releases caches: the memory behind free stacks.
pub fn trim() {
    loop {
        let Some(slot) = STACKS.lock().warm.pop() else { break };
        decommit_stack(slot);
        STACKS.lock().cold[stack::size_at(slot)].push(slot);
        preempt::pause();
    }
}

fn clear(address: usize, bytes: usize) {
    if bytes < LONG_BYTES {
        // SAFETY: the memory lies in an arena, was allocated, and its owner has just given it up; no
        // SIP can still reach it, because nobody but the owner ever could.
        unsafe { core::ptr::write_bytes(address as *mut u8, 0, bytes) };
    } else {
        clear_long(address, bytes);
    }
}

/// Clears a long run, whose caller may be preempted.
fn clear_long(address: usize, bytes: usize) {
    let end = (address + bytes).next_multiple_of(PAGE_BYTES);
    let mut at = address;
    while at < end {
        let is_whole_piece = at.is_multiple_of(PIECE_BYTES) && end - at >= PIECE_BYTES;
        let next = if is_whole_piece { at + PIECE_BYTES } else { (at + 1).next_multiple_of(LONG_BYTES).min(end) };
        if is_whole_piece {
            machine().decommit(at, next - at);
        } else {
            // SAFETY: as in `clear`; an allocation of this size has whole pages.
            unsafe { core::ptr::write_bytes(at as *mut u8, 0, next - at) };
        }
        at = next;
        if at < end {
            preempt::pause();
        }
    }
}

/// Copies bytes into a block that the kernel has just allocated or owns.
pub fn write_block(address: usize, size: usize, bytes: &[u8]) {
    let count = bytes.len().min(size);
    // SAFETY: the block is `size` bytes at `address` in the exchange arena and in the kernel's hands.
    unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), address as *mut u8, count) };
}

/// Copies the first `count` bytes of a block that the kernel owns. `None` if the block is shorter or the kernel has no
/// memory for the copy. The caller must hold no lock and may be preempted.
pub fn copy_of_block(address: usize, size: usize, count: usize) -> Option<Vec<u8>> {
    let mut copy = Vec::new();
    if count > size || is_low() || copy.try_reserve_exact(count).is_err() {
        return None;
    }
    while copy.len() < count {
        let piece = COPY_BYTES.min(count - copy.len());
        let into = copy.spare_capacity_mut().as_mut_ptr().expose_provenance();
        // SAFETY: the block is `size` bytes at `address` in the exchange arena, of which `count` are copied, into
        // reserved room of the copy; code in a domain that still reaches it may change what is read, but not what was.
        unsafe { arch::copy_bytes(address + copy.len(), into, piece) };
        let length = copy.len() + piece;
        // SAFETY: the room was reserved, and its bytes are written.
        unsafe { copy.set_len(length) };
        preempt::pause();
    }
    Some(copy)
}

/// Copies the first bytes of a block, whose SIP is in the kernel; code in a domain may change what is read, but not what was.
pub fn copy_block(into: &mut [u8], address: usize) {
    let place = into.as_mut_ptr().expose_provenance();
    // SAFETY: the kernel has just given the SIP these bytes of the memory arena; the room is a slice's.
    unsafe { arch::copy_bytes(address, place, into.len()) };
}

/// Eight words of a block that the kernel has just given a SIP, as [`copy_block`] copies them.
#[inline(always)]
pub fn block_words(address: usize) -> [u64; 8] {
    // SAFETY: as in `copy_block`.
    unsafe { arch::load_words(address) }
}

mod sealed {
    /// A record of `#[repr(C)]` whose fields are u64s and byte arrays of a multiple of 8: no padding.
    pub trait Record: Copy {}
    impl Record for abi::ProcessRecord {}
    impl Record for abi::ThreadRecord {}
    impl Record for abi::ChannelRecord {}
    impl Record for abi::CounterRecord {}
    impl Record for abi::TraceRecord {}
    impl Record for abi::StreamRecord {}
    impl Record for abi::LatencyRecord {}
}

/// Writes a record at its index in a block that the kernel owns, if it fits.
pub fn write_record<R: sealed::Record>(address: usize, size: usize, place: usize, record: &R) {
    if place >= size / size_of::<R>() {
        return;
    }
    // SAFETY: as for `write_block`; the place lies within `size`, blocks are aligned to 64, and a
    // Record has no padding and any bits are valid for it.
    unsafe { (address as *mut R).add(place).write(*record) };
}
