//! Storage of small exchange blocks: chunks of equal-sized rooms, with a bitmap of free rooms.
//!
//! Allocating and freeing is O(1). A wholly free chunk goes back to the arena, except one per size. Locks: one for all
//! chunks, a leaf.

use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use abi::limits::{BLOCK_ALIGN, PAGE_BYTES};

use super::{allocate_run, free_run};
use crate::lock::SpinLock;
use crate::shortage::{Scarce, no_slot};
use crate::slab::{Links, List, Listed, Slab, Slot};

/// Size classes: 64 bytes to 2 KiB.
const CLASSES: usize = 6;
/// Bytes of a chunk.
const CHUNK_BYTES: usize = 16 * 1024;
/// Bitmap words for the smallest rooms of a chunk.
const WORDS: usize = CHUNK_BYTES / BLOCK_ALIGN / u64::BITS as usize;

/// A chunk. Its fields are guarded by the lock of [`PARTIAL`].
#[derive(Default)]
pub struct Chunk {
    address: AtomicUsize,
    class: AtomicUsize,
    /// Bitmap of free rooms.
    free: [AtomicU64; WORDS],
    free_count: AtomicU32,
    links: Links,
}

static CHUNKS: Slab<Chunk> = Slab::new();

/// List of the chunks of one class with free rooms.
struct OfClass;

impl Listed for OfClass {
    fn links(index: u32) -> Option<&'static Links> {
        CHUNKS.slot(index).map(|slot| &slot.links)
    }
}

/// Chunks with free rooms, by class.
static PARTIAL: SpinLock<[List<OfClass>; CLASSES]> = SpinLock::new([const { List::new() }; CLASSES]);

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

/// Allocates a room of a class; returns its address and the chunk that contains it.
pub fn allocate(class: usize) -> Option<(usize, &'static Slot<Chunk>)> {
    loop {
        if let Some(taken) = take(class) {
            return Some(taken);
        }
        add_chunk(class)?;
    }
}

fn take(class: usize) -> Option<(usize, &'static Slot<Chunk>)> {
    let partial = &mut PARTIAL.lock()[class];
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

fn add_chunk(class: usize) -> Option<()> {
    let address = allocate_run(CHUNK_BYTES / PAGE_BYTES)?;
    let chunk = CHUNKS.allocate().map_err(|full| {
        free_run(address, CHUNK_BYTES / PAGE_BYTES);
        no_slot(full, Scarce::Blocks)
    });
    let chunk = chunk.ok()?;
    chunk.address.store(address, Ordering::Relaxed);
    chunk.class.store(class, Ordering::Relaxed);
    chunk.free_count.store(rooms(class) as u32, Ordering::Relaxed);
    let mut left = rooms(class);
    for word in &chunk.free {
        let bits = left.min(u64::BITS as usize);
        word.store(if bits == 0 { 0 } else { u64::MAX >> (u64::BITS as usize - bits) }, Ordering::Relaxed);
        left -= bits;
    }
    PARTIAL.lock()[class].insert(chunk.index());
    Some(())
}

/// Frees a room, which must read as zero.
pub fn free(chunk: &'static Slot<Chunk>, address: usize) {
    let class = chunk.class.load(Ordering::Relaxed);
    let base = chunk.address.load(Ordering::Relaxed);
    let number = (address - base) / bytes_of(class);
    let mut lists = PARTIAL.lock();
    let partial = &mut lists[class];
    let word = &chunk.free[number / u64::BITS as usize];
    word.store(word.load(Ordering::Relaxed) | 1 << (number % u64::BITS as usize), Ordering::Relaxed);
    let count = chunk.free_count.load(Ordering::Relaxed) + 1;
    chunk.free_count.store(count, Ordering::Relaxed);
    if count == 1 {
        partial.insert(chunk.index());
    }
    if count as usize == rooms(class) && partial.count() > 1 {
        partial.remove(chunk.index());
        drop(lists);
        CHUNKS.release(chunk);
        free_run(base, CHUNK_BYTES / PAGE_BYTES);
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
            let taken: Vec<_> = (0..3 * rooms(class)).map(|_| allocate(class).expect("room")).collect();
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
