//! Blocks of the exchange heap that are used again and again.

use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use sip::Status;
use sip::exheap::ExVec;

/// Lengths of blocks, and how many of each are kept while nobody uses them.
const CLASSES: [(usize, usize); 4] = [(1 << 10, 1024), (1 << 12, 512), (1 << 14, 128), (1 << 16, 64)];
/// Bytes of a piece of a large file.
pub(crate) const PIECE_BYTES: usize = 256 << 10;
const PIECES_KEPT: usize = 16;

/// Blocks that nobody uses at present.
#[derive(Default)]
pub(crate) struct Blocks {
    kept: [RefCell<Vec<ExVec<u8>>>; CLASSES.len() + 1],
    /// How many were allocated, for people.
    allocated: Cell<u64>,
}

fn class(index: usize) -> (usize, usize) {
    CLASSES.get(index).copied().unwrap_or((PIECE_BYTES, PIECES_KEPT))
}

impl Blocks {
    /// A block of at least that many bytes, with anything in it. More than [`PIECE_BYTES`] are too many.
    pub(crate) fn take(&self, bytes: usize) -> Result<ExVec<u8>, Status> {
        let index = CLASSES.iter().position(|(length, _)| bytes <= *length).unwrap_or(CLASSES.len());
        let (length, _) = class(index);
        if bytes > length {
            return Err(Status::TooLarge);
        }
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
        for (index, kept) in self.kept.iter().enumerate() {
            let (length, most) = class(index);
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
