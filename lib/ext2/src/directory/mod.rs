//! Folders: listing them and finding a name in them.
//!
//! A folder is read entry after entry, also where it has an index: the index hides in entries that
//! are not in use.

mod hash;
mod htree;

use alloc::vec::Vec;

use crate::error::{Error, Problem, Structure};
use crate::features::INCOMPATIBLE_FILE_TYPE;
use crate::mapping::Run;
use crate::source::BlockSource;
use crate::volume::{BlockReference, Volume};
use crate::wire::directory::{EntryFormat, LONGEST_NAME, entry};
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

impl<S: BlockSource> Volume<S> {
    /// Lists a folder from `position` on (0, or a `next` from before): at most `limit` entries. A
    /// position inside an entry goes on with the entry after it.
    pub async fn list(&self, folder: &Inode, position: u64, limit: usize) -> Result<Listing, Error> {
        let blocks = self.folder_blocks(folder)?;
        let block_bytes = u64::from(self.superblock().block_bytes);
        let mut entries = Vec::new();
        for index in position / block_bytes..blocks {
            let block = self.folder_block(folder, index).await?;
            let mut offset = 0;
            while offset < block.len() {
                let here = index * block_bytes + offset as u64;
                let view = self.entry_at(folder, &block, offset, here)?;
                offset += view.entry_bytes;
                if here < position || view.inode == 0 || view.name == b"." || view.name == b".." {
                    continue;
                }
                if entries.len() >= limit {
                    return Ok(Listing { entries, next: Some(here) });
                }
                let kind = Kind::from_entry(view.kind);
                entries.push(DirectoryEntry { position: here, inode: view.inode, kind, name: view.name.to_vec() });
            }
        }
        Ok(Listing { entries, next: None })
    }

    /// The inode number that a name in a folder stands for.
    pub async fn find(&self, folder: &Inode, name: &[u8]) -> Result<u32, Error> {
        if name.len() > LONGEST_NAME {
            return Err(Error::NameTooLong);
        }
        let blocks = self.folder_blocks(folder)?;
        let start = self.found_at.borrow_mut().get(folder.number).filter(|&start| start < blocks).unwrap_or(0);
        for index in (start..blocks).chain(0..start) {
            let block = self.folder_block(folder, index).await?;
            let mut offset = 0;
            while offset < block.len() {
                let here = index * u64::from(self.superblock().block_bytes) + offset as u64;
                let view = self.entry_at(folder, &block, offset, here)?;
                if view.inode != 0 && view.name == name {
                    self.found_at.borrow_mut().insert(folder.number, index, 1);
                    return Ok(view.inode);
                }
                offset += view.entry_bytes;
            }
        }
        Err(Error::NotFound)
    }

    /// Blocks of a folder. It cannot have more than the volume, which bounds how long reading it
    /// takes even if its block numbers all name the same block.
    fn folder_blocks(&self, folder: &Inode) -> Result<u64, Error> {
        if folder.kind != Kind::Directory {
            return Err(Error::NotADirectory);
        }
        let block_bytes = u64::from(self.superblock().block_bytes);
        let damaged = |problem| Err(Error::corrupt(Structure::Inode(folder.number), folder.home_block, problem));
        let most = self.superblock().volume_bytes();
        if !(1..=most).contains(&folder.size) {
            return damaged(Problem::OutOfRange { field: "a folder's size", value: folder.size, least: 1, most });
        }
        if !folder.size.is_multiple_of(block_bytes) {
            return damaged(Problem::Meaningless { field: "a folder's size", value: folder.size });
        }
        Ok(folder.size / block_bytes)
    }

    async fn folder_block(&self, folder: &Inode, index: u64) -> Result<BlockReference<S::Buffer>, Error> {
        match self.run(folder, index).await? {
            Run::Blocks { first, .. } => self.block(first).await,
            Run::Hole { .. } => Err(Error::corrupt(
                Structure::Inode(folder.number),
                folder.home_block,
                Problem::Missing("a block of the folder"),
            )),
        }
    }

    fn entry_at<'a>(
        &self,
        folder: &Inode,
        block: &'a BlockReference<S::Buffer>,
        offset: usize,
        here: u64,
    ) -> Result<crate::wire::directory::View<'a>, Error> {
        let superblock = self.superblock();
        let with_kind = superblock.incompatible & INCOMPATIBLE_FILE_TYPE != 0;
        let format = if with_kind { EntryFormat::WithKind } else { EntryFormat::WithoutKind };
        let damaged =
            |problem| Error::corrupt(Structure::DirectoryEntry(folder.number, here), block.number.into(), problem);
        let view = entry(block, offset, format).map_err(damaged)?;
        if view.inode > superblock.inodes {
            let (value, most) = (view.inode.into(), superblock.inodes.into());
            return Err(damaged(Problem::OutOfRange { field: "its inode number", value, least: 1, most }));
        }
        Ok(view)
    }
}
