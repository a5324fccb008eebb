//! The inodes of a mounted volume: looking them up, and changing them.
//!
//! What an inode says is in its block, which the write set has where it was changed. The cache holds copies that
//! are replaced whenever the block is changed, so that a change is never lost between two tasks: it is made to what
//! the block says at that moment, in one piece. Not here: who may change what when; the locks are `volume`'s.

use alloc::rc::Rc;
use core::cell::Cell;

use task_sync::RwLock;

use crate::error::{Error, Problem, Structure};
use crate::source::BlockSource;
use crate::store::Change;
use crate::volume::Core;
use crate::wire::attributes;
use crate::wire::inode::{self, Inode};

/// Bytes that a cached inode counts for, its place in the cache's map included.
const INODE_COST: usize = size_of::<Inode>() + 64;

/// What is known of an inode that somebody works with, beyond what the disk says.
pub(crate) struct Node {
    pub(crate) number: u32,
    /// Held shared to read content or names, alone to change them.
    pub(crate) content: RwLock,
    /// How often it is open.
    pub(crate) opens: Cell<u32>,
    /// Its content was taken from those who have it open, and the number may be another's by now.
    pub(crate) is_gone: Cell<bool>,
}

/// Where an inode is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InodePlace {
    pub(crate) number: u32,
    block: u32,
    start: usize,
}

impl<S: BlockSource> Core<S> {
    /// What there is to know of an inode as long as somebody works with it.
    pub(crate) fn node(&self, number: u32) -> Rc<Node> {
        let mut nodes = self.nodes.borrow_mut();
        if let Some(node) = nodes.places.get(&number).and_then(alloc::rc::Weak::upgrade) {
            return node;
        }
        let node = Rc::new(Node { number, content: RwLock::default(), opens: Cell::new(0), is_gone: Cell::new(false) });
        nodes.insert(number, &node);
        node
    }

    /// How often an inode is open.
    pub(crate) fn opens(&self, number: u32) -> u32 {
        let nodes = self.nodes.borrow();
        nodes.places.get(&number).and_then(alloc::rc::Weak::upgrade).map_or(0, |node| node.opens.get())
    }

    /// An inode that someone knows the number of. One that has lost its last name is found as long as it is open.
    pub(crate) async fn inode(&self, number: u32) -> Result<Inode, Error> {
        let inode = self.any_inode(number).await?;
        if inode.links == 0 && self.opens(number) == 0 { Err(Error::NotFound) } else { Ok(inode) }
    }

    /// The inode that a folder's entry names. It has to be in use.
    pub(crate) async fn named_inode(&self, number: u32) -> Result<Inode, Error> {
        let inode = self.any_inode(number).await?;
        if inode.links == 0 {
            let problem = Problem::Missing("a name (the link count is 0, so the inode is not in use)");
            return Err(Error::corrupt(Structure::Inode(number), inode.home_block, problem));
        }
        Ok(inode)
    }

    /// An inode in whatever state.
    pub(crate) async fn any_inode(&self, number: u32) -> Result<Inode, Error> {
        let cached = self.inodes.borrow_mut().get(number);
        if let Some(inode) = cached {
            return Ok(inode);
        }
        let place = self.inode_place(number).await?;
        let inode = self.store.read_block(place.block, |block| self.parse(&place, block)).await??;
        self.inodes.borrow_mut().insert(number, inode, INODE_COST);
        Ok(inode)
    }

    /// Where an inode is. The ones that the format keeps for itself are no one's.
    async fn inode_place(&self, number: u32) -> Result<InodePlace, Error> {
        let superblock = &self.superblock;
        if number != crate::ROOT_INODE && (number < superblock.first_inode || number > superblock.inodes) {
            let (value, least, most) = (number.into(), superblock.first_inode.into(), superblock.inodes.into());
            let problem = Problem::OutOfRange { field: "its number", value, least, most };
            return Err(Error::corrupt(Structure::Inode(number), superblock.first_data_block.into(), problem));
        }
        let (block, start) = self.store.inode_place(number).await?;
        Ok(InodePlace { number, block, start })
    }

    fn parse(&self, place: &InodePlace, block: &[u8]) -> Result<Inode, Error> {
        let home_block = u64::from(place.block);
        let damaged = |problem| Error::corrupt(Structure::Inode(place.number), home_block, problem);
        let end = place.start + self.superblock.inode_bytes as usize;
        let bytes = block.get(place.start..end).ok_or(damaged(Problem::Missing("its end")))?;
        let view = inode::View::new(bytes).ok_or(damaged(Problem::Missing("its end")))?;
        let mut inode =
            Inode::parse_any(place.number, home_block, &view, self.superblock.largest_file()).map_err(damaged)?;
        inode.has_inline_attributes = attributes::inline_start(bytes).is_some();
        if inode.has_extended_attributes() {
            self.has_seen_attributes.set(true);
        }
        Ok(inode)
    }

    /// Brings an inode's block into the change, so that changing the inode cannot fail for want of it.
    pub(crate) async fn fetch_inode(&self, change: &Change<S>, number: u32) -> Result<InodePlace, Error> {
        let place = self.inode_place(number).await?;
        self.fetch_block(change, place.block).await?;
        Ok(place)
    }

    /// Brings a block into the change, so that changing it cannot fail for want of it.
    pub(crate) async fn fetch_block(&self, change: &Change<S>, block: u32) -> Result<(), Error> {
        self.store.edit(change, block, |_| ()).await
    }

    /// Changes a block that was brought into the change.
    pub(crate) fn change_block<R>(
        &self,
        change: &Change<S>,
        block: u32,
        with: impl FnOnce(&mut [u8]) -> R,
    ) -> Result<R, Error> {
        // It is in the write set as long as the change lives.
        self.store.try_edit(change, block, with).ok_or(Error::NotFound)
    }

    /// Changes an inode whose block was brought into the change.
    pub(crate) fn change_inode(
        &self,
        change: &Change<S>,
        place: &InodePlace,
        with: impl FnOnce(&mut Inode),
    ) -> Result<Inode, Error> {
        let inode = self.change_block(change, place.block, |block| {
            let mut inode = self.parse(place, block)?;
            with(&mut inode);
            inode.store(self.inode_bytes(place, block));
            if inode.attribute_block != 0 {
                self.has_seen_attributes.set(true);
            }
            Ok(inode)
        })??;
        self.inodes.borrow_mut().insert(place.number, inode, INODE_COST);
        Ok(inode)
    }

    /// Writes a new inode whose block was brought into the change.
    pub(crate) fn write_inode(&self, change: &Change<S>, place: &InodePlace, inode: &Inode) -> Result<Inode, Error> {
        let inode = Inode { number: place.number, home_block: place.block.into(), ..*inode };
        self.change_block(change, place.block, |block| inode.store_new(self.inode_bytes(place, block)))?;
        self.inodes.borrow_mut().insert(place.number, inode, INODE_COST);
        Ok(inode)
    }

    /// Changes all bytes of an inode whose block was brought into the change; what is known of it stays.
    pub(crate) fn change_inode_bytes(
        &self,
        change: &Change<S>,
        place: &InodePlace,
        with: impl FnOnce(&mut [u8]),
    ) -> Result<(), Error> {
        self.change_block(change, place.block, |block| with(self.inode_bytes(place, block)))?;
        self.change_inode(change, place, |_| ()).map(drop)
    }

    /// Looks at all bytes of an inode.
    pub(crate) async fn read_inode_bytes<R>(&self, number: u32, look: impl FnOnce(&[u8]) -> R) -> Result<R, Error> {
        let place = self.inode_place(number).await?;
        let end = place.start + self.superblock.inode_bytes as usize;
        self.store.read_block(place.block, |block| look(block.get(place.start..end).unwrap_or(&[]))).await
    }

    fn inode_bytes<'a>(&self, place: &InodePlace, block: &'a mut [u8]) -> &'a mut [u8] {
        // `inode_place` gives places of whole inodes.
        &mut block[place.start..][..self.superblock.inode_bytes as usize]
    }
}
