//! Extended attributes of files and directories.
//!
//! New values are stored in the inode's attribute block (`i_file_acl`), which Linux's ext2 and ext4 read; values that
//! ext4 stored in the inode are read, and move to the block when they are set. A shared block is copied on write. An
//! update is one change of the store under the lock, because inodes share the reference count of a block.

use alloc::rc::Rc;
use alloc::vec::Vec;

use task_sync::{Mode, RwLock, RwLockGuard};

use crate::admission::Admission;
use crate::error::Error;
use crate::format::attributes::{self, ExtendedAttribute, Place};
use crate::format::error::{Problem, Structure};
use crate::format::inode::{Inode, Kind};
use crate::inode::{InodeTable, check_unprotected};
use crate::source::BlockSource;
use crate::store::{Change, Feature, Store};

/// Maximum metadata blocks that setting an attribute changes: the inode, the old block, the new one, and a bitmap and
/// a descriptor of each.
const SET_BLOCKS: usize = 7;

/// Content of an attribute block.
pub(crate) struct Held {
    block: u32,
    users: u32,
    pub(crate) attributes: Vec<ExtendedAttribute>,
}

/// How an inode's reference to its attribute block is dropped.
pub(crate) enum Leaving {
    /// Shared: the block, and the references that remain.
    Shared(u32, u32),
    /// It was the last reference, and the block is freed.
    Freed,
}

/// Owns the lock that protects attribute blocks, which inodes may share.
pub(crate) struct ExtendedAttributes<S: BlockSource> {
    lock: RwLock,
    store: Store<S>,
    admission: Rc<Admission<S>>,
    inodes: Rc<InodeTable<S>>,
}

impl<S: BlockSource> ExtendedAttributes<S> {
    pub(crate) fn new(
        store: Store<S>,
        admission: Rc<Admission<S>>,
        inodes: Rc<InodeTable<S>>,
    ) -> ExtendedAttributes<S> {
        ExtendedAttributes { lock: RwLock::default(), store, admission, inodes }
    }

    /// Waits for the lock: shared to read attributes, exclusive to change them.
    pub(crate) async fn lock(&self, mode: Mode) -> RwLockGuard {
        self.lock.acquire(mode).await
    }

    pub(crate) async fn change_attributes(
        &self,
        number: u32,
        namespace: u8,
        name: &[u8],
        new: Option<ExtendedAttribute>,
    ) -> Result<(), Error> {
        self.admission.check_writable()?;
        let _attributes = self.lock.acquire(Mode::Exclusive).await;
        self.admission.check_writable()?;
        let change = self.store.begin_for(SET_BLOCKS, 1).await?;
        let place = self.inodes.fetch(&change, number).await?;
        let inode = self.inodes.get(number).await?;
        check_unprotected(&inode)?;
        if !matches!(inode.kind, Kind::File | Kind::Directory) {
            return Err(Error::NotAFile);
        }
        let is_it = |one: &ExtendedAttribute| one.namespace == namespace && one.name == name;
        let mut inline = self.inline_attributes(&inode).await?;
        let held = self.held_attributes(&inode).await?;
        let mut own = held.as_ref().map_or(Vec::new(), |held| held.attributes.clone());
        let had_inline = inline.iter().any(is_it);
        let was_there = had_inline || own.iter().any(is_it);
        if new.is_none() && !was_there {
            return Err(Error::NotFound);
        }
        inline.retain(|one| !is_it(one));
        own.retain(|one| !is_it(one));
        own.extend(new);
        if attributes::block_bytes_of(&own) > self.store.block_bytes() {
            return Err(Error::NoSpace);
        }
        let block = self.exchange_attributes(&change, &inode, held, &own).await?;
        if had_inline {
            self.inodes.change_bytes(&change, &place, |bytes| {
                if let Some(start) = attributes::inline_start(bytes) {
                    attributes::store_inline(&mut bytes[start..], &inline);
                }
            })?;
        }
        if block != 0 {
            self.store.add_feature(&change, Feature::ExtendedAttributes);
        }
        let (now, sectors) = (self.store.now_s(), self.store.geometry().block_sectors());
        self.inodes.change(&change, &place, |inode| {
            match (inode.attribute_block, block) {
                (0, 0) => {}
                (0, _) => inode.sectors = inode.sectors.saturating_add(sectors),
                (_, 0) => inode.sectors = inode.sectors.saturating_sub(sectors),
                _ => {}
            }
            inode.attribute_block = block;
            inode.changed = now;
        })?;
        Ok(())
    }

    /// Replaces the attributes in the inode's block. Returns the block that the inode then refers to, or 0. On failure
    /// nothing was changed.
    async fn exchange_attributes(
        &self,
        change: &Change<S>,
        inode: &Inode,
        held: Option<Held>,
        own: &[ExtendedAttribute],
    ) -> Result<u32, Error> {
        match held {
            None if own.is_empty() => Ok(0),
            Some(held) if held.attributes == own => Ok(held.block),
            Some(held) if held.users <= 1 && !own.is_empty() => {
                let fill = |bytes: &mut [u8]| attributes::store_block(bytes, own, 1);
                self.store.edit(change, held.block, fill).await?;
                Ok(held.block)
            }
            Some(_) if own.is_empty() => {
                let leaving = self.plan_release(change, inode).await?;
                self.release(change, leaving)?;
                Ok(0)
            }
            held => {
                let goal = self.store.geometry().inode_goal(inode.number);
                let (new, _) = self.store.allocator().allocate_blocks(change, goal, 1).await?;
                let made = self.make_attributes(change, inode, new, own, held.is_some()).await;
                if made.is_err() {
                    // A block that cannot be freed leaks until the next check.
                    let _ = self.store.allocator().free_blocks(change, new, 1).await;
                }
                made.map(|()| new)
            }
        }
    }

    async fn make_attributes(
        &self,
        change: &Change<S>,
        inode: &Inode,
        new: u32,
        own: &[ExtendedAttribute],
        leaves: bool,
    ) -> Result<(), Error> {
        let leaving = if leaves { Some(self.plan_release(change, inode).await?) } else { None };
        self.store.create(change, new, |bytes| attributes::store_block(bytes, own, 1))?;
        leaving.map_or(Ok(()), |leaving| self.release(change, leaving))
    }

    /// The attributes stored in the inode.
    pub(crate) async fn inline_attributes(&self, inode: &Inode) -> Result<Vec<ExtendedAttribute>, Error> {
        if !inode.has_inline_attributes {
            return Ok(Vec::new());
        }
        let look = |bytes: &[u8]| {
            let Some(start) = attributes::inline_start(bytes) else { return Some(Vec::new()) };
            Some(attributes::entries(&bytes[start..], Place::Inode)?.iter().map(|entry| entry.to_attribute()).collect())
        };
        self.inodes.read_bytes(inode.number, look).await?.ok_or_else(|| {
            let problem = Problem::Missing("what entries and values say of each other");
            Error::corrupt(Structure::ExtendedAttributes(inode.number), inode.home_block, problem)
        })
    }

    /// The attribute block of an inode, if it has one.
    pub(crate) async fn held_attributes(&self, inode: &Inode) -> Result<Option<Held>, Error> {
        let block = inode.attribute_block;
        if block == 0 {
            return Ok(None);
        }
        self.check_attribute_block(inode)?;
        let look = |bytes: &[u8]| {
            let entries = attributes::entries(bytes, Place::Block)?;
            let attributes = entries.iter().map(|entry| entry.to_attribute()).collect();
            Some(Held { block, users: attributes::users(bytes)?, attributes })
        };
        let held = self.store.read_block(block, look).await?;
        held.map(Some).ok_or_else(|| {
            let problem = Problem::Missing("a block of attributes without contradictions");
            Error::corrupt(Structure::ExtendedAttributes(inode.number), block.into(), problem)
        })
    }

    fn check_attribute_block(&self, inode: &Inode) -> Result<(), Error> {
        if self.store.geometry().contains(inode.attribute_block, 1) {
            return Ok(());
        }
        let problem = Problem::Meaningless { field: "file_acl", value: inode.attribute_block.into() };
        Err(Error::corrupt(Structure::Inode(inode.number), inode.home_block, problem))
    }

    /// Plans to drop the attribute block of an inode; the last reference frees the block at once. The lock is held.
    pub(crate) async fn plan_release(&self, change: &Change<S>, inode: &Inode) -> Result<Leaving, Error> {
        let block = inode.attribute_block;
        self.check_attribute_block(inode)?;
        let users = self.store.read_block(block, attributes::users).await?.ok_or_else(|| {
            let problem = Problem::Missing("a block of extended attributes");
            Error::corrupt(Structure::ExtendedAttributes(inode.number), block.into(), problem)
        })?;
        if users > 1 {
            self.store.fetch_block(change, block).await?;
            return Ok(Leaving::Shared(block, users - 1));
        }
        self.store.allocator().free_blocks(change, block, 1).await?;
        Ok(Leaving::Freed)
    }

    /// Drops an attribute block as planned.
    pub(crate) fn release(&self, change: &Change<S>, leaving: Leaving) -> Result<(), Error> {
        match leaving {
            Leaving::Shared(block, users) => {
                self.store.change_block(change, block, |bytes| attributes::set_users(bytes, users))
            }
            Leaving::Freed => Ok(()),
        }
    }
}
