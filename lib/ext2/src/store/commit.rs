//! Commits: make a transaction durable atomically.
//!
//! With a journal: (1) write file data in place and copies of the metadata to the log, flush; (2) write the commit
//! block and the journal superblock that makes the log start at this transaction, flush; (3) write the metadata in
//! place, concurrently with later operations. The flush in step 1 of the next commit makes (3) durable before its step
//! 2 drops this transaction from the log; the next transaction lies behind this one in the log, so that whichever part
//! of a step reached the disk before a power loss, the log holds this transaction, the next one, or both, complete.
//!
//! Without a journal: file data, flush; metadata not yet referenced, flush; the rest, flush.

use alloc::vec::Vec;
use core::future::Future;

use task_sync::Mode;

use super::pages::bits;
use super::tasks::each;
use super::{Shared, Store};
use crate::error::{DiskError, Error, ReadOnlyReason};
use crate::format::superblock::{self, Superblock};
use crate::format::{read_u16, read_u32, write_u16, write_u32};
use crate::source::BlockSource;

impl<S: BlockSource> Store<S> {
    /// Makes all changes and writes until now durable. Concurrent callers share the work. Also fails if file data could
    /// not be written since the last call; that data is kept and retried.
    pub(crate) async fn commit(&self) -> Result<(), Error> {
        self.commit_transaction().await?;
        self.0.data_error.take().map_or(Ok(()), Err)
    }

    /// Returns whether there are changes to commit.
    pub(crate) fn has_changes(&self) -> bool {
        !self.0.sets.borrow().running.is_empty() || self.0.pages.borrow().unwritten > 0
    }

    /// Commits, leaving errors of file data to be reported by a later sync.
    pub(super) async fn commit_transaction(&self) -> Result<(), Error> {
        let transactions = &self.0.transactions;
        if !transactions.is_started.get() && !self.has_changes() {
            return Ok(());
        }
        let target = transactions.running.get();
        let turn = transactions.commit.acquire(Mode::Exclusive).await;
        if transactions.first_uncommitted.get() > target {
            return Ok(());
        }
        self.check_writable()?;
        transactions.freeze().await;
        let blocks = self.freeze_transaction();
        transactions.thaw();
        // Writes of the next transaction into blocks of this one are included, which does no harm.
        self.0.data_error.set(None);
        self.write_all_data().await;
        let has_journal = self.0.journal.borrow().is_some();
        match (blocks.is_empty(), has_journal) {
            (true, _) => self.flush().await?,
            (false, true) => self.log(&blocks).await?,
            (false, false) => self.write_in_order(&blocks).await?,
        }
        transactions.first_uncommitted.set(target + 1);
        transactions.commits.set(transactions.commits.get() + 1);
        self.0.groups.borrow_mut().wake_resting();
        if has_journal && !blocks.is_empty() {
            let store = self.clone();
            self.0.source.spawn(async move {
                // The failure is recorded as the reason for becoming read-only.
                store.write_home(blocks).await.unwrap_or(());
                drop(turn);
            });
        } else {
            self.settle_frozen(&blocks);
        }
        Ok(())
    }

    /// Drives transfers concurrently, up to the disk's limit.
    pub(crate) async fn each<F: Future<Output = Result<(), Error>>>(
        &self,
        next: impl FnMut() -> Option<F>,
    ) -> Result<(), Error> {
        each(self.0.limits.requests, next).await
    }

    /// Calls `look` with a block of the transaction that is being committed.
    pub(crate) fn with_frozen<R>(&self, block: u32, look: impl FnOnce(&[u8]) -> R) -> Option<R> {
        self.0.sets.borrow().frozen.get(&block).map(|own| look(&own.bytes))
    }

    /// Closes the running transaction: its blocks, with counts filled in, are frozen. Returns their numbers.
    pub(crate) fn freeze_transaction(&self) -> Vec<u32> {
        let geometry = &self.0.geometry;
        let mut groups = self.0.groups.borrow_mut();
        let counts = groups.free_counts();
        let mut sets = self.0.sets.borrow_mut();
        for group in groups.take_changed() {
            let (block, start) = geometry.descriptor_place(group);
            if let Some(descriptor) = sets.running.get_mut(&block).and_then(|own| own.bytes.get_mut(start..)) {
                groups.store(group, descriptor);
            }
        }
        let only_superblock = sets.running.len() == 1 && sets.running.contains_key(&geometry.first_data_block);
        if let Some(own) = sets.running.get_mut(&geometry.first_data_block) {
            let superblock = self.0.superblock.borrow();
            let start = if geometry.first_data_block == 0 { superblock::OFFSET as usize } else { 0 };
            let bytes = own.bytes.get_mut(start..).unwrap_or(&mut []);
            // A change without effect needs no write.
            if only_superblock && !differs(&superblock, bytes) {
                if let Some(unused) = sets.running.remove(&geometry.first_data_block) {
                    sets.keep(unused);
                }
            } else {
                store_superblock(&superblock, counts, self.now_s(), bytes);
            }
        }
        groups.freeze();
        let transactions = &self.0.transactions;
        transactions.running.set(transactions.running.get() + 1);
        let blocks = sets.running.keys().copied().collect();
        // Frozen blocks remain only after a failure, and then the newer ones count.
        let mut running = core::mem::take(&mut sets.running);
        sets.frozen.append(&mut running);
        blocks
    }

    /// Commits without a journal.
    async fn write_in_order(&self, blocks: &[u32]) -> Result<(), Error> {
        self.flush().await?;
        let is_new = |block: &u32| self.0.sets.borrow().frozen.get(block).is_some_and(|own| own.is_new);
        let (new, rest): (Vec<u32>, Vec<u32>) = blocks.iter().copied().partition(is_new);
        for part in [new, rest] {
            if !part.is_empty() {
                self.write_frozen(&part).await?;
                self.flush().await?;
            }
        }
        Ok(())
    }

    /// Writes committed blocks in place.
    pub(crate) async fn write_home(&self, blocks: Vec<u32>) -> Result<(), Error> {
        self.write_frozen(&blocks).await?;
        self.settle_frozen(&blocks);
        Ok(())
    }

    /// Writes frozen blocks, given in ascending order, in place.
    async fn write_frozen(&self, blocks: &[u32]) -> Result<(), Error> {
        let most = self.0.geometry.page_blocks;
        let mut rest = blocks;
        let next = || {
            let row = rest.iter().zip(rest.first().copied()?..).take(most);
            let count = row.take_while(|(block, expected)| *block == expected).count();
            let (row, after) = rest.split_at(count);
            rest = after;
            Some(self.write_row(row))
        };
        each(self.0.limits.requests, next).await
    }

    async fn write_row(&self, row: &[u32]) -> Result<(), Error> {
        let Some(&first) = row.first() else { return Ok(()) };
        let block_bytes = self.0.geometry.block_bytes;
        let fill = |target: &mut [u8]| {
            let sets = self.0.sets.borrow();
            for (block, target) in row.iter().zip(target.chunks_exact_mut(block_bytes)) {
                if let Some(own) = sets.frozen.get(block) {
                    target.copy_from_slice(&own.bytes);
                }
            }
        };
        self.write_metadata(first, row.len(), fill).await
    }

    /// Writes contiguous metadata blocks, at most a page's, filled in by the closure.
    pub(crate) async fn write_metadata(
        &self,
        first: u32,
        count: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<(), Error> {
        let bytes = count * self.0.geometry.block_bytes;
        let offset = self.0.geometry.offset(first);
        let failed = |error| self.fail(ReadOnlyReason::WriteFailed(offset, error));
        let mut buffer = self.take_buffer_for_commit().await.map_err(failed)?;
        fill(buffer.get_mut(..bytes).ok_or(Error::Write(offset, DiskError::Short))?);
        let (buffer, result) = self.0.source.write(offset, buffer, bytes).await;
        self.give_back(buffer);
        result.map_err(failed)
    }

    /// Takes a buffer even when memory is short: one is reserved for commits, and callers wait for it.
    async fn take_buffer_for_commit(&self) -> Result<S::Buffer, DiskError> {
        loop {
            match self.take_buffer() {
                Err(DiskError::NoMemory) => {}
                other => return other,
            }
            let kept = self.0.kept.borrow_mut().pop();
            match kept {
                Some(buffer) => return Ok(buffer),
                None if self.0.has_kept.get() => self.0.room.until(|| !self.0.kept.borrow().is_empty()).await,
                None => return Err(DiskError::NoMemory),
            }
        }
    }

    /// Removes blocks that are in place from the frozen set.
    fn settle_frozen(&self, blocks: &[u32]) {
        let geometry = &self.0.geometry;
        let mut sets = self.0.sets.borrow_mut();
        let mut pages = self.0.pages.borrow_mut();
        for &block in blocks {
            let Some(own) = sets.frozen.remove(&block) else { continue };
            let (index, bit) = geometry.page_of(block);
            if !sets.running.contains_key(&block)
                && let Some(page) = pages.page_mut(index)
            {
                // A read in progress may return its previous content.
                page.spoiled |= bits(bit, 1);
                let range = bit * geometry.block_bytes..(bit + 1) * geometry.block_bytes;
                // Unless it belongs to a file again.
                if page.valid >> bit & 1 == 0
                    && let Some(target) = page.buffer.as_mut().and_then(|buffer| buffer.get_mut(range))
                {
                    target.copy_from_slice(&own.bytes);
                    page.valid |= bits(bit, 1);
                }
            }
            sets.keep(own);
        }
    }

    /// Changes the superblock on the disk at once, while no change is active.
    pub(crate) async fn write_superblock(&self, with: impl FnOnce(&mut Superblock)) -> Result<(), Error> {
        let block = self.0.geometry.first_data_block;
        let mut bytes = self.read_block(block, <[u8]>::to_vec).await?;
        with(&mut self.0.superblock.borrow_mut());
        let start = if block == 0 { superblock::OFFSET as usize } else { 0 };
        let counts = self.0.groups.borrow().free_counts();
        let own = bytes.get_mut(start..).unwrap_or(&mut []);
        store_superblock(&self.0.superblock.borrow(), counts, self.now_s(), own);
        self.write_metadata(block, 1, |target| target.copy_from_slice(&bytes)).await?;
        self.forget_blocks(block, 1);
        Ok(())
    }
}

impl<S: BlockSource> Shared<S> {
    /// Reserves a buffer for commits when memory is short.
    pub(super) fn keep_for_commit(&self, buffer: S::Buffer) {
        self.has_kept.set(true);
        self.kept.borrow_mut().push(buffer);
        self.room.notify_all();
    }
}

/// Returns whether the superblock differs from these bytes, apart from counts and times.
fn differs(superblock: &Superblock, bytes: &[u8]) -> bool {
    let mut changed = bytes.to_vec();
    store_superblock(superblock, None, read_u32(bytes, superblock::field::WRITE_TIME), &mut changed);
    changed != bytes
}

/// Stores the mutable fields of a superblock into its bytes.
fn store_superblock(superblock: &Superblock, counts: Option<(u32, u32)>, now_s: u32, bytes: &mut [u8]) {
    use superblock::field::*;
    if bytes.len() < superblock::BYTES {
        return;
    }
    if let Some((blocks, inodes)) = counts {
        write_u32(bytes, FREE_BLOCKS, blocks);
        write_u32(bytes, FREE_INODES, inodes);
    }
    write_u32(bytes, WRITE_TIME, now_s);
    let state = read_u16(bytes, STATE) & !superblock::STATE_CLEAN;
    write_u16(bytes, STATE, if superblock.clean { state | superblock::STATE_CLEAN } else { state });
    if read_u32(bytes, REVISION) == 0 && superblock.revision == 1 {
        // These bytes are undefined in revision 0.
        bytes[FIRST_INODE..UUID].fill(0);
        bytes[JOURNAL_UUID..HASH_SEED].fill(0);
    }
    write_u32(bytes, REVISION, superblock.revision);
    if superblock.revision == 0 {
        bytes[FIRST_INODE..UUID].fill(0);
        bytes[JOURNAL_UUID..HASH_SEED].fill(0);
        return;
    }
    write_u32(bytes, FIRST_INODE, superblock.first_inode);
    // At most 4096.
    write_u16(bytes, INODE_SIZE, superblock.inode_bytes as u16);
    write_u32(bytes, COMPATIBLE, superblock.compatible);
    write_u32(bytes, INCOMPATIBLE, superblock.incompatible);
    write_u32(bytes, READ_ONLY_COMPATIBLE, superblock.read_only_compatible);
    write_u32(bytes, JOURNAL_INODE, superblock.journal_inode);
    write_u32(bytes, LAST_ORPHAN, superblock.last_orphan);
}
