//! Blocks of the exchange heap that are used again and again.

use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use sip::Status;
use sip::exheap::ExVec;

/// Lengths of blocks, and how many of each are kept while nobody uses them.
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
/// Bytes of the longest block.
pub(crate) const MAX_BYTES: usize = 1 << 20;
/// Bytes of a piece of a large file. Larger ones leave the processor's cache between being read and being sent.
pub(crate) const PIECE_BYTES: usize = 64 << 10;

/// Blocks that nobody uses at present.
#[derive(Default)]
pub(crate) struct Blocks {
    kept: [RefCell<Vec<ExVec<u8>>>; CLASSES.len()],
    /// How many were allocated, for people.
    allocated: Cell<u64>,
}

/// The length of the blocks that hold so many bytes; nothing where there are more than [`MAX_BYTES`].
pub(crate) fn block_bytes(bytes: usize) -> Option<usize> {
    CLASSES.iter().map(|(length, _)| *length).find(|length| bytes <= *length)
}

impl Blocks {
    /// A block of at least that many bytes, with anything in it. More than [`MAX_BYTES`] are too many.
    pub(crate) fn take(&self, bytes: usize) -> Result<ExVec<u8>, Status> {
        let index = CLASSES.iter().position(|(length, _)| bytes <= *length).ok_or(Status::TooLarge)?;
        let (length, _) = CLASSES[index];
        if let Some(block) = self.kept[index].borrow_mut().pop() {
            return Ok(block);
        }
        self.allocated.set(self.allocated.get() + 1);
        ExVec::new(length)
    }

    /// How many were allocated so far.
    pub(crate) fn allocated(&self) -> u64 {
        self.allocated.get()
    }

    /// Gives a block back, or frees it where enough are kept.
    pub(crate) fn give(&self, block: ExVec<u8>) {
        for ((length, most), kept) in CLASSES.into_iter().zip(&self.kept) {
            if block.len() == length {
                let mut kept = kept.borrow_mut();
                if kept.len() < most {
                    kept.push(block);
                }
                return;
            }
        }
    }
}
