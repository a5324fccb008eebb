//! Metadata: read through the pages, edited in the write set.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::Store;
use super::pages::{Mask, bits};
use super::transaction::Change;
use crate::error::{DiskError, Error, ReadOnlyReason};
use crate::format::features::{COMPATIBLE_EXTENDED_ATTRIBUTES, READ_ONLY_LARGE_FILE};
use crate::source::BlockSource;

/// A block in a write set.
pub(crate) struct Block {
    pub(crate) bytes: Vec<u8>,
    /// Whether it was unused before this transaction.
    pub(crate) is_new: bool,
}

/// Blocks that were changed and are not yet in place.
#[derive(Default)]
pub(super) struct Sets {
    /// Blocks of the running transaction.
    pub(super) running: BTreeMap<u32, Block>,
    /// Blocks of the transaction that is being committed, or is committed but not yet in place.
    pub(super) frozen: BTreeMap<u32, Block>,
    /// Unused block buffers.
    spare: Vec<Vec<u8>>,
}

/// Maximum block buffers kept for the next transaction.
const MAX_SPARE: usize = 256;

impl Sets {
    /// Returns the bytes of a block, if it is in a set.
    pub(super) fn get(&self, block: u32) -> Option<&[u8]> {
        let found = self.running.get(&block).or_else(|| self.frozen.get(&block));
        found.map(|block| block.bytes.as_slice())
    }

    /// Returns the blocks of an extent that are in a set.
    pub(super) fn mask(&self, first: u32, count: usize) -> Mask {
        let mut mask = 0;
        if count > 0 && !(self.running.is_empty() && self.frozen.is_empty()) {
            let range = first..=first.saturating_add(count as u32 - 1);
            for (block, _) in self.running.range(range.clone()).chain(self.frozen.range(range)) {
                mask |= bits((block - first) as usize, 1);
            }
        }
        mask
    }

    /// Returns a block buffer with unspecified content.
    fn memory(&mut self, bytes: usize) -> Option<Vec<u8>> {
        if let Some(memory) = self.spare.pop() {
            return Some(memory);
        }
        let mut memory = Vec::new();
        memory.try_reserve_exact(bytes).ok()?;
        memory.resize(bytes, 0);
        Some(memory)
    }

    pub(super) fn keep(&mut self, block: Block) {
        if self.spare.len() < MAX_SPARE {
            self.spare.push(block.bytes);
        }
    }
}

/// A feature that a volume gets on first use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Feature {
    /// Files may be larger than 2 GiB.
    LargeFile,
    /// Inodes may have extended attributes.
    ExtendedAttributes,
}

impl<S: BlockSource> Store<S> {
    /// Calls `look` with the current content of a metadata block. The closure must not use the store.
    pub(crate) async fn read_block<R>(&self, block: u32, look: impl FnOnce(&[u8]) -> R) -> Result<R, Error> {
        let mut look = Some(look);
        loop {
            if let Some(result) = self.look_at(block, &mut look) {
                return Ok(result);
            }
            self.load_block(block).await?;
        }
    }

    fn look_at<R, F: FnOnce(&[u8]) -> R>(&self, block: u32, look: &mut Option<F>) -> Option<R> {
        let geometry = &self.0.geometry;
        let (index, bit) = geometry.page_of(block);
        let mut pages = self.0.pages.borrow_mut();
        if let Some(slot) = pages.find(index)
            && let Some(page) = pages.get(slot)
            && page.valid >> bit & 1 != 0
            && let Some(buffer) = &page.buffer
        {
            let result = look.take()?(&buffer[bit * geometry.block_bytes..(bit + 1) * geometry.block_bytes]);
            pages.hits += 1;
            pages.touch(slot);
            return Some(result);
        }
        drop(pages);
        let sets = self.0.sets.borrow();
        let bytes = sets.get(block)?;
        Some(look.take()?(bytes))
    }

    /// Reads the page of a block, or waits for the task that does.
    async fn load_block(&self, block: u32) -> Result<(), Error> {
        let geometry = &self.0.geometry;
        if block >= geometry.blocks {
            return Err(Error::Read(geometry.offset(block), DiskError::Short));
        }
        let (index, bit) = geometry.page_of(block);
        self.load(index, bits(bit, 1)).await
    }

    /// Modifies a metadata block. The closure must not use the store.
    pub(crate) async fn edit<R>(
        &self,
        change: &Change<S>,
        block: u32,
        with: impl FnOnce(&mut [u8]) -> R,
    ) -> Result<R, Error> {
        let mut with = Some(with);
        loop {
            if let Some(result) = self.edit_in_memory(change, block, &mut with)? {
                return Ok(result);
            }
            self.load_block(block).await?;
        }
    }

    /// Modifies a metadata block if it is in memory, as every block already edited by this change is.
    pub(crate) fn try_edit<R>(&self, change: &Change<S>, block: u32, with: impl FnOnce(&mut [u8]) -> R) -> Option<R> {
        self.edit_in_memory(change, block, &mut Some(with)).ok().flatten()
    }

    /// Adds a block to the change, so that [`Store::change_block`] cannot fail for lack of it.
    pub(crate) async fn fetch_block(&self, change: &Change<S>, block: u32) -> Result<(), Error> {
        self.edit(change, block, |_| ()).await
    }

    /// Changes a block that was [fetched](Store::fetch_block) or created in this change.
    pub(crate) fn change_block<R>(
        &self,
        change: &Change<S>,
        block: u32,
        with: impl FnOnce(&mut [u8]) -> R,
    ) -> Result<R, Error> {
        // It stays in the write set for the life of the change.
        self.try_edit(change, block, with).ok_or(Error::NotFound)
    }

    fn edit_in_memory<R, F: FnOnce(&mut [u8]) -> R>(
        &self,
        _change: &Change<S>,
        block: u32,
        with: &mut Option<F>,
    ) -> Result<Option<R>, Error> {
        {
            let mut sets = self.0.sets.borrow_mut();
            if let Some(own) = sets.running.get_mut(&block) {
                return Ok(with.take().map(|with| with(&mut own.bytes)));
            }
        }
        let mut memory = self.block_memory()?;
        if self.look_at(block, &mut Some(|bytes: &[u8]| memory.copy_from_slice(bytes))).is_none() {
            self.0.sets.borrow_mut().keep(Block { bytes: memory, is_new: false });
            return Ok(None);
        }
        let result = with.take().map(|with| with(&mut memory));
        self.put(block, Block { bytes: memory, is_new: false });
        Ok(result)
    }

    /// Turns a newly allocated block into metadata: zeroed before the closure modifies it.
    pub(crate) fn create(&self, _change: &Change<S>, block: u32, with: impl FnOnce(&mut [u8])) -> Result<(), Error> {
        let mut memory = self.block_memory()?;
        memory.fill(0);
        with(&mut memory);
        self.put(block, Block { bytes: memory, is_new: true });
        Ok(())
    }

    fn block_memory(&self) -> Result<Vec<u8>, Error> {
        let mut sets = self.0.sets.borrow_mut();
        if sets.running.len() >= self.0.transactions.max_blocks.get() {
            drop(sets);
            return Err(self.fail(ReadOnlyReason::TooLarge));
        }
        sets.memory(self.0.geometry.block_bytes).ok_or(Error::Write(0, DiskError::NoMemory))
    }

    /// Puts a block into the write set, and invalidates it in its page.
    fn put(&self, block: u32, content: Block) {
        let (index, bit) = self.0.geometry.page_of(block);
        self.0.pages.borrow_mut().forget(index, bits(bit, 1));
        let mut sets = self.0.sets.borrow_mut();
        if let Some(former) = sets.running.insert(block, content) {
            sets.keep(former);
        }
    }

    /// Drops all cached content of an extent that is no longer referenced.
    pub(crate) fn forget_blocks(&self, first: u32, count: u32) {
        let geometry = &self.0.geometry;
        let end = first + count;
        let mut block = first;
        let mut pages = self.0.pages.borrow_mut();
        while block < end {
            let (index, bit) = geometry.page_of(block);
            let here = ((geometry.page_blocks - bit) as u32).min(end - block);
            pages.forget(index, bits(bit, here as usize));
            block += here;
        }
        drop(pages);
        let mut sets = self.0.sets.borrow_mut();
        while let Some((&block, _)) = sets.running.range(first..end).next() {
            if let Some(forgotten) = sets.running.remove(&block) {
                sets.keep(forgotten);
            }
        }
    }

    /// Sets the head of the orphan list.
    pub(crate) fn set_orphan_head(&self, _change: &Change<S>, number: u32) {
        self.0.superblock.borrow_mut().last_orphan = number;
    }

    /// Sets a feature in the superblock.
    pub(crate) fn add_feature(&self, _change: &Change<S>, feature: Feature) {
        let mut superblock = self.0.superblock.borrow_mut();
        superblock.revision = 1;
        match feature {
            Feature::LargeFile => superblock.read_only_compatible |= READ_ONLY_LARGE_FILE,
            Feature::ExtendedAttributes => superblock.compatible |= COMPATIBLE_EXTENDED_ATTRIBUTES,
        }
    }
}
