//! The list of inodes that are on the way to deletion or truncation, as ext3 has it.
//!
//! The superblock names the newest, each names the one before in the field for the time of its deletion. After a
//! crash, who mounts or checks the volume goes on with what is on it. The list is changed under `orphan_lock`.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use task_sync::Mode;

use crate::error::Error;
use crate::inode::InodePlace;
use crate::source::BlockSource;
use crate::store::Change;
use crate::volume::Core;

impl<S: BlockSource> Core<S> {
    /// Puts an inode that is in the change on the list.
    pub(super) fn add_orphan(&self, change: &Change<S>, place: &InodePlace) -> Result<(), Error> {
        if self.orphans.borrow().contains(&place.number) {
            return Ok(());
        }
        let before = self.orphans.borrow().last().copied().unwrap_or(0);
        self.store.set_orphan_head(change, place.number);
        self.inodes.change(change, place, |inode| inode.deleted = before)?;
        self.orphans.borrow_mut().push(place.number);
        Ok(())
    }

    pub(crate) fn is_orphan(&self, number: u32) -> bool {
        self.orphans.borrow().contains(&number)
    }

    /// Brings the inode that names this one on the list into the change, if it is not the superblock that does.
    pub(super) async fn plan_leaving(&self, change: &Change<S>, number: u32) -> Result<Option<InodePlace>, Error> {
        let newer = {
            let orphans = self.orphans.borrow();
            let place = orphans.iter().position(|&orphan| orphan == number);
            place.and_then(|place| orphans.get(place + 1).copied())
        };
        match newer {
            Some(newer) => self.inodes.fetch(change, newer).await.map(Some),
            None => Ok(None),
        }
    }

    /// Takes an inode from the list, as planned. Its own field is the caller's.
    pub(super) fn leave_orphans(
        &self,
        change: &Change<S>,
        number: u32,
        newer: Option<&InodePlace>,
    ) -> Result<(), Error> {
        let Some(place) = self.orphans.borrow().iter().position(|&orphan| orphan == number) else { return Ok(()) };
        let before = place.checked_sub(1).and_then(|place| self.orphans.borrow().get(place).copied()).unwrap_or(0);
        match newer {
            Some(newer) => {
                self.inodes.change(change, newer, |inode| inode.deleted = before)?;
            }
            None => self.store.set_orphan_head(change, before),
        }
        self.orphans.borrow_mut().remove(place);
        Ok(())
    }

    /// Takes over the list that is on the disk, and ends what it tells of. What cannot be ended stays on it.
    pub(crate) async fn adopt_orphans(&self) {
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
            return;
        }
        *self.orphans.borrow_mut() = chain.iter().rev().map(|&(number, _)| number).collect();
        for (number, links) in chain {
            let _ = if links == 0 { self.release(number).await } else { self.end_cut(number).await };
        }
    }

    /// Writes everything before the unmount.
    pub(crate) async fn end(&self) -> Result<(), Error> {
        if self.store.read_only_reason().is_none() {
            let orphans = self.orphans.borrow().clone();
            for number in orphans {
                self.abandon(number).await;
                let _ = self.release(number).await;
            }
        }
        self.store.unmount().await
    }

    /// Takes an inode without a name from those who have it open, once nobody reads or writes it.
    async fn abandon(&self, number: u32) {
        let node = self.inodes.node(number);
        let _content = node.content.acquire(Mode::Exclusive).await;
        self.inodes.revoke(&node);
    }
}
