//! Storage of small exchange blocks: chunks of equal-sized rooms, with a bitmap of free rooms.
//!
//! The rooms of a chunk are mapped in one space. Allocating and freeing is O(1). A wholly free chunk goes back to the
//! arena, except one per size and space. Locks: one for the chunks of each space, a leaf.

use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use abi::limits::{BLOCK_ALIGN, PAGE_BYTES};

use hal_api::DomainAccess;

use super::{allocate_run, clear, free_run};
use crate::lock::{AtomicRef, SpinLock};
use crate::shortage::{Scarce, no_slot};
use crate::slab::{Links, List, Listed, Slab, Slot};
use crate::space::{CLASSES, Roomy, Space, SpaceRef};

/// Bytes of a chunk.
const CHUNK_BYTES: usize = 16 * 1024;
/// Bitmap words for the smallest rooms of a chunk.
const WORDS: usize = CHUNK_BYTES / BLOCK_ALIGN / u64::BITS as usize;

/// A chunk. Its fields are guarded by the lock of its space's chunks.
#[derive(Default)]
pub struct Chunk {
    address: AtomicUsize,
    class: AtomicUsize,
    space: AtomicRef<Slot<Space>>,
    /// Bitmap of free rooms.
    free: [AtomicU64; WORDS],
    free_count: AtomicU32,
    links: Links,
}

static CHUNKS: Slab<Chunk> = Slab::new();

impl Listed for Roomy {
    fn links(index: u32) -> Option<&'static Links> {
        CHUNKS.slot(index).map(|slot| &slot.links)
    }
}

/// Chunks of the kernel's own space with free rooms, by class: 64 bytes to 2 KiB.
static PARTIAL: SpinLock<[List<Roomy>; CLASSES]> = SpinLock::new([const { List::new() }; CLASSES]);

/// Chunks of a space with free rooms.
#[inline(always)]
fn partial_of(space: Option<SpaceRef>) -> &'static SpinLock<[List<Roomy>; CLASSES]> {
    space.map_or(&PARTIAL, |space| &space.partial)
}

/// Returns the class for this many bytes, if they are a small block.
#[inline(always)]
pub fn class_of(bytes: usize) -> Option<usize> {
    if bytes > bytes_of(CLASSES - 1) {
        return None;
    }
    Some(bytes.max(BLOCK_ALIGN).next_power_of_two().trailing_zeros() as usize - BLOCK_ALIGN.trailing_zeros() as usize)
}

/// Bytes of a room of this class.
#[inline(always)]
pub const fn bytes_of(class: usize) -> usize {
    BLOCK_ALIGN << class
}

fn rooms(class: usize) -> usize {
    CHUNK_BYTES / bytes_of(class)
}

/// Allocates a room of a class in a space; returns its address and the chunk that contains it.
pub fn allocate(class: usize, space: Option<SpaceRef>) -> Option<(usize, &'static Slot<Chunk>)> {
    loop {
        if let Some(taken) = take(class, space) {
            return Some(taken);
        }
        add_chunk(class, space)?;
    }
}

fn take(class: usize, space: Option<SpaceRef>) -> Option<(usize, &'static Slot<Chunk>)> {
    let partial = &mut partial_of(space).lock()[class];
    let chunk = CHUNKS.slot(partial.first()?)?;
    let (word, bits) = chunk.free.iter().enumerate().find(|(_, word)| word.load(Ordering::Relaxed) != 0)?;
    let free = bits.load(Ordering::Relaxed);
    bits.store(free & (free - 1), Ordering::Relaxed);
    let left = chunk.free_count.load(Ordering::Relaxed) - 1;
    chunk.free_count.store(left, Ordering::Relaxed);
    if left == 0 {
        partial.remove(chunk.index());
    }
    let number = word * u64::BITS as usize + free.trailing_zeros() as usize;
    Some((chunk.address.load(Ordering::Relaxed) + number * bytes_of(class), chunk))
}

fn add_chunk(class: usize, space: Option<SpaceRef>) -> Option<()> {
    let address = allocate_run(CHUNK_BYTES / PAGE_BYTES)?;
    let chunk = CHUNKS.allocate().map_err(|full| {
        free_run(address, CHUNK_BYTES / PAGE_BYTES);
        no_slot(full, Scarce::Blocks)
    });
    let chunk = chunk.ok()?;
    if let Some(space) = space {
        if space.map(address, CHUNK_BYTES, DomainAccess::Write).is_err() {
            CHUNKS.release(chunk);
            free_run(address, CHUNK_BYTES / PAGE_BYTES);
            return None;
        }
        space.refer();
    }
    chunk.space.set(space);
    chunk.address.store(address, Ordering::Relaxed);
    chunk.class.store(class, Ordering::Relaxed);
    chunk.free_count.store(rooms(class) as u32, Ordering::Relaxed);
    let mut left = rooms(class);
    for word in &chunk.free {
        let bits = left.min(u64::BITS as usize);
        word.store(if bits == 0 { 0 } else { u64::MAX >> (u64::BITS as usize - bits) }, Ordering::Relaxed);
        left -= bits;
    }
    partial_of(space).lock()[class].insert(chunk.index());
    Some(())
}

/// Frees a room, which must read as zero.
pub fn free(chunk: &'static Slot<Chunk>, address: usize) {
    let class = chunk.class.load(Ordering::Relaxed);
    let base = chunk.address.load(Ordering::Relaxed);
    let number = (address - base) / bytes_of(class);
    let space = chunk.space.get();
    let mut lists = partial_of(space).lock();
    let partial = &mut lists[class];
    let word = &chunk.free[number / u64::BITS as usize];
    word.store(word.load(Ordering::Relaxed) | 1 << (number % u64::BITS as usize), Ordering::Relaxed);
    let count = chunk.free_count.load(Ordering::Relaxed) + 1;
    chunk.free_count.store(count, Ordering::Relaxed);
    if count == 1 {
        partial.insert(chunk.index());
    }
    let is_spare = partial.count() > 1 || space.is_some_and(|space| space.members() == 0);
    if count as usize == rooms(class) && is_spare {
        partial.remove(chunk.index());
        drop(lists);
        free_chunk(chunk);
    }
}

/// Frees a wholly free chunk that is in no list.
fn free_chunk(chunk: &'static Slot<Chunk>) {
    let base = chunk.address.load(Ordering::Relaxed);
    if let Some(space) = chunk.space.take() {
        space.unmap(base, CHUNK_BYTES);
        // Code in the domain may have written to free rooms.
        clear(base, CHUNK_BYTES);
        space.forget();
    }
    CHUNKS.release(chunk);
    free_run(base, CHUNK_BYTES / PAGE_BYTES);
}

/// Frees the wholly free chunks of a space that a SIP is leaving.
pub fn trim(space: SpaceRef) {
    for class in 0..CLASSES {
        loop {
            let mut lists = space.partial.lock();
            let is_free =
                |chunk: &&'static Slot<Chunk>| chunk.free_count.load(Ordering::Relaxed) as usize == rooms(class);
            let mut next = lists[class].first();
            let found = core::iter::from_fn(|| {
                let index = next?;
                next = lists[class].next(index);
                CHUNKS.slot(index)
            })
            .find(is_free);
            let Some(chunk) = found else { break };
            lists[class].remove(chunk.index());
            drop(lists);
            free_chunk(chunk);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_machine::alone;
    use alloc::vec::Vec;

    #[test]
    fn rooms_do_not_overlap_and_chunks_go_back() {
        let _alone = alone();
        for class in 0..CLASSES {
            let before = super::super::RUNS_USED.load(Ordering::Relaxed);
            let taken: Vec<_> = (0..3 * rooms(class)).map(|_| allocate(class, None).expect("room")).collect();
            let mut addresses: Vec<usize> = taken.iter().map(|&(address, _)| address).collect();
            addresses.sort_unstable();
            assert!(addresses.windows(2).all(|pair| pair[1] - pair[0] >= bytes_of(class)));
            assert!(addresses.iter().all(|address| address % bytes_of(class) == 0));
            // An order different from that of allocation and its reverse.
            for offset in 0..7 {
                for &(address, chunk) in taken.iter().skip(offset).step_by(7) {
                    free(chunk, address);
                }
            }
            // It would be lower if a free chunk had been kept beside one in use.
            let kept = super::super::RUNS_USED.load(Ordering::Relaxed).saturating_sub(before);
            assert!(kept <= CHUNK_BYTES / PAGE_BYTES, "{kept} pages are kept for rooms of {} bytes", bytes_of(class));
        }
    }

    #[test]
    fn classes_are_powers_of_two() {
        assert_eq!([0, 1, 64, 65, 128, 2048].map(class_of), [0, 0, 0, 1, 1, 5].map(Some));
        assert_eq!(class_of(2049), None);
    }
}
