//! `lost+found`, for inodes without a name, and recreated folders.

use alloc::collections::BTreeSet;
use alloc::vec;
use alloc::vec::Vec;

use super::names::name_hash;
use super::node::Node;
use super::state::{Checker, Folder, known};
use super::superblock::KIND_FOLDER;
use super::{CheckError, Fault, entries};
use crate::format::ROOT_INODE;
use crate::format::fresh::{self, NewFolder};
use block_source::BlockSource;

const NAME: &[u8] = b"lost+found";
const FOLDER_MODE: u16 = 0o040_000;

/// State of `lost+found` while it is filled.
pub(super) struct Lost {
    number: u32,
    blocks: Vec<u32>,
    /// First block in which there may be room.
    cursor: usize,
    /// Hashes of the names in it.
    names: BTreeSet<u64>,
}

impl<S: BlockSource> Checker<'_, S> {
    /// Links an inode into `lost+found`; returns that folder's number, or `None` if there is no room.
    pub(super) async fn put_into_lost(&mut self, inode: u32) -> Result<Option<u32>, CheckError> {
        let mut lost = match self.lost.take() {
            Some(lost) => lost,
            None => match self.open_lost().await? {
                Some(lost) => lost,
                None => return Ok(None),
            },
        };
        let name = (0..u32::MAX)
            .map(|again| if again == 0 { alloc::format!("#{inode}") } else { alloc::format!("#{inode}-{again}") })
            .find(|name| !lost.names.contains(&name_hash(name.as_bytes())));
        let name = name.unwrap_or_default().into_bytes();
        let kind = if self.volume.has_kinds() { self.known(inode) & known::KIND } else { 0 };
        let put = self.add_entry(lost.number, &mut lost.blocks, &mut lost.cursor, (inode, kind, &name)).await?;
        if put {
            lost.names.insert(name_hash(&name));
            self.count_name(inode, true);
        }
        let number = lost.number;
        self.lost = Some(lost);
        Ok(put.then_some(number))
    }

    /// Finds `lost+found`, or creates it.
    async fn open_lost(&mut self) -> Result<Option<Lost>, CheckError> {
        let number = match self.find_lost().await? {
            Some(number) => Some(number),
            None => self.make_lost().await?,
        };
        let Some(number) = number else { return Ok(None) };
        let mut node = self.load(number).await?;
        self.drop_index(&mut node).await?;
        let blocks: Vec<u32> = self.data_blocks(&node).await?.into_iter().map(|(_, block)| block).collect();
        let mut names = BTreeSet::new();
        for &block in &blocks {
            let bytes = self.read_block(block).await?;
            names.extend(entries::entries(&bytes).filter(|entry| entry.inode != 0).map(|entry| name_hash(entry.name)));
        }
        Ok(Some(Lost { number, blocks, cursor: 0, names }))
    }

    /// Looks up `lost+found` in the root. Any other kind of node of that name loses the name, and so is moved there,
    /// too.
    async fn find_lost(&mut self) -> Result<Option<u32>, CheckError> {
        let root = self.load(ROOT_INODE).await?;
        for (_, block) in self.data_blocks(&root).await? {
            let mut bytes = self.read_block(block).await?;
            let found = entries::entries(&bytes)
                .find(|entry| entry.inode != 0 && entry.name == NAME)
                .map(|entry| (entry.offset, entry.inode));
            let Some((offset, inode)) = found else { continue };
            if self.is_folder(inode) {
                return Ok(Some(inode));
            }
            if self.report(Fault::LostNotFolder { inode }).await? {
                entries::remove(&mut bytes, offset);
                self.write_block(block, &bytes).await?;
                self.count_name(inode, false);
            }
        }
        Ok(None)
    }

    async fn make_lost(&mut self) -> Result<Option<u32>, CheckError> {
        let free = (self.volume.first_inode..=self.volume.inodes())
            .filter(|&number| !self.is_used(number) && !self.used_before.has(number))
            .find(|&number| !self.orphans.has(number) && !self.is_unreadable(number));
        let (Some(number), Some(block)) = (free, self.take_block()) else { return Ok(None) };
        self.write_folder(number, ROOT_INODE, block, 0o700).await?;
        let root = self.load(ROOT_INODE).await?;
        let mut blocks: Vec<u32> = self.data_blocks(&root).await?.into_iter().map(|(_, block)| block).collect();
        let kind = if self.volume.has_kinds() { KIND_FOLDER } else { 0 };
        if !self.add_entry(ROOT_INODE, &mut blocks, &mut 0, (number, kind, NAME)).await? {
            // No entry refers to it yet.
            let mut node = self.load(number).await?;
            self.clear_inode(&mut node);
            self.store(&node).await?;
            self.names[number as usize] = 0;
            self.found.remove(block);
            return Ok(None);
        }
        self.count_name(number, true);
        self.count_name(ROOT_INODE, true);
        Ok(Some(number))
    }

    /// Creates a root folder; returns whether there is one.
    pub(super) async fn make_root(&mut self) -> Result<bool, CheckError> {
        if !self.may_fix(&Fault::RootMissing) || self.is_used(ROOT_INODE) {
            self.report(Fault::RootMissing).await?;
            return Ok(false);
        }
        self.mark();
        let Some(block) = self.take_block() else {
            self.report_no_room(Fault::RootMissing);
            return Ok(false);
        };
        self.report(Fault::RootMissing).await?;
        self.write_folder(ROOT_INODE, ROOT_INODE, block, 0o755).await?;
        self.count_name(ROOT_INODE, true);
        Ok(true)
    }

    /// Writes an empty folder, its block first, and records it. Its `.` is counted as a link, its `..` is not.
    async fn write_folder(&mut self, number: u32, parent: u32, block: u32, mode: u16) -> Result<(), CheckError> {
        let geometry = self.volume.geometry;
        let kind = if self.volume.has_kinds() { KIND_FOLDER } else { 0 };
        let mut bytes = vec![0; geometry.block_bytes as usize];
        fresh::folder_block(&mut bytes, number, parent, kind, None);
        self.write_block(block, &bytes).await?;
        let mut node = Node { number, bytes: vec![0; geometry.inode_bytes as usize] };
        let new = NewFolder { mode: FOLDER_MODE | mode, links: 2, time: self.device.now_s(), blocks: &[block] };
        fresh::folder_inode(&mut node.bytes, &new, geometry.block_bytes);
        self.store(&node).await?;
        self.inodes[number as usize] = known::USED | KIND_FOLDER;
        self.links[number as usize] = 2;
        let index = self.folders.partition_point(|folder| folder.number < number);
        self.folders.insert(index, Folder { number, parent, dot_dot: parent, walk: u32::MAX });
        self.count_name(number, true);
        Ok(())
    }

    /// Adds an entry to a folder, which grows if it has no room; returns whether there was room.
    async fn add_entry(
        &mut self,
        folder: u32,
        blocks: &mut Vec<u32>,
        cursor: &mut usize,
        (inode, kind, name): (u32, u8, &[u8]),
    ) -> Result<bool, CheckError> {
        while let Some(&block) = blocks.get(*cursor) {
            let mut bytes = self.read_block(block).await?;
            if entries::insert(&mut bytes, inode, kind, name) {
                let mut node = self.load(folder).await?;
                self.drop_index(&mut node).await?;
                self.write_block(block, &bytes).await?;
                return Ok(true);
            }
            *cursor += 1;
        }
        let Some(block) = self.take_block() else { return Ok(false) };
        let mut bytes = vec![0; self.volume.geometry.block_bytes as usize];
        fresh::write_entry(&mut bytes, inode, kind, name);
        self.write_block(block, &bytes).await?;
        let mut node = self.load(folder).await?;
        blocks.push(block);
        if !self.remap(&mut node, blocks).await? {
            blocks.pop();
            self.found.remove(block);
            return Ok(false);
        }
        Ok(true)
    }
}
