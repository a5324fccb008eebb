//! Walks the block numbers of an inode: the fifteen in it, and those in its indirect tables.
//!
//! [`Tree`] does no I/O: the caller reads the tables, passes them in, and gets back those that changed. There are at
//! most three levels of tables, so there is no recursion.

use alloc::vec::Vec;

use crate::format::inode::{BLOCK_NUMBERS, DIRECT_BLOCKS};
use crate::format::{read_u32, write_u32};

/// A block number other than 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) block: u32,
    /// 0 for data, else the number of levels below it.
    pub(super) depth: usize,
    /// First file block below it.
    pub(super) logical: u64,
}

/// Next step of a walk.
pub(super) enum Step {
    Claim(Claim),
    /// A table with changed numbers is complete: its block and its bytes.
    Changed(u32, Vec<u8>),
    End,
}

struct Level {
    block: u32,
    bytes: Vec<u8>,
    /// Index of its next number.
    next: usize,
    depth: usize,
    logical: u64,
    changed: bool,
}

pub(super) struct Tree {
    pub(super) numbers: [u32; BLOCK_NUMBERS],
    per_block: u64,
    slot: usize,
    levels: Vec<Level>,
    /// Whether one of the inode's own numbers was changed.
    pub(super) changed: bool,
}

impl Tree {
    pub(super) fn new(numbers: [u32; BLOCK_NUMBERS], block_bytes: u32) -> Tree {
        Tree { numbers, per_block: u64::from(block_bytes / 4), slot: 0, levels: Vec::new(), changed: false }
    }

    pub(super) fn next(&mut self) -> Step {
        loop {
            if let Some(level) = self.levels.last_mut() {
                let Some(block) = level.bytes.get(level.next * 4..level.next * 4 + 4).map(|bytes| read_u32(bytes, 0))
                else {
                    match self.levels.pop() {
                        Some(level) if level.changed => return Step::Changed(level.block, level.bytes),
                        _ => continue,
                    }
                };
                let depth = level.depth - 1;
                let logical = level.logical + level.next as u64 * reach(self.per_block, depth);
                level.next += 1;
                if block != 0 {
                    return Step::Claim(Claim { block, depth, logical });
                }
                continue;
            }
            let Some(&block) = self.numbers.get(self.slot) else { return Step::End };
            let depth = (self.slot + 1).saturating_sub(DIRECT_BLOCKS);
            let logical = match self.slot.checked_sub(DIRECT_BLOCKS) {
                None => self.slot as u64,
                Some(tables) => (1..=tables).map(|depth| reach(self.per_block, depth)).sum::<u64>() + 12,
            };
            self.slot += 1;
            if block != 0 {
                return Step::Claim(Claim { block, depth, logical });
            }
        }
    }

    /// Descends into the table that the last claim was about. Otherwise the walk skips it.
    pub(super) fn enter(&mut self, claim: &Claim, bytes: Vec<u8>) {
        let Claim { block, depth, logical } = *claim;
        self.levels.push(Level { block, bytes, next: 0, depth, logical, changed: false });
    }

    /// Replaces the number of the last claim. Not after [`enter`](Tree::enter).
    pub(super) fn replace(&mut self, block: u32) {
        match self.levels.last_mut() {
            Some(level) => {
                write_u32(&mut level.bytes, (level.next - 1) * 4, block);
                level.changed = true;
            }
            None => {
                self.numbers[self.slot - 1] = block;
                self.changed = true;
            }
        }
    }
}

/// Number of file blocks below a block number with `depth` levels below it.
pub(super) fn reach(per_block: u64, depth: usize) -> u64 {
    per_block.pow(depth as u32)
}
