//! Eviction: frees unlinked inodes that are not open.

use task_sync::Mode;

use crate::block_map::truncate::TRUNCATE_BLOCKS;
use crate::error::Error;
use crate::file_system::FileSystem;
use crate::format::error::FormatError;
use crate::format::inode::Kind;
use crate::inode::InodePlace;
use crate::source::BlockSource;
use crate::store::Change;

/// Maximum metadata blocks that the end of an eviction changes besides a piece of the content: the attribute block with
/// its bitmap, the predecessor on the orphan list, the inode bitmap.
const END_BLOCKS: usize = 8;

impl<S: BlockSource> FileSystem<S> {
    /// Frees an inode and its content, if it is unlinked and not open.
    pub(crate) async fn evict(&self, number: u32) -> Result<(), Error> {
        let node = self.inodes.node(number);
        let _content = node.content.acquire(Mode::Exclusive).await;
        loop {
            if node.opens.get() != 0 || !self.orphans.contains(number) {
                return Ok(());
            }
            let _orphans = self.orphans.lock().await;
            let _attributes = self.attributes.lock(Mode::Exclusive).await;
            let change = self.store.begin(TRUNCATE_BLOCKS + END_BLOCKS).await?;
            let place = self.inodes.fetch(&change, number).await?;
            let inode = self.inodes.get_any(number).await?;
            if inode.links != 0 {
                return Ok(());
            }
            // Blocks behind corruption leak until the next check; there is no caller to return the error to.
            if !self.blocks.has_blocks(&inode) || self.blocks.truncate(&change, &place, 0).await?.is_last {
                return self.finish_eviction(&change, &place).await;
            }
        }
    }

    async fn finish_eviction(&self, change: &Change<S>, place: &InodePlace) -> Result<(), Error> {
        let number = place.number;
        let inode = self.inodes.get_any(number).await?;
        if inode.attribute_block != 0 {
            match self.attributes.plan_release(change, &inode).await {
                Ok(leaving) => self.attributes.release(change, leaving)?,
                Err(Error::Format(FormatError::Corrupt(_))) => {}
                Err(error) => return Err(error),
            }
            let sectors = self.store.geometry().block_sectors();
            self.inodes.change(change, place, |inode| {
                inode.attribute_block = 0;
                inode.sectors = inode.sectors.saturating_sub(sectors);
            })?;
        }
        let newer = self.orphans.plan_removal(change, number).await?;
        self.store.allocator().free_inode(change, number, inode.kind == Kind::Directory).await?;
        self.orphans.remove(change, number, newer.as_ref())?;
        let now = self.store.now_s();
        self.inodes.change(change, place, |inode| {
            // Block numbers that are a fast symlink's target stay; nothing reads them.
            (inode.size, inode.sectors, inode.changed) = (0, 0, now);
            // Without a clock it still must not look like an inode number of the orphan list.
            inode.deleted = now.max(self.store.geometry().inodes);
        })?;
        self.inodes.forget(number);
        self.directories.forget(number);
        Ok(())
    }
}
