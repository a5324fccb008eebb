//! The volume as numbered blocks: cached, changed in whole transactions, allocated.
//!
//! File data is written in its place some time after it was given; metadata is edited in a *write set* in memory and
//! becomes permanent when a *transaction* is committed: all that was changed since the commit before, or nothing of it. A
//! change of several blocks holds a [`Change`] while it is half done, so that no commit falls into it.
//!
//! What is read and written of the disk goes through [lines]; a block in the write set is not valid in its line, so
//! that there are never two truths. No borrow is held while anything is waited for.
//!
//! Not here: what the blocks mean, apart from superblock, group descriptors, bitmaps and journal.

mod commit;
mod data;
mod geometry;
mod lines;
mod metadata;
mod open;
mod tasks;
#[cfg(all(test, feature = "format"))]
mod tests;
mod transaction;
mod transfer;

use alloc::collections::VecDeque;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use crate::allocation::Groups;
use crate::cache::CacheCounts;
use crate::error::{Error, ReadOnlyReason};
use crate::journal::Journal;
use crate::source::BlockSource;
use crate::wire::superblock::Superblock;
pub(crate) use geometry::Geometry;
use lines::Lines;
pub(crate) use metadata::Feature;
use metadata::Sets;
pub(crate) use transaction::Change;
use transaction::Transactions;

/// How much each cache may hold, and how the disk is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheLimits {
    /// Bytes of inodes.
    pub inode_bytes: usize,
    /// Bytes of block numbers.
    pub number_bytes: usize,
    /// Bytes of data.
    pub data_bytes: usize,
    /// Bytes of a piece of data; made a power of two between 4 KiB and 64 blocks.
    pub line_bytes: usize,
    /// Requests that the disk is given at once for one operation.
    pub requests: usize,
    /// Bytes that are read ahead of a file's reader at most.
    pub read_ahead_bytes: usize,
}

impl Default for CacheLimits {
    /// A few MiB in all: enough to hold the metadata that a shell's commands touch.
    fn default() -> CacheLimits {
        CacheLimits {
            inode_bytes: 256 << 10,
            number_bytes: 512 << 10,
            data_bytes: 4 << 20,
            line_bytes: 32 << 10,
            requests: 8,
            read_ahead_bytes: 1 << 20,
        }
    }
}

/// Whether a volume is to be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// Not at all, not even to put in their places what its journal holds.
    ReadOnly,
    /// Unless something forbids it, which is then known as the volume's [`ReadOnlyReason`].
    #[default]
    WriteIfPossible,
}

/// How a volume is to be mounted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MountOptions {
    /// How much may be held in memory.
    pub limits: CacheLimits,
    /// Whether it is to be written.
    pub access: Access,
}

/// What a volume holds, and how its store has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreStatistics {
    /// Blocks of the volume.
    pub blocks: u64,
    /// Blocks that hold nothing.
    pub free_blocks: u64,
    /// Those of them that files can have.
    pub available_blocks: u64,
    /// Blocks that files cannot have.
    pub reserved_blocks: u64,
    /// Inodes of the volume.
    pub inodes: u64,
    /// Inodes that are free.
    pub free_inodes: u64,
    /// Bytes of file data that the disk does not have yet.
    pub dirty_bytes: u64,
    /// Bytes of metadata in the write set.
    pub metadata_bytes: u64,
    /// Commits so far.
    pub commits: u64,
    /// The data cache.
    pub data: CacheCounts,
}

/// The lower half of a mounted volume. Clones are the same store.
pub(crate) struct Store<S: BlockSource>(Rc<Shared<S>>);

impl<S: BlockSource> Clone for Store<S> {
    fn clone(&self) -> Store<S> {
        Store(Rc::clone(&self.0))
    }
}

pub(crate) struct Shared<S: BlockSource> {
    source: S,
    limits: CacheLimits,
    geometry: Geometry,
    /// As it is at this moment, but for the free counts.
    superblock: RefCell<Superblock>,
    read_only: Cell<Option<ReadOnlyReason>>,
    is_shut: Cell<bool>,
    lines: RefCell<Lines<S::Buffer>>,
    /// Buffers of a line's size that hold nothing.
    spare: RefCell<Vec<S::Buffer>>,
    /// A buffer kept for commits when memory is short, and whether there is one at all.
    kept: RefCell<Vec<S::Buffer>>,
    has_kept: Cell<bool>,
    /// Lines to be read before anybody asks, and the tasks that do it.
    ahead: RefCell<VecDeque<u64>>,
    readers_ahead: Cell<usize>,
    /// Tasks that write dirty lines in the background.
    writers: Cell<usize>,
    /// Wakes who waits for dirty lines to become fewer.
    room: tasks::Waiters,
    /// A write of file data that failed and was not yet told to anybody.
    data_error: Cell<Option<Error>>,
    sets: RefCell<Sets>,
    transactions: Transactions,
    groups: RefCell<Groups>,
    journal: RefCell<Option<Journal>>,
}

impl<S: BlockSource> Store<S> {
    /// The disk.
    pub(crate) fn source(&self) -> &S {
        &self.0.source
    }

    /// The limits it was mounted with.
    pub(crate) fn limits(&self) -> CacheLimits {
        self.0.limits
    }

    /// The superblock, with the counts of this moment.
    pub(crate) fn superblock(&self) -> Superblock {
        let mut superblock = *self.0.superblock.borrow();
        if let Some((blocks, inodes)) = self.0.groups.borrow().free_counts() {
            superblock.free_blocks = blocks;
            superblock.free_inodes = inodes;
        }
        superblock
    }

    pub(crate) fn geometry(&self) -> &Geometry {
        &self.0.geometry
    }

    /// Bytes of a block.
    pub(crate) fn block_bytes(&self) -> usize {
        self.0.geometry.block_bytes
    }

    /// Why nothing can be changed, if that is so.
    pub(crate) fn read_only_reason(&self) -> Option<ReadOnlyReason> {
        self.0.read_only.get()
    }

    /// Seconds since 1970.
    pub(crate) fn now_s(&self) -> u32 {
        self.0.source.now_s()
    }

    /// The first of the inodes that are to be freed though nothing names them, or 0.
    pub(crate) fn orphan_head(&self) -> u32 {
        self.0.superblock.borrow().last_orphan
    }

    /// What the volume holds, and how the store has done.
    pub(crate) fn statistics(&self) -> StoreStatistics {
        let superblock = self.superblock();
        let shared = &*self.0;
        let sets = shared.sets.borrow();
        let lines = shared.lines.borrow();
        let block_bytes = shared.geometry.block_bytes as u64;
        let free_blocks = u64::from(superblock.free_blocks);
        StoreStatistics {
            blocks: superblock.blocks.into(),
            free_blocks,
            available_blocks: free_blocks.saturating_sub(superblock.reserved_blocks.into()),
            reserved_blocks: superblock.reserved_blocks.into(),
            inodes: superblock.inodes.into(),
            free_inodes: superblock.free_inodes.into(),
            dirty_bytes: lines.dirty_blocks() * block_bytes,
            metadata_bytes: (sets.running.len() + sets.frozen.len()) as u64 * block_bytes,
            commits: shared.transactions.commits.get(),
            data: lines.counts(shared.geometry.line_bytes),
        }
    }

    /// Takes note of a failure after which nothing may be changed any more; the first one counts.
    pub(crate) fn fail(&self, reason: ReadOnlyReason) -> Error {
        let reason = self.0.read_only.get().unwrap_or(reason);
        self.0.read_only.set(Some(reason));
        self.0.transactions.changed.wake();
        Error::ReadOnly(reason)
    }
}
