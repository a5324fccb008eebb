//! Rename, in one change.

use task_sync::Mode;

use super::remove::Loss;
use super::{MAX_NAMES, Namespace, check_name};
use crate::directory::Found;
use crate::directory::change::{INSERT_BLOCKS, INSERT_NEW_BLOCKS, Insertion};
use crate::error::Error;
use crate::format::directory::NewEntry;
use crate::format::error::{Problem, Structure};
use crate::format::inode::{Inode, Kind};
use crate::inode::InodePlace;
use crate::inode::check_unprotected;
use crate::source::BlockSource;
use crate::store::Change;

/// Maximum metadata blocks that a rename changes: the new entry, the old one, `..`, and four inodes.
const RENAME_BLOCKS: usize = INSERT_BLOCKS + 1 + 1 + 4;

/// One side of a rename.
struct Side<'a> {
    folder: Inode,
    name: &'a [u8],
}

/// A rename that was checked.
struct Plan<'a> {
    from: Side<'a>,
    to: Side<'a>,
    moved: Inode,
    found: Found,
    replaced: Option<(Found, Inode)>,
}

impl Plan<'_> {
    fn is_between_folders(&self) -> bool {
        self.from.folder.number != self.to.folder.number
    }
}

/// Kinds of writing the new entry.
enum Target {
    New(Insertion),
    Replaced(Found, Loss),
}

impl<S: BlockSource> Namespace<S> {
    /// Returns the replaced inode if it has no links left.
    pub(crate) async fn rename(&self, from: (u32, &[u8]), to: (u32, &[u8])) -> Result<Option<u32>, Error> {
        self.admission.check_writable()?;
        check_name(from.1)?;
        check_name(to.1)?;
        let _namespace = self.lock().await;
        let (first, second) = (self.inodes.node(from.0.min(to.0)), self.inodes.node(from.0.max(to.0)));
        let _first = first.content.acquire(Mode::Exclusive).await;
        let _second = match from.0 == to.0 {
            true => None,
            false => Some(second.content.acquire(Mode::Exclusive).await),
        };
        self.admission.check_writable()?;
        let from = Side { folder: self.open_folder(from.0).await?, name: from.1 };
        let to = Side { folder: self.open_folder(to.0).await?, name: to.1 };
        self.rename_locked(from, to).await
    }

    /// Returns the replaced inode if it has no links left.
    async fn rename_locked(&self, from: Side<'_>, to: Side<'_>) -> Result<Option<u32>, Error> {
        let Some(plan) = self.check_rename(from, to).await? else { return Ok(None) };
        let _orphans = self.orphans.lock().await;
        let change = self.store.begin_for(RENAME_BLOCKS, INSERT_NEW_BLOCKS).await?;
        let from_place = self.inodes.fetch(&change, plan.from.folder.number).await?;
        let to_place = self.inodes.fetch(&change, plan.to.folder.number).await?;
        let moved_place = self.inodes.fetch(&change, plan.moved.number).await?;
        self.fetch_entry(&change, &plan.from.folder, &plan.found).await?;
        let is_folder = plan.moved.kind == Kind::Directory;
        let parent_entry = if is_folder && plan.is_between_folders() {
            let found = self.parent_entry(&plan.moved).await?;
            self.fetch_entry(&change, &plan.moved, &found).await?;
            Some(found)
        } else {
            None
        };
        let entry = NewEntry { inode: plan.moved.number, kind: plan.moved.kind.entry_number(), name: plan.to.name };
        let target = match &plan.replaced {
            Some((found, inode)) => {
                self.fetch_entry(&change, &plan.to.folder, found).await?;
                Target::Replaced(*found, self.plan_loss(&change, inode).await?)
            }
            None => Target::New(self.directories.plan_insertion(&change, &plan.to.folder, &entry).await?),
        };
        let gone = match &target {
            Target::Replaced(_, loss) if loss.last => plan.replaced.as_ref().map(|(_, inode)| inode.number),
            _ => None,
        };
        self.carry_out(&change, &plan, &target, [&from_place, &to_place, &moved_place], parent_entry)?;
        Ok(gone)
    }

    /// Checks a rename; `None` if both names are links of the same inode.
    async fn check_rename<'a>(&self, from: Side<'a>, to: Side<'a>) -> Result<Option<Plan<'a>>, Error> {
        let found = self.directories.find(&from.folder, from.name).await?.ok_or(Error::NotFound)?;
        let moved = self.inodes.get_linked(found.inode).await?;
        let existing = self.directories.find(&to.folder, to.name).await?;
        if existing.is_some_and(|existing| existing.inode == found.inode) {
            return Ok(None);
        }
        check_unprotected(&from.folder)?;
        check_unprotected(&moved)?;
        let is_folder = moved.kind == Kind::Directory;
        if is_folder && from.folder.number != to.folder.number {
            self.check_not_below(moved.number, &to.folder).await?;
        } else if moved.number == to.folder.number {
            return Err(Error::IntoItself);
        }
        let replaced = match existing {
            Some(existing) => {
                let inode = self.inodes.get_linked(existing.inode).await?;
                match (is_folder, inode.kind == Kind::Directory) {
                    (true, false) => return Err(Error::NotADirectory),
                    (false, true) => return Err(Error::IsADirectory),
                    _ => {}
                }
                check_unprotected(&to.folder)?;
                // Ancestors of the moved inode are not empty, so this also keeps it from replacing one.
                self.check_removable(&to.folder, &inode).await?;
                Some((existing, inode))
            }
            None => None,
        };
        let gains_name = is_folder && from.folder.number != to.folder.number && replaced.is_none();
        if gains_name && to.folder.links >= MAX_NAMES {
            return Err(Error::TooManyNames);
        }
        Ok(Some(Plan { from, to, moved, found, replaced }))
    }

    /// Rejects moving a directory into itself or a descendant.
    async fn check_not_below(&self, moved: u32, to: &Inode) -> Result<(), Error> {
        let mut here = *to;
        // A longer path to the root would be a cycle.
        for _ in 0..self.store.geometry().inodes {
            if here.number == moved {
                return Err(Error::IntoItself);
            }
            if here.number == crate::ROOT_INODE {
                return Ok(());
            }
            let above = self.parent_entry(&here).await?;
            here = self.inodes.get_linked(above.inode).await?;
        }
        let problem = Problem::Missing("a way up to the root");
        Err(Error::corrupt(Structure::Inode(to.number), to.home_block, problem))
    }

    /// A folder's entry `..`.
    async fn parent_entry(&self, folder: &Inode) -> Result<Found, Error> {
        let damaged = || {
            let problem = Problem::Missing("its entry `..`");
            Error::corrupt(Structure::Inode(folder.number), folder.home_block, problem)
        };
        self.directories.find(folder, b"..").await?.ok_or_else(damaged)
    }

    fn carry_out(
        &self,
        change: &Change<S>,
        plan: &Plan<'_>,
        target: &Target,
        [from, to, moved]: [&InodePlace; 3],
        parent_entry: Option<Found>,
    ) -> Result<(), Error> {
        let entry = NewEntry { inode: plan.moved.number, kind: plan.moved.kind.entry_number(), name: plan.to.name };
        let rewritten = match target {
            Target::New(insertion) => {
                self.directories.insert_entry(change, to, insertion, &entry)?;
                if plan.is_between_folders() { alloc::vec::Vec::new() } else { insertion.rewritten() }
            }
            Target::Replaced(found, _) => {
                self.directories.replace_entry(change, to, found, &entry)?;
                alloc::vec::Vec::new()
            }
        };
        self.directories.remove_entry(change, from, &plan.found, plan.from.name, &rewritten)?;
        let now = self.store.now_s();
        self.inodes.change(change, moved, |inode| inode.changed = now)?;
        let is_folder = plan.moved.kind == Kind::Directory;
        if let Target::Replaced(_, loss) = target {
            self.lose_name(change, loss)?;
            if is_folder {
                self.inodes.change(change, to, |folder| folder.links = folder.links.saturating_sub(1))?;
            }
        }
        let Some(found) = parent_entry else { return Ok(()) };
        let above = NewEntry { inode: plan.to.folder.number, kind: Kind::Directory.entry_number(), name: b".." };
        self.directories.replace_entry(change, moved, &found, &above)?;
        self.inodes.change(change, from, |folder| folder.links = folder.links.saturating_sub(1))?;
        self.inodes.change(change, to, |folder| folder.links += 1)?;
        Ok(())
    }
}
