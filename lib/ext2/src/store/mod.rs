//! The volume as numbered blocks: caching, atomic transactions, allocation.
//!
//! File data is written back in place. Metadata is edited in an in-memory *write set* and becomes durable when its
//! *transaction* commits: every change since the previous commit, or none. A multi-block update holds a [`Change`]
//! until it is complete, so that no commit can split it.
//!
//! Disk I/O goes through [pages]; a block in the write set is invalid in its page, so that there is only one current
//! copy. No `RefCell` borrow is held across an await.
//!
//! Not here: the meaning of blocks other than the superblock, group descriptors, bitmaps and journal.

mod commit;
mod data;
mod geometry;
mod metadata;
mod open;
mod pages;
mod tasks;
#[cfg(test)]
mod tests;
mod transaction;
mod transfer;

use alloc::collections::VecDeque;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use task_sync::Notify;

use crate::allocator::{Allocator, Groups};
use crate::cache::CacheCounts;
use crate::error::{Error, ReadOnlyReason};
use crate::format::superblock::Superblock;
use crate::journal::Journal;
use crate::source::BlockSource;
pub(crate) use geometry::Geometry;
pub(crate) use metadata::Feature;
use metadata::Sets;
use pages::Pages;
pub(crate) use transaction::Change;
use transaction::Transactions;

/// Cache sizes and disk I/O limits of a mounted volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheLimits {
    /// Capacity of the inode cache in bytes.
    pub inode_bytes: usize,
    /// Capacity of the block-number cache in bytes.
    pub number_bytes: usize,
    /// Capacity of the data cache in bytes.
    pub data_bytes: usize,
    /// Size of a data cache page in bytes; adjusted to a power of two between 4 KiB and 64 blocks.
    pub page_bytes: usize,
    /// Maximum concurrent disk requests per operation.
    pub requests: usize,
    /// Maximum read-ahead in bytes.
    pub read_ahead_bytes: usize,
}

impl Default for CacheLimits {
    /// A few MiB in all: enough to hold the metadata that a shell's commands touch.
    fn default() -> CacheLimits {
        CacheLimits {
            inode_bytes: 256 << 10,
            number_bytes: 512 << 10,
            data_bytes: 4 << 20,
            page_bytes: 32 << 10,
            requests: 8,
            read_ahead_bytes: 1 << 20,
        }
    }
}

/// Requested access to a volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// Never write to the disk, not even to replay the journal.
    ReadOnly,
    /// Read and write, or read-only if that is impossible, for which the volume has a [`ReadOnlyReason`].
    #[default]
    WriteIfPossible,
}

/// Options for mounting a volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MountOptions {
    /// Cache sizes and disk I/O limits.
    pub limits: CacheLimits,
    /// Requested access.
    pub access: Access,
}

/// Space usage of a volume and counters of its store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreStatistics {
    /// Total blocks of the volume.
    pub blocks: u64,
    /// Free blocks, including the reserved ones.
    pub free_blocks: u64,
    /// Free blocks beyond the reserved ones.
    pub available_blocks: u64,
    /// Reserved blocks, as in the superblock.
    pub reserved_blocks: u64,
    /// Total inodes of the volume.
    pub inodes: u64,
    /// Free inodes.
    pub free_inodes: u64,
    /// Bytes of file data not yet written to the disk.
    pub dirty_bytes: u64,
    /// Bytes of metadata in the write set.
    pub metadata_bytes: u64,
    /// Transactions committed since mount.
    pub commits: u64,
    /// Counters of the data cache.
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
    /// The current superblock, except for the free counts, which [`Groups`] keeps.
    superblock: RefCell<Superblock>,
    read_only: Cell<Option<ReadOnlyReason>>,
    is_shut: Cell<bool>,
    pages: RefCell<Pages<S::Buffer>>,
    /// Unused buffers of the size of a page.
    spare: RefCell<Vec<S::Buffer>>,
    /// A buffer kept for commits when memory is short, and whether there is one at all.
    kept: RefCell<Vec<S::Buffer>>,
    has_kept: Cell<bool>,
    /// Pages queued for read-ahead, and the number of tasks reading them.
    ahead: RefCell<VecDeque<u64>>,
    readers_ahead: Cell<usize>,
    /// Number of background write-back tasks.
    writers: Cell<usize>,
    /// Tasks waiting for the number of dirty pages to drop.
    room: Notify,
    /// A write-back error not yet reported to a caller.
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

    /// Limits given at mount.
    pub(crate) fn limits(&self) -> CacheLimits {
        self.0.limits
    }

    /// A copy of the superblock with the current free counts.
    pub(crate) fn superblock(&self) -> Superblock {
        let mut superblock = *self.0.superblock.borrow();
        if let Some((blocks, inodes)) = self.0.groups.borrow().free_counts() {
            superblock.free_blocks = blocks;
            superblock.free_inodes = inodes;
        }
        superblock
    }

    /// Allocates and frees blocks and inodes.
    pub(crate) fn allocator(&self) -> Allocator<'_, S> {
        Allocator::new(self)
    }

    pub(crate) fn geometry(&self) -> &Geometry {
        &self.0.geometry
    }

    /// Block size in bytes.
    pub(crate) fn block_bytes(&self) -> usize {
        self.0.geometry.block_bytes
    }

    /// Why the volume is read-only; `None` if it is writable.
    pub(crate) fn read_only_reason(&self) -> Option<ReadOnlyReason> {
        self.0.read_only.get()
    }

    /// Seconds since 1970.
    pub(crate) fn now_s(&self) -> u32 {
        self.0.source.now_s()
    }

    /// Head of the orphan inode list (`s_last_orphan`), or 0.
    pub(crate) fn orphan_head(&self) -> u32 {
        self.0.superblock.borrow().last_orphan
    }

    /// Space usage of the volume and counters of the store.
    pub(crate) fn statistics(&self) -> StoreStatistics {
        let superblock = self.superblock();
        let shared = &*self.0;
        let sets = shared.sets.borrow();
        let pages = shared.pages.borrow();
        let block_bytes = shared.geometry.block_bytes as u64;
        let free_blocks = u64::from(superblock.free_blocks);
        StoreStatistics {
            blocks: superblock.blocks.into(),
            free_blocks,
            available_blocks: free_blocks.saturating_sub(superblock.reserved_blocks.into()),
            reserved_blocks: superblock.reserved_blocks.into(),
            inodes: superblock.inodes.into(),
            free_inodes: superblock.free_inodes.into(),
            dirty_bytes: pages.dirty_blocks() * block_bytes,
            metadata_bytes: (sets.running.len() + sets.frozen.len()) as u64 * block_bytes,
            commits: shared.transactions.commits.get(),
            data: pages.counts(shared.geometry.page_bytes),
        }
    }

    /// Makes the volume read-only for `reason`, unless an earlier reason is recorded; returns the error for the caller.
    pub(crate) fn fail(&self, reason: ReadOnlyReason) -> Error {
        let reason = self.0.read_only.get().unwrap_or(reason);
        self.0.read_only.set(Some(reason));
        self.0.transactions.changed.notify_all();
        Error::ReadOnly(reason)
    }
}
