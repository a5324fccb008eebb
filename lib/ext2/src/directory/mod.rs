//! Directories: listing, lookup, and changes of entries.
//!
//! Listing is linear, also with an htree, whose nodes look like unused entries. A name is looked up through the
//! [`htree`], or in a directory of more than a few blocks without one through an in-memory index ([`names`]).
//! [`change`] plans and applies changes.

pub(crate) mod change;
mod htree;
mod lookup;
pub(crate) mod names;

use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::RefCell;

use crate::block_map::{BlockMap, Run};
use crate::error::Error;
use crate::format::directory::{self, EntryFormat, View, entries};
use crate::format::error::{Problem, Structure};
use crate::format::features::{COMPATIBLE_DIR_INDEX, INCOMPATIBLE_FILE_TYPE};
use crate::format::hash::{Algorithm, Hasher};
use crate::format::inode::{Inode, Kind};
use crate::format::superblock::Superblock;
use crate::inode::InodeTable;
use crate::source::BlockSource;
use crate::store::Store;
use names::NameIndexes;

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryEntry {
    /// Offset in the directory: a position to list from.
    pub position: u64,
    /// Inode number.
    pub inode: u32,
    /// Kind of the inode, if the entry has it.
    pub kind: Option<Kind>,
    /// The name: any bytes but zero and `/`.
    pub name: Vec<u8>,
}

/// A page of a directory listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// Entries in directory order, without `.` and `..`.
    pub entries: Vec<DirectoryEntry>,
    /// Position of the next entry, if there are more.
    pub next: Option<u64>,
}

/// Location of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// Block of the directory, counted from its start.
    pub(crate) index: u64,
    /// Block of the volume.
    pub(crate) block: u32,
    /// Inode number.
    pub(crate) inode: u32,
}

/// A directory block, with its location for errors.
#[derive(Clone, Copy)]
pub(crate) struct FolderBlock {
    folder: u32,
    pub(crate) index: u64,
    pub(crate) block: u32,
}

/// Limit of the name indexes relative to that of the block map's cache.
const NAME_SHARE: usize = 4;

/// Owns the in-memory name indexes, and reads and changes the entries of directories.
pub(crate) struct Directories<S: BlockSource> {
    store: Store<S>,
    inodes: Rc<InodeTable<S>>,
    blocks: Rc<BlockMap<S>>,
    names: RefCell<NameIndexes>,
    format: DirectoryFormat,
}

/// Directory features of the superblock, constant while the volume is mounted.
#[derive(Clone, Copy)]
struct DirectoryFormat {
    entries: EntryFormat,
    /// Whether directories may have an htree.
    has_dir_index: bool,
    hash_version: u8,
    hash_unsigned: bool,
    hash_seed: [u32; 4],
}

impl DirectoryFormat {
    fn new(superblock: &Superblock) -> DirectoryFormat {
        let with_kind = superblock.incompatible & INCOMPATIBLE_FILE_TYPE != 0;
        DirectoryFormat {
            entries: if with_kind { EntryFormat::WithKind } else { EntryFormat::WithoutKind },
            has_dir_index: superblock.compatible & COMPATIBLE_DIR_INDEX != 0,
            hash_version: superblock.hash_version,
            hash_unsigned: superblock.hash_unsigned,
            hash_seed: superblock.hash_seed,
        }
    }
}

impl<S: BlockSource> Directories<S> {
    /// `number_bytes` is the capacity of the block map's cache.
    pub(crate) fn new(
        store: Store<S>,
        inodes: Rc<InodeTable<S>>,
        blocks: Rc<BlockMap<S>>,
        number_bytes: usize,
    ) -> Directories<S> {
        let format = DirectoryFormat::new(&store.superblock());
        let names = RefCell::new(NameIndexes::new(number_bytes.saturating_mul(NAME_SHARE)));
        Directories { store, inodes, blocks, names, format }
    }

    /// Drops the name index of a directory that was freed.
    pub(crate) fn forget(&self, folder: u32) {
        self.names.borrow_mut().forget(folder);
    }

    /// Looks up a name in a directory, whose content lock is held; [`Error::NotFound`] if the directory lacks it.
    pub(crate) async fn lookup(&self, folder: u32, name: &[u8]) -> Result<Found, Error> {
        let inode = self.inodes.get(folder).await?;
        if inode.links == 0 {
            return Err(Error::NotFound);
        }
        self.find(&inode, name).await?.ok_or(Error::NotFound)
    }

    /// The hasher of an htree whose root names this algorithm.
    fn hasher(&self, algorithm: Algorithm, unsigned: bool) -> Hasher {
        let unsigned = unsigned || self.format.hash_unsigned;
        Hasher { algorithm, unsigned, seed: self.format.hash_seed }
    }

    pub(crate) async fn list(&self, folder: &Inode, position: u64, limit: usize) -> Result<Listing, Error> {
        let blocks = self.folder_blocks(folder)?;
        let block_bytes = self.blocks.block_bytes();
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

    /// Appends the entries of a block from a position on. Returns the next position if the limit was reached.
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
            let here = place.index * self.blocks.block_bytes() + offset as u64;
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

    /// Returns whether a directory has no entries but `.` and `..`.
    pub(crate) async fn is_empty(&self, folder: &Inode) -> Result<bool, Error> {
        Ok(self.list(folder, 0, 1).await?.entries.is_empty())
    }

    pub(crate) fn entry_format(&self) -> EntryFormat {
        self.format.entries
    }

    /// Number of blocks of a directory. At most those of the volume, which bounds the time to read it even if all its
    /// block numbers are equal.
    pub(crate) fn folder_blocks(&self, folder: &Inode) -> Result<u64, Error> {
        if folder.kind != Kind::Directory {
            return Err(Error::NotADirectory);
        }
        let damaged = |problem| Err(Error::corrupt(Structure::Inode(folder.number), folder.home_block, problem));
        let most = self.store.geometry().volume_bytes();
        if !(1..=most).contains(&folder.size) {
            return damaged(Problem::OutOfRange { field: "a folder's size", value: folder.size, least: 1, most });
        }
        if !folder.size.is_multiple_of(self.blocks.block_bytes()) {
            return damaged(Problem::Meaningless { field: "a folder's size", value: folder.size });
        }
        Ok(folder.size / self.blocks.block_bytes())
    }

    /// Maps a block of a directory, which has no holes.
    pub(crate) async fn folder_block(&self, folder: &Inode, index: u64) -> Result<FolderBlock, Error> {
        match self.blocks.run(folder, index, 1).await? {
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

    /// Returns the error for a bad entry at an offset of a block.
    pub(crate) fn bad_entry(&self, place: &FolderBlock, (offset, problem): (usize, Problem)) -> Error {
        let here = place.index * self.blocks.block_bytes() + offset as u64;
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
