//! Name lookup in a directory.

use alloc::vec::Vec;

use super::htree::{self, Place, Way};
use super::names::NameIndex;
use super::{Directories, Found};
use crate::error::Error;
use crate::format::directory::{LONGEST_NAME, entries, largest_room};
use crate::format::hash::Hasher;
use crate::format::inode::{Inode, flag};
use crate::source::BlockSource;

/// A directory of more blocks without an htree gets an in-memory name index.
const BLOCKS_WITHOUT_INDEX: u64 = 2;

/// A step down the htree: the directory block of the node, and the entry that was followed.
#[derive(Clone, Copy)]
struct Step {
    table: u32,
    at: usize,
    count: usize,
}

/// The path to the leaf in which a name is or would be.
pub(crate) struct Probe {
    pub(crate) hasher: Hasher,
    steps: Vec<Step>,
    /// The leaf's block in the directory.
    pub(crate) leaf: u32,
}

impl<S: BlockSource> Directories<S> {
    /// Finds the entry of a name.
    pub(crate) async fn find(&self, folder: &Inode, name: &[u8]) -> Result<Option<Found>, Error> {
        if name.len() > LONGEST_NAME {
            return Err(Error::NameTooLong);
        }
        let blocks = self.folder_blocks(folder)?;
        if name == b"." || name == b".." {
            return self.find_in(folder, 0, name).await;
        }
        if self.has_index(folder)
            && let Some(probe) = self.probe(folder, blocks, name).await?
        {
            return self.find_by_probe(folder, blocks, probe, name).await;
        }
        if blocks > BLOCKS_WITHOUT_INDEX && self.load_names(folder, blocks).await? {
            let candidates = self.names.borrow_mut().with(folder.number, |names| names.candidates(name));
            for index in candidates.unwrap_or_default() {
                if let Some(found) = self.find_in(folder, index.into(), name).await? {
                    return Ok(Some(found));
                }
            }
            return Ok(None);
        }
        for index in 0..blocks {
            if let Some(found) = self.find_in(folder, index, name).await? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Looks up a name in one block of a directory.
    async fn find_in(&self, folder: &Inode, index: u64, name: &[u8]) -> Result<Option<Found>, Error> {
        let place = self.folder_block(folder, index).await?;
        let inode = self.read_folder_block(&place, |block| {
            for item in entries(block, self.entry_format()) {
                let (offset, view) = item.map_err(|at| self.bad_entry(&place, at))?;
                if view.inode != 0 && view.name == name {
                    self.check_entry(&place, offset, &view)?;
                    return Ok(Some(view.inode));
                }
            }
            Ok(None)
        });
        Ok(inode.await?.map(|inode| Found { index, block: place.block, inode }))
    }

    /// Builds the name index of a directory. Returns false if it would exceed the limit.
    pub(crate) async fn load_names(&self, folder: &Inode, blocks: u64) -> Result<bool, Error> {
        let limit = {
            let mut names = self.names.borrow_mut();
            if names.with(folder.number, |_| ()).is_some() {
                return Ok(true);
            }
            names.limit()
        };
        let mut names = NameIndex::default();
        for index in 0..blocks {
            let place = self.folder_block(folder, index).await?;
            self.read_folder_block(&place, |block| {
                for item in entries(block, self.entry_format()) {
                    let (_, view) = item.map_err(|at| self.bad_entry(&place, at))?;
                    if view.inode != 0 {
                        names.add(view.name, index as u32);
                    }
                }
                let room = largest_room(block, self.entry_format()).map_err(|at| self.bad_entry(&place, at))?;
                names.set_room(index as u32, room);
                Ok(())
            })
            .await?;
            if names.bytes() > limit {
                return Ok(false);
            }
        }
        self.names.borrow_mut().insert(folder.number, names);
        Ok(true)
    }

    /// Returns whether a directory has an htree, on a volume with the feature `dir_index`.
    pub(crate) fn has_index(&self, folder: &Inode) -> bool {
        folder.flags & flag::INDEX != 0 && self.format.has_dir_index
    }

    /// Descends the htree of a directory. `None` if it is not valid: then the directory is read linearly.
    pub(crate) async fn probe(&self, folder: &Inode, blocks: u64, name: &[u8]) -> Result<Option<Probe>, Error> {
        let place = self.folder_block(folder, 0).await?;
        let Ok(root) = self.read_folder_block(&place, |block| Ok(htree::root(block))).await? else { return Ok(None) };
        let hasher = self.hasher(root.algorithm, root.unsigned);
        let hash = hasher.hash(name);
        let mut probe = Probe { hasher, steps: Vec::with_capacity(root.levels), leaf: 0 };
        let mut place = place;
        for level in 0..root.levels {
            let kind = if level == 0 { Place::Root } else { Place::Node };
            let step = self.read_folder_block(&place, |block| {
                Ok(htree::table(block, kind).map(|table| {
                    let at = table.search(hash);
                    (at, table.count(), table.block(at))
                }))
            });
            let Ok((at, count, next)) = step.await? else { return Ok(None) };
            if next == 0 || u64::from(next) >= blocks {
                return Ok(None);
            }
            probe.steps.push(Step { table: place.index as u32, at, count });
            probe.leaf = next;
            if level + 1 < root.levels {
                place = self.folder_block(folder, next.into()).await?;
            }
        }
        Ok(Some(probe))
    }

    async fn find_by_probe(
        &self,
        folder: &Inode,
        blocks: u64,
        mut probe: Probe,
        name: &[u8],
    ) -> Result<Option<Found>, Error> {
        let hash = probe.hasher.hash(name);
        // Bounds a cycle in the htree.
        for _ in 0..blocks {
            if let Some(found) = self.find_in(folder, probe.leaf.into(), name).await? {
                return Ok(Some(found));
            }
            if !self.next_leaf(folder, blocks, &mut probe, hash).await? {
                return Ok(None);
            }
        }
        Ok(None)
    }

    /// Advances to the next leaf if it continues the same hash.
    async fn next_leaf(&self, folder: &Inode, blocks: u64, probe: &mut Probe, hash: u32) -> Result<bool, Error> {
        let Some(level) = probe.steps.iter().rposition(|step| step.at + 1 < step.count) else { return Ok(false) };
        probe.steps[level].at += 1;
        for below in level..probe.steps.len() {
            let step = probe.steps[below];
            let place = self.folder_block(folder, step.table.into()).await?;
            let kind = if below == 0 { Place::Root } else { Place::Node };
            let next = self.read_folder_block(&place, |block| {
                Ok(htree::table(block, kind)
                    .ok()
                    .filter(|table| step.at < table.count())
                    .map(|table| (table.hash(step.at), table.block(step.at), table.count())))
            });
            let Some((next_hash, next, count)) = next.await? else { return Ok(false) };
            if below == level && next_hash != hash | htree::CONTINUED {
                return Ok(false);
            }
            if next == 0 || u64::from(next) >= blocks {
                return Ok(false);
            }
            probe.steps[below].count = count;
            probe.leaf = next;
            if let Some(under) = probe.steps.get_mut(below + 1) {
                *under = Step { table: next, at: 0, count: usize::MAX };
            }
        }
        Ok(true)
    }

    /// Copies of the blocks on the path to a leaf, to be changed.
    pub(crate) async fn way(&self, folder: &Inode, probe: &Probe) -> Result<Way, Error> {
        let mut tables = Vec::with_capacity(probe.steps.len());
        for step in &probe.steps {
            let place = self.folder_block(folder, step.table.into()).await?;
            let bytes = self.read_folder_block(&place, |block| Ok(block.to_vec())).await?;
            tables.push(((step.table, bytes), step.at));
        }
        let place = self.folder_block(folder, probe.leaf.into()).await?;
        let bytes = self.read_folder_block(&place, |block| Ok(block.to_vec())).await?;
        Ok(Way { tables, leaf: (probe.leaf, bytes) })
    }
}
