//! Folders: listing them, finding a name, and changing names.
//!
//! A folder is listed entry after entry, also where it has an index: the index hides in entries that are not in
//! use. A name is found through the folder's index on the disk ([`htree`]), or for a folder of more than a few
//! blocks without one through its names in memory ([`names`]). [`change`] plans changes and makes them.

pub(crate) mod change;
pub(crate) mod hash;
mod htree;
mod look_up;
pub(crate) mod names;

use alloc::vec::Vec;

use crate::error::{Error, Problem, Structure};
use crate::features::INCOMPATIBLE_FILE_TYPE;
use crate::mapping::Run;
use crate::source::BlockSource;
use crate::volume::Core;
use crate::wire::directory::{self, EntryFormat, View, entries};
use crate::wire::inode::{Inode, Kind};

/// A name in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryEntry {
    /// Where it is in the folder: a position to list from.
    pub position: u64,
    /// The inode it names.
    pub inode: u32,
    /// What that is, where the folder says so.
    pub kind: Option<Kind>,
    /// The name: any bytes but zero and `/`.
    pub name: Vec<u8>,
}

/// A part of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// The names, in the order in which the folder has them, without `.` and `..`.
    pub entries: Vec<DirectoryEntry>,
    /// Where to go on, if there is more.
    pub next: Option<u64>,
}

/// Where a name was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// The block of the folder, counted from its beginning.
    pub(crate) index: u64,
    /// The block of the volume.
    pub(crate) block: u32,
    /// The inode it names.
    pub(crate) inode: u32,
}

/// A block of a folder, as errors name places in it.
#[derive(Clone, Copy)]
pub(crate) struct FolderBlock {
    folder: u32,
    pub(crate) index: u64,
    pub(crate) block: u32,
}

impl<S: BlockSource> Core<S> {
    pub(crate) async fn list(&self, folder: &Inode, position: u64, limit: usize) -> Result<Listing, Error> {
        let blocks = self.folder_blocks(folder)?;
        let block_bytes = self.block_bytes();
        let mut listing = Listing { entries: Vec::new(), next: None };
        for index in position / block_bytes..blocks {
            let place = self.folder_block(folder, index).await?;
            let next = self.read_folder_block(&place, |block| {
                self.list_block(&place, block, position, limit, &mut listing.entries)
            });
            listing.next = next.await?;
            if listing.next.is_some() {
                break;
            }
        }
        Ok(listing)
    }

    /// Adds the names of a block from a position on. Gives where to go on if that is in this block.
    fn list_block(
        &self,
        place: &FolderBlock,
        block: &[u8],
        position: u64,
        limit: usize,
        names: &mut Vec<DirectoryEntry>,
    ) -> Result<Option<u64>, Error> {
        for item in entries(block, self.entry_format()) {
            let (offset, view) = item.map_err(|at| self.bad_entry(place, at))?;
            self.check_entry(place, offset, &view)?;
            let here = place.index * self.block_bytes() + offset as u64;
            if here < position || view.inode == 0 || view.name == b"." || view.name == b".." {
                continue;
            }
            if names.len() >= limit {
                return Ok(Some(here));
            }
            let kind = Kind::from_entry(view.kind);
            names.push(DirectoryEntry { position: here, inode: view.inode, kind, name: view.name.to_vec() });
        }
        Ok(None)
    }

    /// Whether a folder has no names but `.` and `..`.
    pub(crate) async fn is_empty(&self, folder: &Inode) -> Result<bool, Error> {
        Ok(self.list(folder, 0, 1).await?.entries.is_empty())
    }

    pub(crate) fn entry_format(&self) -> EntryFormat {
        let with_kind = self.superblock.incompatible & INCOMPATIBLE_FILE_TYPE != 0;
        if with_kind { EntryFormat::WithKind } else { EntryFormat::WithoutKind }
    }

    /// Blocks of a folder. It cannot have more than the volume, which bounds how long reading it
    /// takes even if its block numbers all name the same block.
    pub(crate) fn folder_blocks(&self, folder: &Inode) -> Result<u64, Error> {
        if folder.kind != Kind::Directory {
            return Err(Error::NotADirectory);
        }
        let damaged = |problem| Err(Error::corrupt(Structure::Inode(folder.number), folder.home_block, problem));
        let most = self.store.geometry().volume_bytes();
        if !(1..=most).contains(&folder.size) {
            return damaged(Problem::OutOfRange { field: "a folder's size", value: folder.size, least: 1, most });
        }
        if !folder.size.is_multiple_of(self.block_bytes()) {
            return damaged(Problem::Meaningless { field: "a folder's size", value: folder.size });
        }
        Ok(folder.size / self.block_bytes())
    }

    /// A block of a folder, which has no holes.
    pub(crate) async fn folder_block(&self, folder: &Inode, index: u64) -> Result<FolderBlock, Error> {
        match self.run(folder, index, 1).await? {
            Run::Blocks { first, .. } => Ok(FolderBlock { folder: folder.number, index, block: first }),
            Run::Hole { .. } => Err(Error::corrupt(
                Structure::Inode(folder.number),
                folder.home_block,
                Problem::Missing("a block of the folder"),
            )),
        }
    }

    pub(crate) async fn read_folder_block<R>(
        &self,
        place: &FolderBlock,
        look: impl FnOnce(&[u8]) -> Result<R, Error>,
    ) -> Result<R, Error> {
        self.store.read_block(place.block, look).await?
    }

    /// What is wrong with an entry at an offset of a block.
    pub(crate) fn bad_entry(&self, place: &FolderBlock, (offset, problem): (usize, Problem)) -> Error {
        let here = place.index * self.block_bytes() + offset as u64;
        Error::corrupt(Structure::DirectoryEntry(place.folder, here), place.block.into(), problem)
    }

    pub(crate) fn check_entry(&self, place: &FolderBlock, offset: usize, view: &View<'_>) -> Result<(), Error> {
        let (value, most) = (view.inode.into(), self.store.geometry().inodes.into());
        if value > most {
            let problem = Problem::OutOfRange { field: "its inode number", value, least: 1, most };
            return Err(self.bad_entry(place, (offset, problem)));
        }
        directory::check_name(view.name).map_err(|problem| self.bad_entry(place, (offset, problem)))
    }
}
