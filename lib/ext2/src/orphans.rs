//! The orphan list: inodes being deleted or truncated, in the layout of ext3.
//!
//! `s_last_orphan` of the superblock refers to the newest, and `i_dtime` of each inode to the next older one. After a
//! crash, the next mount or check completes their deletion or truncation.

use alloc::collections::BTreeSet;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::RefCell;

use task_sync::{Mutex, MutexGuard};

use crate::error::Error;
use crate::inode::{InodePlace, InodeTable};
use crate::source::BlockSource;
use crate::store::{Change, Store};

/// Owns the orphan list.
pub(crate) struct OrphanList<S: BlockSource> {
    store: Store<S>,
    inodes: Rc<InodeTable<S>>,
    /// Inode numbers, the oldest first; the superblock refers to the last.
    list: RefCell<Vec<u32>>,
    lock: Mutex<()>,
}

impl<S: BlockSource> OrphanList<S> {
    pub(crate) fn new(store: Store<S>, inodes: Rc<InodeTable<S>>) -> OrphanList<S> {
        OrphanList { store, inodes, list: RefCell::default(), lock: Mutex::default() }
    }

    /// Waits for the lock that protects changes of the list.
    pub(crate) async fn lock(&self) -> MutexGuard<'_, ()> {
        self.lock.lock().await
    }

    /// A copy of the list.
    pub(crate) fn numbers(&self) -> Vec<u32> {
        self.list.borrow().clone()
    }

    /// Adds an inode, which was fetched into the change.
    pub(crate) fn add(&self, change: &Change<S>, place: &InodePlace) -> Result<(), Error> {
        if self.list.borrow().contains(&place.number) {
            return Ok(());
        }
        let before = self.list.borrow().last().copied().unwrap_or(0);
        self.store.set_orphan_head(change, place.number);
        self.inodes.change(change, place, |inode| inode.deleted = before)?;
        self.list.borrow_mut().push(place.number);
        Ok(())
    }

    pub(crate) fn contains(&self, number: u32) -> bool {
        self.list.borrow().contains(&number)
    }

    /// Fetches the predecessor of an inode into the change; `None` if that is the superblock.
    pub(crate) async fn plan_removal(&self, change: &Change<S>, number: u32) -> Result<Option<InodePlace>, Error> {
        let newer = {
            let orphans = self.list.borrow();
            let place = orphans.iter().position(|&orphan| orphan == number);
            place.and_then(|place| orphans.get(place + 1).copied())
        };
        match newer {
            Some(newer) => self.inodes.fetch(change, newer).await.map(Some),
            None => Ok(None),
        }
    }

    /// Removes an inode as planned. The caller updates the inode's own `i_dtime`.
    pub(crate) fn remove(&self, change: &Change<S>, number: u32, newer: Option<&InodePlace>) -> Result<(), Error> {
        let Some(place) = self.list.borrow().iter().position(|&orphan| orphan == number) else { return Ok(()) };
        let before = place.checked_sub(1).and_then(|place| self.list.borrow().get(place).copied()).unwrap_or(0);
        match newer {
            Some(newer) => {
                self.inodes.change(change, newer, |inode| inode.deleted = before)?;
            }
            None => self.store.set_orphan_head(change, before),
        }
        self.list.borrow_mut().remove(place);
        Ok(())
    }

    /// Reads the list from the disk, as far as it can be read, and returns its inodes, newest first, with their link
    /// counts.
    pub(crate) async fn load(&self) -> Vec<(u32, u16)> {
        let head = self.store.orphan_head();
        let mut chain = Vec::new();
        let mut seen = BTreeSet::new();
        let mut next = head;
        while next != 0 && seen.insert(next) {
            let Ok(inode) = self.inodes.get_any(next).await else { break };
            chain.push((next, inode.links));
            next = inode.deleted;
        }
        if head != 0 && chain.is_empty() {
            if let Ok(change) = self.store.begin(1).await {
                self.store.set_orphan_head(&change, 0);
            }
            return chain;
        }
        *self.list.borrow_mut() = chain.iter().rev().map(|&(number, _)| number).collect();
        chain
    }
}
