//! Mounting, preparing to write, unmounting.

use alloc::collections::VecDeque;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use task_sync::{Mode, Notify};

use super::metadata::{Block, Sets};
use super::pages::Pages;
use super::transaction::Transactions;
use super::{Access, Geometry, MountOptions, Shared, Store};
use crate::allocator::Groups;
use crate::error::{DiskError, Error, ReadOnlyReason};
use crate::format::error::FormatError;
use crate::format::features::{INCOMPATIBLE_RECOVER, WRITABLE_READ_ONLY_COMPATIBLE};
use crate::format::superblock::{self, Superblock};
use crate::journal::Journal;
use crate::source::BlockSource;

/// Minimum capacity of a write set in blocks, whatever the limits.
const MIN_SET: usize = 512;

impl<S: BlockSource> Store<S> {
    /// Reads and checks the superblock, refuses unsupported volumes, and replays the journal; if the disk must not be
    /// written, in memory.
    pub(crate) async fn open(source: S, options: &MountOptions) -> Result<Store<S>, Error> {
        let superblock = read_superblock(&source).await?;
        let disk_bytes = source.size_bytes();
        if superblock.volume_bytes() > disk_bytes {
            return Err(FormatError::Truncated { disk_bytes, volume_bytes: superblock.volume_bytes() }.into());
        }
        let geometry = Geometry::new(&superblock, &options.limits)?;
        let store = Store(Rc::new(Shared {
            source,
            limits: options.limits,
            geometry,
            superblock: RefCell::new(superblock),
            read_only: Cell::new(None),
            is_shut: Cell::new(false),
            pages: RefCell::new(Pages::new(geometry.pages)),
            spare: RefCell::new(Vec::new()),
            kept: RefCell::new(Vec::new()),
            has_kept: Cell::new(false),
            ahead: RefCell::new(VecDeque::new()),
            readers_ahead: Cell::new(0),
            writers: Cell::new(0),
            room: Notify::default(),
            data_error: Cell::new(None),
            sets: RefCell::new(Sets::default()),
            transactions: Transactions::new(),
            groups: RefCell::new(Groups::default()),
            journal: RefCell::new(None),
        }));
        store.0.read_only.set(store.forbidding(options.access));
        store.open_journal().await?;
        Ok(store)
    }

    /// Returns the reason that forbids writing, apart from the journal.
    fn forbidding(&self, access: Access) -> Option<ReadOnlyReason> {
        let superblock = self.0.superblock.borrow();
        let unknown = superblock.read_only_compatible & !WRITABLE_READ_ONLY_COMPATIBLE;
        let has_recovery = superblock.incompatible & INCOMPATIBLE_RECOVER != 0;
        [
            (access == Access::ReadOnly).then_some(ReadOnlyReason::Asked),
            self.0.source.is_read_only().then_some(ReadOnlyReason::Disk),
            (unknown != 0).then_some(ReadOnlyReason::Features(unknown)),
            superblock.faulty.then_some(ReadOnlyReason::Faulty),
            (!superblock.clean && !has_recovery).then_some(ReadOnlyReason::NotClean),
            (!self.allocator().has_few_groups()).then_some(ReadOnlyReason::TooManyGroups),
        ]
        .into_iter()
        .flatten()
        .next()
    }

    /// Prepares for the first change: a journal, or at least a mark that the volume is in use.
    pub(super) async fn start_writing(&self) -> Result<(), Error> {
        if self.0.groups.borrow().free_counts().is_none() {
            let groups = self.allocator().read_groups().await?;
            *self.0.groups.borrow_mut() = groups;
        }
        if !self.0.has_kept.get() {
            let buffer = self.take_buffer().map_err(|error| Error::Write(0, error))?;
            self.0.keep_for_commit(buffer);
        }
        self.start_journal().await?;
        let has_journal = self.0.journal.borrow().is_some();
        if !has_journal {
            self.set_journal(None);
            self.write_superblock(|superblock| superblock.clean = false).await?;
            self.flush().await?;
        }
        Ok(())
    }

    /// Writes all changes, removes the journal and marks the volume as clean. Afterwards, also on failure, everything
    /// fails with [`Error::ShutDown`].
    pub(crate) async fn unmount(&self) -> Result<(), Error> {
        let result = match self.0.read_only.get() {
            Some(ReadOnlyReason::WriteFailed(..) | ReadOnlyReason::FlushFailed(_) | ReadOnlyReason::TooLarge) => {
                self.check_writable()
            }
            Some(_) => Ok(()),
            None => self.finish().await,
        };
        self.0.is_shut.set(true);
        self.0.transactions.changed.notify_all();
        self.0.pages.borrow_mut().clear();
        self.0.spare.borrow_mut().clear();
        result
    }

    async fn finish(&self) -> Result<(), Error> {
        let turn = loop {
            self.commit().await?;
            // The last commit has written its blocks in place when it releases its lock.
            let turn = self.0.transactions.commit.acquire(Mode::Exclusive).await;
            self.0.transactions.freeze().await;
            if !self.has_changes() {
                break turn;
            }
            self.0.transactions.thaw();
        };
        self.check_writable()?;
        if !self.0.transactions.is_started.get() {
            if !self.has_transient_journal() {
                return Ok(());
            }
            self.start_writing().await?;
        }
        self.flush().await?;
        self.end_journal().await?;
        if self.0.journal.borrow().is_none() && !self.0.superblock.borrow().clean {
            self.write_superblock(|superblock| superblock.clean = true).await?;
            self.flush().await?;
        }
        drop(turn);
        Ok(())
    }

    pub(crate) fn groups(&self) -> &RefCell<Groups> {
        &self.0.groups
    }

    pub(crate) fn journal(&self) -> &RefCell<Option<Journal>> {
        &self.0.journal
    }

    /// Uses this journal for further commits.
    pub(crate) fn set_journal(&self, journal: Option<Journal>) {
        // The rest of a write set's memory is for the transaction that is being committed meanwhile.
        let most = (self.0.limits.data_bytes / self.0.geometry.block_bytes).max(MIN_SET);
        let room = journal.as_ref().map_or(usize::MAX, Journal::max_blocks);
        self.0.transactions.max_blocks.set(most.min(room));
        *self.0.journal.borrow_mut() = journal;
    }

    /// Changes the superblock in memory.
    pub(crate) fn with_superblock<R>(&self, with: impl FnOnce(&mut Superblock) -> R) -> R {
        with(&mut self.0.superblock.borrow_mut())
    }

    /// Makes the volume read-only, unless it already is.
    pub(crate) fn forbid(&self, reason: ReadOnlyReason) {
        if self.0.read_only.get().is_none() {
            self.0.read_only.set(Some(reason));
        }
    }

    /// Overlays blocks of the disk in memory, permanently.
    pub(crate) fn overlay(&self, block: u32, bytes: &[u8]) -> Result<(), Error> {
        let mut own = Vec::new();
        own.try_reserve_exact(bytes.len()).map_err(|_| Error::Read(0, DiskError::NoMemory))?;
        own.extend_from_slice(bytes);
        self.forget_blocks(block, 1);
        self.0.sets.borrow_mut().frozen.insert(block, Block { bytes: own, is_new: false });
        Ok(())
    }
}

async fn read_exactly<S: BlockSource>(source: &S, offset: u64, bytes: usize) -> Result<S::Buffer, Error> {
    let failed = |error| Error::Read(offset, error);
    let buffer = source.allocate(bytes).map_err(failed)?;
    let (buffer, result) = source.read(offset, buffer, bytes).await;
    result.map_err(failed)?;
    buffer.filter(|buffer| buffer.len() >= bytes).ok_or(failed(DiskError::Short))
}

async fn read_superblock<S: BlockSource>(source: &S) -> Result<Superblock, Error> {
    let disk_bytes = source.size_bytes();
    if disk_bytes < superblock::OFFSET + superblock::BYTES as u64 {
        return Err(FormatError::TooSmall(disk_bytes).into());
    }
    let bytes = read_exactly(source, superblock::OFFSET, superblock::BYTES).await?;
    let view = superblock::View::new(&bytes).ok_or(FormatError::TooSmall(disk_bytes))?;
    match Superblock::parse(&view) {
        Err(FormatError::NotExt2 { found, .. }) => {
            Err(FormatError::NotExt2 { found, backup: find_backup(source).await }.into())
        }
        parsed => Ok(parsed?),
    }
}

/// Searches for a backup superblock at the start of group 1, for the default group sizes.
async fn find_backup<S: BlockSource>(source: &S) -> Option<(u64, u32)> {
    for (log_block_size, block) in [(0, 8193), (1, 16384), (2, 32768)] {
        let block_bytes = 1024u32 << log_block_size;
        let offset = block * u64::from(block_bytes);
        if offset + superblock::BYTES as u64 > source.size_bytes() {
            continue;
        }
        let Ok(bytes) = read_exactly(source, offset, superblock::BYTES).await else { continue };
        let view = superblock::View::new(&bytes);
        if view.is_some_and(|view| view.magic() == superblock::MAGIC && view.log_block_size() == log_block_size) {
            return Some((block, block_bytes));
        }
    }
    None
}
