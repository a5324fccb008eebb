//! Removing directory entries.

use task_sync::Mode;

use super::{Namespace, check_name};
use crate::directory::Found;
use crate::error::Error;
use crate::format::error::{Problem, Structure};
use crate::format::inode::{Inode, Kind};
use crate::inode::check_unprotected;
use crate::source::BlockSource;
use crate::store::Change;

/// Maximum metadata blocks that a removal changes: the entry's, both inodes', the orphan list's.
const REMOVE_BLOCKS: usize = 4;

/// Expected target of the entry to remove.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum RemovalKind {
    Directory,
    /// Anything but a directory.
    NonDirectory,
}

impl<S: BlockSource> Namespace<S> {
    /// Returns the inode if it has no links left.
    pub(crate) async fn remove(&self, folder: u32, name: &[u8], what: RemovalKind) -> Result<Option<u32>, Error> {
        self.admission.check_writable()?;
        check_name(name)?;
        let _namespace = self.lock().await;
        let folder_node = self.inodes.node(folder);
        let _content = folder_node.content.acquire(Mode::Exclusive).await;
        self.admission.check_writable()?;
        self.remove_locked(folder, name, what).await
    }

    /// Removes the entry. Returns the inode if it has no links left.
    async fn remove_locked(&self, folder: u32, name: &[u8], what: RemovalKind) -> Result<Option<u32>, Error> {
        let parent = self.open_folder(folder).await?;
        let found = self.directories.find(&parent, name).await?.ok_or(Error::NotFound)?;
        let target = self.inodes.get_linked(found.inode).await?;
        match what {
            RemovalKind::Directory if target.kind != Kind::Directory => return Err(Error::NotADirectory),
            RemovalKind::NonDirectory if target.kind == Kind::Directory => return Err(Error::IsADirectory),
            _ => {}
        }
        check_unprotected(&parent)?;
        self.check_removable(&parent, &target).await?;
        let _orphans = self.orphans.lock().await;
        let change = self.store.begin(REMOVE_BLOCKS).await?;
        let parent_place = self.inodes.fetch(&change, folder).await?;
        self.fetch_entry(&change, &parent, &found).await?;
        let is_gone = self.plan_loss(&change, &target).await?;
        self.directories.remove_entry(&change, &parent_place, &found, name, &[])?;
        if what == RemovalKind::Directory {
            self.inodes.change(&change, &parent_place, |parent| parent.links = parent.links.saturating_sub(1))?;
        }
        self.lose_name(&change, &is_gone)?;
        Ok(is_gone.last.then_some(target.number))
    }

    /// Checks that an inode may lose this entry.
    pub(super) async fn check_removable(&self, parent: &Inode, target: &Inode) -> Result<(), Error> {
        check_unprotected(target)?;
        if target.kind == Kind::Directory {
            // The root, and a directory that contains itself, are never empty directories.
            if target.number == crate::ROOT_INODE || target.number == parent.number {
                let problem = Problem::Meaningless { field: "a folder below itself", value: target.number.into() };
                return Err(Error::corrupt(Structure::Inode(parent.number), parent.home_block, problem));
            }
            if !self.directories.is_empty(target).await? {
                return Err(Error::NotEmpty);
            }
        }
        Ok(())
    }

    /// Fetches the block of an entry into the change, and checks all its entries.
    pub(super) async fn fetch_entry(&self, change: &Change<S>, parent: &Inode, found: &Found) -> Result<(), Error> {
        let place = self.directories.folder_block(parent, found.index).await?;
        self.directories.room_in(&place).await?;
        self.store.fetch_block(change, found.block).await
    }

    /// Plans to drop a link; a directory loses all of its links.
    pub(super) async fn plan_loss(&self, change: &Change<S>, target: &Inode) -> Result<Loss, Error> {
        let place = self.inodes.fetch(change, target.number).await?;
        Ok(Loss { place, last: target.kind == Kind::Directory || target.links <= 1 })
    }

    /// Drops a link as planned; an inode without links is put on the orphan list, whose lock is held.
    pub(super) fn lose_name(&self, change: &Change<S>, loss: &Loss) -> Result<(), Error> {
        let now = self.store.now_s();
        self.inodes.change(change, &loss.place, |inode| {
            inode.links = if loss.last { 0 } else { inode.links.saturating_sub(1) };
            inode.changed = now;
        })?;
        if loss.last { self.orphans.add(change, &loss.place) } else { Ok(()) }
    }
}

/// A planned loss of a link.
pub(super) struct Loss {
    place: crate::inode::InodePlace,
    /// Whether it is the last one.
    pub(super) last: bool,
}
