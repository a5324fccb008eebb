//! Truncating and extending files.
//!
//! Blocks are freed in pieces, from the end. Until all are freed the inode is on the orphan list with its new size, so
//! that the next mount completes a truncation that a crash interrupted. The new last block is copied, with zeros past
//! the end, rather than overwritten: until the change is committed, the old one may be needed.

use alloc::rc::Rc;

use task_sync::Mode;

use super::FileData;
use crate::block_map::Run;
use crate::block_map::truncate::TRUNCATE_BLOCKS;
use crate::error::Error;
use crate::format::inode::{Inode, Kind, flag};
use crate::inode::{InodePlace, Node};
use crate::source::BlockSource;
use crate::store::Change;

/// Maximum metadata blocks that a piece changes: besides the freed blocks, the inode, its predecessor on the orphan
/// list, the exchange of a block.
const SIZE_BLOCKS: usize = TRUNCATE_BLOCKS + 8;

impl<S: BlockSource> FileData<S> {
    /// Sets the size of an open file.
    pub(crate) async fn set_size(&self, node: &Rc<Node>, size: u64) -> Result<(), Error> {
        self.admission.check_writable()?;
        let _content = node.content.acquire(Mode::Exclusive).await;
        self.admission.check_writable()?;
        let inode = self.inodes.get_open(node).await?;
        if inode.kind != Kind::File {
            return Err(Error::NotAFile);
        }
        if inode.flags & (flag::IMMUTABLE | flag::APPEND_ONLY) != 0 {
            return Err(Error::Protected);
        }
        if size > self.max_size() && size > inode.size {
            return Err(Error::TooLarge);
        }
        if size >= inode.size { self.lengthen(&inode, size).await } else { self.shorten(&inode, size).await }
    }

    async fn lengthen(&self, inode: &Inode, size: u64) -> Result<(), Error> {
        if size > inode.size {
            self.clear_tail(inode, inode.size, size).await?;
        }
        let change = self.store.begin(1).await?;
        let place = self.inodes.fetch(&change, inode.number).await?;
        self.note_large(&change, size);
        self.change_size(&change, &place, size)
    }

    fn change_size(&self, change: &Change<S>, place: &InodePlace, size: u64) -> Result<(), Error> {
        let now = self.store.now_s();
        self.inodes.change(change, place, |inode| {
            inode.size = size;
            (inode.modified, inode.changed) = (now, now);
        })?;
        Ok(())
    }

    async fn shorten(&self, inode: &Inode, size: u64) -> Result<(), Error> {
        {
            let _orphans = self.orphans.lock().await;
            let change = self.store.begin_for(SIZE_BLOCKS, 1).await?;
            let place = self.inodes.fetch(&change, inode.number).await?;
            self.exchange_tail(&change, &place, inode, size).await?;
            self.orphans.add(&change, &place)?;
            self.change_size(&change, &place, size)?;
        }
        self.end_cut_locked(inode.number).await
    }

    /// Replaces the new last block by a copy with zeros past the end.
    async fn exchange_tail(
        &self,
        change: &Change<S>,
        place: &InodePlace,
        inode: &Inode,
        size: u64,
    ) -> Result<(), Error> {
        let block_bytes = self.blocks.block_bytes();
        let (logical, within) = (size / block_bytes, (size % block_bytes) as usize);
        if within == 0 {
            return Ok(());
        }
        let Run::Blocks { first: old, .. } = self.blocks.run(inode, logical, 1).await? else { return Ok(()) };
        let leaf = self.blocks.fetch_leaf(change, inode, logical).await?;
        let mut kept = alloc::vec![0; block_bytes as usize];
        self.store.read_data(old, 0, &mut kept[..within]).await?;
        let new = match self.store.allocator().allocate_blocks(change, old, 1).await {
            Ok((new, _)) => new,
            // In place then: a crash may leave the old size with zeros in the last block.
            Err(Error::NoSpace) => return self.store.write_data(old, within, &kept[within..], false).await,
            Err(error) => return Err(error),
        };
        let mut result = self.store.write_data(new, 0, &kept, true).await;
        if result.is_ok() {
            result = self.store.allocator().free_blocks(change, old, 1).await;
        }
        if let Err(error) = result {
            let _ = self.store.allocator().free_blocks(change, new, 1).await;
            return Err(error);
        }
        self.blocks.exchange_block(change, place, leaf, logical, new)
    }

    /// Completes a truncation that a crash interrupted.
    pub(crate) async fn finish_truncate(&self, number: u32) -> Result<(), Error> {
        let node = self.inodes.node(number);
        let _content = node.content.acquire(Mode::Exclusive).await;
        self.end_cut_locked(number).await
    }

    /// Frees the blocks past the end and removes the inode from the orphan list. Corruption is returned at the end.
    async fn end_cut_locked(&self, number: u32) -> Result<(), Error> {
        let mut damage = None;
        loop {
            let _orphans = self.orphans.lock().await;
            let change = self.store.begin(SIZE_BLOCKS).await?;
            let place = self.inodes.fetch(&change, number).await?;
            let inode = self.inodes.get_any(number).await?;
            if self.blocks.has_blocks(&inode) {
                let kept = inode.size.div_ceil(self.blocks.block_bytes());
                let piece = self.blocks.truncate(&change, &place, kept).await?;
                damage = damage.or(piece.damage);
                if !piece.is_last {
                    continue;
                }
            }
            if inode.links == 0 {
                // Unlinked meanwhile: it stays on the list until it is closed.
                break;
            }
            let newer = self.orphans.plan_removal(&change, number).await?;
            self.orphans.remove(&change, number, newer.as_ref())?;
            self.inodes.change(&change, &place, |inode| inode.deleted = 0)?;
            break;
        }
        damage.map_or(Ok(()), Err)
    }
}
