//! Changing directory entries.
//!
//! A plan finds the place, allocates blocks, and fetches every block to be written into the change, all of which can
//! fail. Applying the plan then cannot fail. The blocks that a planned insertion allocated are not freed again, so
//! planning it has to be the last step of an operation that can fail.

use alloc::vec::Vec;

use super::htree::{self, Image, NewIndex, Way};
use super::{Directories, FolderBlock, Found};
use crate::block_map::grow::{GROW_BLOCKS, Growth};
use crate::error::Error;
use crate::format::directory::{self, NewEntry, largest_room, needed_bytes};
use crate::format::error::Problem;
use crate::format::inode::{DIRECT_BLOCKS, Inode, flag};
use crate::inode::InodePlace;
use crate::source::BlockSource;
use crate::store::Change;

/// Maximum metadata blocks that an insertion changes: two htree nodes and a leaf, as many new ones, growth on both
/// sides of a window's end, the directory's inode.
pub(crate) const INSERT_BLOCKS: usize = 3 + 3 + 2 * GROW_BLOCKS + 1;
/// Maximum blocks that an insertion allocates: up to three directory blocks and the indirect blocks for them.
pub(crate) const INSERT_NEW_BLOCKS: u32 = 3 + 4;
/// Hash version if the superblock has no valid one: half_md4.
const DEFAULT_HASH_VERSION: u8 = 1;

/// A planned insertion.
pub(crate) struct Insertion {
    place: Place,
    /// Whether the directory gains or loses its htree.
    index: Option<IndexChange>,
}

enum Place {
    /// A block with room.
    Room(FolderBlock),
    /// New contents of blocks.
    Blocks { old: Vec<(FolderBlock, Vec<u8>)>, new: Vec<Vec<u8>>, growths: Vec<Growth>, first_new: u64 },
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum IndexChange {
    Made,
    Dropped,
}

impl Insertion {
    /// The blocks that the insertion allocated.
    pub(crate) fn growths(&self) -> &[Growth] {
        match &self.place {
            Place::Room(_) => &[],
            Place::Blocks { growths, .. } => growths,
        }
    }

    /// Blocks to which the insertion may move other entries: index in the directory, and block of the volume.
    pub(crate) fn rewritten(&self) -> Vec<(u64, u32)> {
        match &self.place {
            Place::Room(_) => Vec::new(),
            Place::Blocks { old, growths, first_new, .. } => {
                let old = old.iter().map(|(place, _)| (place.index, place.block));
                old.chain((*first_new..).zip(growths.iter().flat_map(Growth::numbers))).collect()
            }
        }
    }
}

impl<S: BlockSource> Directories<S> {
    /// Plans to insert a name that the directory does not have.
    pub(crate) async fn plan_insertion(
        &self,
        change: &Change<S>,
        folder: &Inode,
        new: &NewEntry<'_>,
    ) -> Result<Insertion, Error> {
        let blocks = self.folder_blocks(folder)?;
        let mut index = None;
        if self.has_index(folder) {
            if let Some(place) = self.plan_in_index(change, folder, blocks, new).await? {
                return Ok(Insertion { place, index: None });
            }
            index = Some(IndexChange::Dropped);
        } else if folder.flags & flag::INDEX != 0 {
            index = Some(IndexChange::Dropped);
        }
        if let Some(place) = self.find_room(folder, blocks, needed_bytes(new.name.len())).await? {
            self.store.fetch_block(change, place.block).await?;
            return Ok(Insertion { place: Place::Room(place), index });
        }
        if blocks == 1 && index.is_none() && self.format.has_dir_index {
            let images = self.images_with_index(folder, new).await?;
            if let Some(images) = images {
                let place = self.plan_images(change, folder, blocks, images).await?;
                return Ok(Insertion { place, index: Some(IndexChange::Made) });
            }
        }
        let mut block = alloc::vec![0; self.store.block_bytes()];
        directory::write(&mut block, new, self.entry_format());
        // A folder has fewer blocks than the volume.
        let place = self.plan_images(change, folder, blocks, alloc::vec![(blocks as u32, block)]).await?;
        Ok(Insertion { place, index })
    }

    /// Plans to insert a name through the htree; `None` if the htree is corrupt or full.
    async fn plan_in_index(
        &self,
        change: &Change<S>,
        folder: &Inode,
        blocks: u64,
        new: &NewEntry<'_>,
    ) -> Result<Option<Place>, Error> {
        let Some(probe) = self.probe(folder, blocks, new.name).await? else { return Ok(None) };
        let leaf = self.folder_block(folder, probe.leaf.into()).await?;
        if self.room_in(&leaf).await? >= needed_bytes(new.name.len()) {
            self.store.fetch_block(change, leaf.block).await?;
            return Ok(Some(Place::Room(leaf)));
        }
        let way = self.way(folder, &probe).await?;
        match htree::insert_splitting(way, blocks as u32, new, &probe.hasher, self.entry_format()) {
            Ok(Some(images)) => self.plan_images(change, folder, blocks, images).await.map(Some),
            Ok(None) | Err(_) => Ok(None),
        }
    }

    /// The blocks of a directory of one full block, converted to an htree, with the new name.
    async fn images_with_index(&self, folder: &Inode, new: &NewEntry<'_>) -> Result<Option<Vec<Image>>, Error> {
        let place = self.folder_block(folder, 0).await?;
        let block = self.read_folder_block(&place, |block| Ok(block.to_vec())).await?;
        let version = match self.format.hash_version {
            version @ 0..=2 => version,
            _ => DEFAULT_HASH_VERSION,
        };
        let format = self.entry_format();
        let made = htree::make_index(&block, version, format);
        let Some(NewIndex { root, mut leaf }) = made.map_err(|problem| self.bad_entry(&place, (0, problem)))? else {
            return Ok(None);
        };
        if directory::insert(&mut leaf, new, format).map_err(|at| self.bad_entry(&place, at))? {
            return Ok(Some(alloc::vec![(0, root), (1, leaf)]));
        }
        let Ok(description) = htree::root(&root) else { return Ok(None) };
        let hasher = self.hasher(description.algorithm, description.unsigned);
        let way = Way { tables: alloc::vec![((0, root), 0)], leaf: (1, leaf) };
        htree::insert_splitting(way, 2, new, &hasher, format).map_err(|problem| self.bad_entry(&place, (0, problem)))
    }

    /// Allocates the new ones of these blocks, and fetches the others into the change.
    async fn plan_images(
        &self,
        change: &Change<S>,
        folder: &Inode,
        blocks: u64,
        mut images: Vec<Image>,
    ) -> Result<Place, Error> {
        images.sort_by_key(|image| image.0);
        let (mut old, mut new) = (Vec::new(), Vec::new());
        for (index, image) in images {
            if u64::from(index) >= blocks {
                new.push(image);
                continue;
            }
            let place = self.folder_block(folder, index.into()).await?;
            self.store.fetch_block(change, place.block).await?;
            old.push((place, image));
        }
        let growths = self.grow_folder(change, folder, blocks, new.len() as u64).await?;
        Ok(Place::Blocks { old, new, growths, first_new: blocks })
    }

    async fn grow_folder(
        &self,
        change: &Change<S>,
        folder: &Inode,
        blocks: u64,
        count: u64,
    ) -> Result<Vec<Growth>, Error> {
        let mut growths = Vec::new();
        let mut next = blocks;
        while next < blocks + count {
            let result = match self.blocks.grow(change, folder, next, blocks + count - next).await {
                Ok(growth) => {
                    next += growth.blocks();
                    growths.push(growth);
                    // A growth that ends within a window ran out of space.
                    let in_window = next < DIRECT_BLOCKS as u64
                        || !(next - DIRECT_BLOCKS as u64)
                            .is_multiple_of(self.store.geometry().numbers_per_block().into());
                    if next < blocks + count && in_window { Err(Error::NoSpace) } else { Ok(()) }
                }
                Err(error) => Err(error),
            };
            if let Err(error) = result {
                for growth in &growths {
                    self.blocks.give_back(change, growth).await;
                }
                return Err(error);
            }
        }
        Ok(growths)
    }

    pub(crate) async fn room_in(&self, place: &FolderBlock) -> Result<usize, Error> {
        self.read_folder_block(place, |block| {
            largest_room(block, self.entry_format()).map_err(|at| self.bad_entry(place, at))
        })
        .await
    }

    /// The first block of a directory with room for an entry of `bytes` bytes.
    async fn find_room(&self, folder: &Inode, blocks: u64, bytes: usize) -> Result<Option<FolderBlock>, Error> {
        let known = self.names.borrow_mut().with(folder.number, |names| names.block_with_room(bytes));
        if let Some(index) = known {
            let Some(index) = index else { return Ok(None) };
            return self.folder_block(folder, index.into()).await.map(Some);
        }
        for index in 0..blocks {
            let place = self.folder_block(folder, index).await?;
            if self.room_in(&place).await? >= bytes {
                return Ok(Some(place));
            }
        }
        Ok(None)
    }

    /// Carries out a planned insertion. The directory's inode is in the change.
    pub(crate) fn insert_entry(
        &self,
        change: &Change<S>,
        folder: &InodePlace,
        insertion: &Insertion,
        new: &NewEntry<'_>,
    ) -> Result<(), Error> {
        let now = self.store.now_s();
        match &insertion.place {
            Place::Room(place) => self.insert_into(change, folder, place, new)?,
            Place::Blocks { old, new: images, growths, .. } => {
                for (place, image) in old {
                    self.store.change_block(change, place.block, |block| block.copy_from_slice(image))?;
                }
                for growth in growths {
                    self.blocks.install(change, folder.number, growth)?;
                }
                for (block, image) in growths.iter().flat_map(Growth::numbers).zip(images) {
                    self.store.create(change, block, |bytes| bytes.copy_from_slice(image))?;
                }
                self.note_images(folder.number, insertion, new);
            }
        }
        self.inodes.change(change, folder, |inode| {
            for growth in insertion.growths() {
                growth.note(inode, self.store.geometry().block_sectors());
                inode.size += growth.blocks() * self.blocks.block_bytes();
            }
            match insertion.index {
                Some(IndexChange::Made) => inode.flags |= flag::INDEX,
                Some(IndexChange::Dropped) => inode.flags &= !flag::INDEX,
                None => {}
            }
            (inode.modified, inode.changed) = (now, now);
        })?;
        Ok(())
    }

    fn insert_into(
        &self,
        change: &Change<S>,
        folder: &InodePlace,
        place: &FolderBlock,
        new: &NewEntry<'_>,
    ) -> Result<(), Error> {
        let format = self.entry_format();
        let is_known = self.names.borrow().contains(folder.number);
        let room = self.store.change_block(change, place.block, |block| {
            let is_in = directory::insert(block, new, format)?;
            debug_assert!(is_in, "the plan found room");
            if is_known { largest_room(block, format) } else { Ok(0) }
        })?;
        let room = room.map_err(|at| self.bad_entry(place, at))?;
        self.names.borrow_mut().with(folder.number, |names| {
            names.add(new.name, place.index as u32);
            names.set_room(place.index as u32, room);
        });
        Ok(())
    }

    /// Updates the name index after blocks were rewritten.
    fn note_images(&self, folder: u32, insertion: &Insertion, new: &NewEntry<'_>) {
        let mut names = self.names.borrow_mut();
        match &insertion.place {
            Place::Blocks { old, new: images, first_new, .. } if old.is_empty() && images.len() == 1 => {
                let room = self.store.block_bytes() - needed_bytes(new.name.len());
                names.with(folder, |names| {
                    names.add(new.name, *first_new as u32);
                    names.set_room(*first_new as u32, room);
                });
            }
            _ => names.forget(folder),
        }
    }

    /// Removes a name whose block and directory inode are in the change. After an insertion in the same change, the
    /// name may have moved to one of the `rewritten` blocks.
    pub(crate) fn remove_entry(
        &self,
        change: &Change<S>,
        folder: &InodePlace,
        found: &Found,
        name: &[u8],
        rewritten: &[(u64, u32)],
    ) -> Result<(), Error> {
        let format = self.entry_format();
        let now = self.store.now_s();
        let is_known = self.names.borrow().contains(folder.number);
        for (index, block) in core::iter::once((found.index, found.block)).chain(rewritten.iter().copied()) {
            let place = FolderBlock { folder: folder.number, index, block };
            let room =
                self.store.change_block(change, block, |bytes| match directory::remove(bytes, name, format)? {
                    Some(_) if is_known => largest_room(bytes, format).map(Some),
                    Some(_) => Ok(Some(0)),
                    None => Ok(None),
                })?;
            let Some(room) = room.map_err(|at| self.bad_entry(&place, at))? else { continue };
            self.names.borrow_mut().with(folder.number, |names| {
                names.remove(name, index as u32);
                names.set_room(index as u32, room);
            });
            self.inodes.change(change, folder, |inode| (inode.modified, inode.changed) = (now, now))?;
            return Ok(());
        }
        let place = FolderBlock { folder: folder.number, index: found.index, block: found.block };
        Err(self.bad_entry(&place, (0, Problem::Missing("a name that was there"))))
    }

    /// Makes an entry refer to another inode. Its block and the directory's inode are in the change.
    pub(crate) fn replace_entry(
        &self,
        change: &Change<S>,
        folder: &InodePlace,
        found: &Found,
        new: &NewEntry<'_>,
    ) -> Result<(), Error> {
        let now = self.store.now_s();
        let place = FolderBlock { folder: folder.number, index: found.index, block: found.block };
        let replaced = self
            .store
            .change_block(change, found.block, |block| directory::replace(block, new, self.entry_format()))?;
        if replaced.map_err(|at| self.bad_entry(&place, at))?.is_none() {
            return Err(self.bad_entry(&place, (0, Problem::Missing("a name that was there"))));
        }
        self.inodes.change(change, folder, |inode| (inode.modified, inode.changed) = (now, now))?;
        Ok(())
    }
}
