//! Free lists of exchange-heap blocks by size class.

use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use sip::Status;
use sip::exheap::ExVec;

/// Block length in bytes and maximum number of free blocks, per class.
const CLASSES: [(usize, usize); 8] = [
    (1 << 10, 1024),
    (1 << 12, 512),
    (1 << 14, 128),
    (1 << 16, 64),
    (1 << 17, 8),
    (1 << 18, 8),
    (1 << 19, 4),
    (1 << 20, 4),
];
/// Maximum number of free blocks of a class for which a received one is kept.
const MAX_RECEIVED: usize = 4;
/// Maximum length of a received block that is kept, in bytes.
const MAX_RECEIVED_BYTES: usize = 4 << 10;
/// Maximum length of a block, in bytes.
pub(crate) const MAX_BYTES: usize = 1 << 20;
/// Length of a piece of a large file, in bytes. Larger ones are evicted from the processor's cache between read and
/// send.
pub(crate) const PIECE_BYTES: usize = 64 << 10;

/// The free blocks.
#[derive(Default)]
pub(crate) struct Blocks {
    kept: [RefCell<Vec<ExVec<u8>>>; CLASSES.len()],
    /// Number of allocations, for statistics.
    allocated: Cell<u64>,
}

/// Rounds a size up to its class; `None` above [`MAX_BYTES`].
pub(crate) fn block_bytes(bytes: usize) -> Option<usize> {
    CLASSES.iter().map(|(length, _)| *length).find(|length| bytes <= *length)
}

impl Blocks {
    /// Takes a block of at least `bytes` bytes, with arbitrary contents; fails above [`MAX_BYTES`].
    pub(crate) fn take(&self, bytes: usize) -> Result<ExVec<u8>, Status> {
        let index = CLASSES.iter().position(|(length, _)| bytes <= *length).ok_or(Status::TooLarge)?;
        let (length, _) = CLASSES[index];
        if let Some(block) = self.kept[index].borrow_mut().pop() {
            return Ok(block);
        }
        self.allocated.set(self.allocated.get() + 1);
        ExVec::new(length)
    }

    /// Number of allocations so far.
    pub(crate) fn allocated(&self) -> u64 {
        self.allocated.get()
    }

    /// Returns a block to its free list, if there is one, or frees it if the list is full.
    pub(crate) fn give(&self, block: impl Into<Option<ExVec<u8>>>) {
        block.into().into_iter().for_each(|block| self.keep(block, usize::MAX));
    }

    /// As [`Blocks::give`], for a block that came from elsewhere: a few short ones take the place of those that are sent
    /// away, and others would be kept in vain.
    pub(crate) fn give_received(&self, block: Option<ExVec<u8>>) {
        let short = block.into_iter().filter(|block| block.len() <= MAX_RECEIVED_BYTES);
        short.for_each(|block| self.keep(block, MAX_RECEIVED));
    }

    /// Adds a block to its free list if that has fewer than this many.
    fn keep(&self, block: ExVec<u8>, at_most: usize) {
        for ((length, most), kept) in CLASSES.into_iter().zip(&self.kept) {
            if block.len() == length {
                let mut kept = kept.borrow_mut();
                if kept.len() < most.min(at_most) {
                    kept.push(block);
                }
                return;
            }
        }
    }
}
