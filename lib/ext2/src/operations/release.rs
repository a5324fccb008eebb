//! Freeing what has no name and no reader any more.

use task_sync::Mode;

use crate::error::Error;
use crate::inode::InodePlace;
use crate::mapping::cut::CUT_BLOCKS;
use crate::source::BlockSource;
use crate::store::Change;
use crate::volume::Core;
use crate::wire::inode::{Inode, Kind};

/// Blocks that the end of a release changes at most besides a piece of the content: the block of attributes with
/// its bitmap, the neighbour on the list, the inode's bitmap.
const END_BLOCKS: usize = 8;
impl<S: BlockSource> Core<S> {
    /// Frees an inode and its content, if it has no name and is not open.
    pub(crate) async fn release(&self, number: u32) -> Result<(), Error> {
        let node = self.inodes.node(number);
        let _content = node.content.acquire(Mode::Exclusive).await;
        loop {
            if node.opens.get() != 0 || !self.is_orphan(number) {
                return Ok(());
            }
            let _orphans = self.orphan_lock.lock().await;
            let _attributes = self.attribute_lock.acquire(Mode::Exclusive).await;
            let change = self.store.begin(CUT_BLOCKS + END_BLOCKS).await?;
            let place = self.inodes.fetch(&change, number).await?;
            let inode = self.inodes.get_any(number).await?;
            if inode.links != 0 {
                return Ok(());
            }
            // What is damaged is let go of: there is nobody to tell.
            if !self.has_content(&inode) || self.cut(&change, &place, 0).await?.is_last {
                return self.end_release(&change, &place).await;
            }
        }
    }

    /// Whether the numbers in an inode are those of blocks.
    pub(crate) fn has_content(&self, inode: &Inode) -> bool {
        match inode.kind {
            Kind::File | Kind::Directory => true,
            Kind::SymbolicLink => !self.is_short_link(inode),
            Kind::CharacterDevice | Kind::BlockDevice | Kind::Fifo | Kind::Socket => false,
        }
    }

    async fn end_release(&self, change: &Change<S>, place: &InodePlace) -> Result<(), Error> {
        let number = place.number;
        let inode = self.inodes.get_any(number).await?;
        if inode.attribute_block != 0 {
            match self.plan_leaving_attributes(change, &inode).await {
                Ok(leaving) => self.leave_attributes(change, leaving)?,
                Err(Error::Corrupt(_)) => {}
                Err(error) => return Err(error),
            }
            let sectors = self.store.geometry().block_sectors();
            self.inodes.change(change, place, |inode| {
                inode.attribute_block = 0;
                inode.sectors = inode.sectors.saturating_sub(sectors);
            })?;
        }
        let newer = self.plan_leaving(change, number).await?;
        self.store.free_inode(change, number, inode.kind == Kind::Directory).await?;
        self.leave_orphans(change, number, newer.as_ref())?;
        let now = self.store.now_s();
        self.inodes.change(change, place, |inode| {
            // The numbers stay where they are no blocks': a link's target, which is nobody's any more.
            (inode.size, inode.sectors, inode.changed) = (0, 0, now);
            // Where there is no clock, it still must not be taken for a number on the list of orphans.
            inode.deleted = now.max(self.store.geometry().inodes);
        })?;
        self.inodes.forget(number);
        self.names.borrow_mut().forget(number);
        Ok(())
    }
}
