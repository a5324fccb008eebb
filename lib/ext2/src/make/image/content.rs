//! Files, directories and links: their inode numbers, then their blocks.

use alloc::vec;
use alloc::vec::Vec;

use super::writer::Writer;
use super::{Attributes, File, Folder, Foreign, ImageError, ImageSink, Link, Node, check_name};
use crate::format::ROOT_INODE;
use crate::format::fresh::{self, EXTRA_BYTES};
use crate::format::geometry::FIRST_INODE;
use crate::format::inode::{BLOCK_NUMBERS, DIRECT_BLOCKS, SHORT_TARGET_BYTES, field};
use crate::format::{directory, write_u16, write_u32};
use crate::make::{INODE_BYTES, LOST_NAME};

/// Linux's maximum link count: each subdirectory links to its parent.
const MAX_LINKS: usize = 32_000;
/// Permission bits of a mode.
const PERMISSION_BITS: u16 = 0o7777;

#[derive(Clone, Copy)]
enum Source<'a> {
    Folder(&'a Folder),
    File(&'a File),
    Foreign(&'a Foreign),
    Link(&'a Link),
}

impl Source<'_> {
    /// Returns the kind's number in a directory entry, and its bits in the mode.
    fn kind(self) -> (u8, u16) {
        match self {
            Source::File(_) | Source::Foreign(_) => (1, 0o100_000),
            Source::Folder(_) => (2, 0o040_000),
            Source::Link(_) => (7, 0o120_000),
        }
    }
}

impl<'a> From<&'a Node> for Source<'a> {
    fn from(node: &'a Node) -> Source<'a> {
        match node {
            Node::Folder(folder) => Source::Folder(folder),
            Node::File(file) => Source::File(file),
            Node::Foreign(file) => Source::Foreign(file),
            Node::Link(link) => Source::Link(link),
        }
    }
}

/// An inode to create.
struct Item<'a> {
    name: &'a [u8],
    source: Source<'a>,
    /// Inode number of its directory.
    parent: u32,
    /// Positions of a folder's entries among the items.
    children: core::ops::Range<usize>,
}

/// All inodes to create, with each directory's entries contiguous.
pub(super) struct Plan<'a> {
    items: Vec<Item<'a>>,
}

/// Returns the inode number of the item at this position: the root, then from the first free one on.
fn number_of(position: usize) -> u32 {
    // Plan::new checked that the positions fit.
    if position == 0 { ROOT_INODE } else { FIRST_INODE + (position - 1) as u32 }
}

impl<'a> Plan<'a> {
    pub(super) fn new<E>(root: &'a Folder, lost: &'a Folder) -> Result<Plan<'a>, ImageError<E>> {
        let mut items = vec![Item { name: b"/", source: Source::Folder(root), parent: ROOT_INODE, children: 0..0 }];
        let mut position = 0;
        while position < items.len() {
            let first = items.len();
            if let Source::Folder(folder) = items[position].source {
                let parent = number_of(position);
                if position == 0 {
                    items.push(Item { name: LOST_NAME, source: Source::Folder(lost), parent, children: 0..0 });
                }
                for (name, node) in &folder.entries {
                    check_name(name)?;
                    if position == 0 && name == LOST_NAME {
                        return Err(ImageError::Name(name.clone()));
                    }
                    items.push(Item { name, source: node.into(), parent, children: 0..0 });
                }
                items[position].children = first..items.len();
                let folders = items[first..].iter().filter(|item| matches!(item.source, Source::Folder(_))).count();
                if folders + 2 > MAX_LINKS {
                    return Err(ImageError::TooManyFolders(items[position].name.to_vec()));
                }
            }
            position += 1;
        }
        if u32::try_from(items.len()).is_ok_and(|count| count < u32::MAX - FIRST_INODE) {
            Ok(Plan { items })
        } else {
            Err(ImageError::Full)
        }
    }

    /// Returns the number of inodes in use, including the reserved ones.
    pub(super) fn used_inodes(&self) -> u32 {
        number_of(self.items.len() - 1)
    }

    pub(super) fn write<S: ImageSink>(&self, writer: &mut Writer<'_, S>) -> Result<(), ImageError<S::Error>> {
        for (position, item) in self.items.iter().enumerate() {
            let number = number_of(position);
            let (attributes, size, links, finished) = match item.source {
                Source::Folder(folder) => {
                    writer.count_folder(number);
                    let (size, finished) = self.write_folder(writer, position)?;
                    let folders = self.items[item.children.clone()]
                        .iter()
                        .filter(|child| matches!(child.source, Source::Folder(_)))
                        .count();
                    (&folder.attributes, size, 2 + folders as u16, finished)
                }
                Source::File(file) => (&file.attributes, file.size, 1, write_file(writer, item.name, file)?),
                Source::Foreign(file) => (&file.attributes, file.size, 1, write_foreign(writer, item.name, file)?),
                Source::Link(link) => {
                    (&link.attributes, link.target.len() as u64, 1, write_link(writer, item.name, link)?)
                }
            };
            let mode = item.source.kind().1 | attributes.permissions & PERMISSION_BITS;
            writer.write_inode(number, &inode_bytes(mode, attributes, size, links, &finished))?;
        }
        Ok(())
    }

    fn write_folder<S: ImageSink>(
        &self,
        writer: &mut Writer<'_, S>,
        position: usize,
    ) -> Result<(u64, Finished), ImageError<S::Error>> {
        let item = &self.items[position];
        let itself = (number_of(position), &b"."[..], 2);
        let parent = (item.parent, &b".."[..], 2);
        let children = item.children.clone().map(|child| {
            let item = &self.items[child];
            (number_of(child), item.name, item.source.kind().0)
        });
        let block_bytes = writer.layout.block_bytes as usize;
        let mut mapper = Mapper::new(block_bytes);
        let mut block = vec![0; block_bytes];
        let (mut blocks, mut end, mut last) = (0, 0, 0);
        for (inode, name, kind) in [itself, parent].into_iter().chain(children) {
            let bytes = fresh::entry_bytes(name.len());
            if end + bytes > block_bytes {
                close_block(&mut block, last);
                mapper.write(writer, blocks, &block)?;
                blocks += 1;
                block.fill(0);
                end = 0;
            }
            fresh::write_entry(&mut block[end..end + bytes], inode, kind, name);
            last = end;
            end += bytes;
        }
        close_block(&mut block, last);
        mapper.write(writer, blocks, &block)?;
        Ok(((blocks + 1) * block_bytes as u64, mapper.finish(writer)?))
    }
}

/// Extends the last entry of a directory block to the end of the block.
fn close_block(block: &mut [u8], last: usize) {
    // A block has at most 4096 bytes.
    let bytes = (block.len() - last) as u16;
    write_u16(&mut block[last..], directory::field::ENTRY_BYTES, bytes);
}

fn write_file<S: ImageSink>(
    writer: &mut Writer<'_, S>,
    name: &[u8],
    file: &File,
) -> Result<Finished, ImageError<S::Error>> {
    let block_bytes = writer.layout.block_bytes as usize;
    let wrong = || ImageError::Content(name.to_vec());
    if file.size > largest_file(block_bytes as u64) {
        return Err(wrong());
    }
    let mut mapper = Mapper::new(block_bytes);
    let mut block = vec![0; block_bytes];
    let mut open: Option<u64> = None;
    let mut least = 0;
    for (&start, bytes) in &file.extents {
        let end = start.checked_add(bytes.len() as u64).filter(|&end| end <= file.size).ok_or_else(wrong)?;
        if start < least {
            return Err(wrong());
        }
        least = end;
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let position = end - rest.len() as u64;
            let (logical, within) = (position / block_bytes as u64, (position % block_bytes as u64) as usize);
            if let Some(finished) = open.filter(|&open| open != logical) {
                mapper.write(writer, finished, &block)?;
                block.fill(0);
            }
            open = Some(logical);
            let (now, later) = rest.split_at(rest.len().min(block_bytes - within));
            block[within..within + now.len()].copy_from_slice(now);
            rest = later;
        }
    }
    if let Some(finished) = open {
        mapper.write(writer, finished, &block)?;
    }
    mapper.finish(writer)
}

/// Contiguous blocks of a foreign file, both in it and in the image.
struct Run {
    logical: u64,
    block: u32,
    count: u32,
}

impl Run {
    /// Returns whether this block extends both runs.
    fn goes_on_with(&self, logical: u64, block: u32) -> bool {
        self.logical + u64::from(self.count) == logical && self.block.checked_add(self.count) == Some(block)
    }

    fn copy<S: ImageSink>(self, writer: &mut Writer<'_, S>, file: &Foreign) -> Result<(), ImageError<S::Error>> {
        let block_bytes = u64::from(writer.layout.block_bytes);
        let start = self.logical * block_bytes;
        let end = (start + u64::from(self.count) * block_bytes).min(file.size);
        writer.copy(file.key, start..end, self.block)
    }
}

fn write_foreign<S: ImageSink>(
    writer: &mut Writer<'_, S>,
    name: &[u8],
    file: &Foreign,
) -> Result<Finished, ImageError<S::Error>> {
    let block_bytes = u64::from(writer.layout.block_bytes);
    let wrong = || ImageError::Content(name.to_vec());
    if file.size > largest_file(block_bytes) {
        return Err(wrong());
    }
    let mut mapper = Mapper::new(block_bytes as usize);
    let mut run: Option<Run> = None;
    let (mut least, mut next_logical) = (0, 0);
    for extent in &file.extents {
        if extent.start < least || extent.end < extent.start || extent.end > file.size {
            return Err(wrong());
        }
        least = extent.end;
        // The last block of the previous extent has been copied as a whole.
        for logical in next_logical.max(extent.start / block_bytes)..extent.end.div_ceil(block_bytes) {
            let block = mapper.place(writer, logical)?;
            match &mut run {
                Some(run) if run.goes_on_with(logical, block) => run.count += 1,
                _ => {
                    if let Some(run) = run.replace(Run { logical, block, count: 1 }) {
                        run.copy(writer, file)?;
                    }
                }
            }
            next_logical = logical + 1;
        }
    }
    if let Some(run) = run {
        run.copy(writer, file)?;
    }
    mapper.finish(writer)
}

/// Returns the bytes within reach of three levels of indirect blocks, and of an inode's sector count.
fn largest_file(block_bytes: u64) -> u64 {
    let numbers = block_bytes / 4;
    let reach = (12 + numbers + numbers * numbers + numbers * numbers * numbers) * block_bytes;
    reach.min(2 << 40)
}

fn write_link<S: ImageSink>(
    writer: &mut Writer<'_, S>,
    name: &[u8],
    link: &Link,
) -> Result<Finished, ImageError<S::Error>> {
    let block_bytes = writer.layout.block_bytes as usize;
    // Linux reads a target into a block and appends a zero.
    if link.target.is_empty() || link.target.len() >= block_bytes || link.target.contains(&0) {
        return Err(ImageError::Target(name.to_vec()));
    }
    if link.target.len() < SHORT_TARGET_BYTES {
        let mut numbers = [0; SHORT_TARGET_BYTES];
        numbers[..link.target.len()].copy_from_slice(&link.target);
        return Ok(Finished { numbers, sectors: 0 });
    }
    let mut mapper = Mapper::new(block_bytes);
    let mut block = vec![0; block_bytes];
    block[..link.target.len()].copy_from_slice(&link.target);
    mapper.write(writer, 0, &block)?;
    mapper.finish(writer)
}

/// Size and block numbers of an inode's content.
struct Finished {
    numbers: [u8; SHORT_TARGET_BYTES],
    sectors: u32,
}

/// An indirect block that is being filled.
struct OpenTable {
    /// Index of the table among all tables of its depth.
    position: u64,
    block: u32,
    numbers: Vec<u8>,
}

/// Maps the blocks of one file, in ascending order, in its inode and indirect blocks.
struct Mapper {
    per_block: u64,
    numbers: [u32; BLOCK_NUMBERS],
    /// Open tables on the path to the current block, outermost first, and the inode slot of the outermost.
    open: Vec<OpenTable>,
    slot: usize,
    blocks: u32,
}

impl Mapper {
    fn new(block_bytes: usize) -> Mapper {
        Mapper { per_block: block_bytes as u64 / 4, numbers: [0; BLOCK_NUMBERS], open: Vec::new(), slot: 0, blocks: 0 }
    }

    /// Writes the block with this position in the file.
    fn write<S: ImageSink>(
        &mut self,
        writer: &mut Writer<'_, S>,
        logical: u64,
        bytes: &[u8],
    ) -> Result<(), ImageError<S::Error>> {
        let block = self.place(writer, logical)?;
        writer.write_block(block, bytes)
    }

    /// Returns the block for this position of the file.
    fn place<S: ImageSink>(&mut self, writer: &mut Writer<'_, S>, logical: u64) -> Result<u32, ImageError<S::Error>> {
        if logical < DIRECT_BLOCKS as u64 {
            let block = self.allocate(writer)?;
            self.numbers[logical as usize] = block;
            return Ok(block);
        }
        let mut index = logical - DIRECT_BLOCKS as u64;
        let (mut depth, mut reach) = (1, self.per_block);
        while index >= reach && depth < 3 {
            index -= reach;
            depth += 1;
            reach *= self.per_block;
        }
        if self.slot != DIRECT_BLOCKS + depth - 1 {
            self.close(writer, 0)?;
            self.slot = DIRECT_BLOCKS + depth - 1;
        }
        for level in 0..depth {
            reach /= self.per_block;
            // Tables of one level are identified by the number of preceding ones.
            let position = index / (reach * self.per_block);
            if self.open.get(level).is_some_and(|table| table.position != position) {
                self.close(writer, level)?;
            }
            if self.open.len() == level {
                let block = self.allocate(writer)?;
                match level.checked_sub(1) {
                    None => self.numbers[self.slot] = block,
                    Some(above) => self.set(above, position % self.per_block, block),
                }
                self.open.push(OpenTable { position, block, numbers: vec![0; self.per_block as usize * 4] });
            }
        }
        let block = self.allocate(writer)?;
        self.set(depth - 1, index % self.per_block, block);
        Ok(block)
    }

    fn set(&mut self, level: usize, index: u64, block: u32) {
        // The index was reduced to below the table's length.
        write_u32(&mut self.open[level].numbers, index as usize * 4, block);
    }

    fn allocate<S: ImageSink>(&mut self, writer: &mut Writer<'_, S>) -> Result<u32, ImageError<S::Error>> {
        self.blocks += 1;
        writer.allocate()
    }

    /// Writes the open tables from this level down.
    fn close<S: ImageSink>(&mut self, writer: &mut Writer<'_, S>, level: usize) -> Result<(), ImageError<S::Error>> {
        for table in self.open.drain(level.min(self.open.len())..) {
            writer.write_block(table.block, &table.numbers)?;
        }
        Ok(())
    }

    fn finish<S: ImageSink>(mut self, writer: &mut Writer<'_, S>) -> Result<Finished, ImageError<S::Error>> {
        self.close(writer, 0)?;
        let mut numbers = [0; SHORT_TARGET_BYTES];
        for (bytes, number) in numbers.chunks_exact_mut(4).zip(self.numbers) {
            bytes.copy_from_slice(&number.to_le_bytes());
        }
        let sectors = self.blocks.saturating_mul(writer.layout.block_bytes / 512);
        Ok(Finished { numbers, sectors })
    }
}

fn inode_bytes(mode: u16, attributes: &Attributes, size: u64, links: u16, finished: &Finished) -> Vec<u8> {
    let mut bytes = vec![0; INODE_BYTES as usize];
    let halves = |number: u32| (number as u16, (number >> 16) as u16);
    let (owner_low, owner_high) = halves(attributes.owner);
    let (group_low, group_high) = halves(attributes.group);
    write_u16(&mut bytes, field::MODE, mode);
    write_u16(&mut bytes, field::OWNER_LOW, owner_low);
    write_u16(&mut bytes, field::OWNER_HIGH, owner_high);
    write_u16(&mut bytes, field::GROUP_LOW, group_low);
    write_u16(&mut bytes, field::GROUP_HIGH, group_high);
    write_u32(&mut bytes, field::SIZE_LOW, size as u32);
    write_u32(&mut bytes, field::SIZE_HIGH, (size >> 32) as u32);
    for time in [field::ACCESS_TIME, field::CHANGE_TIME, field::MODIFY_TIME] {
        write_u32(&mut bytes, time, attributes.modified);
    }
    write_u16(&mut bytes, field::LINKS, links);
    write_u32(&mut bytes, field::SECTORS, finished.sectors);
    bytes[field::BLOCK_NUMBERS..][..SHORT_TARGET_BYTES].copy_from_slice(&finished.numbers);
    write_u16(&mut bytes, field::EXTRA_BYTES, EXTRA_BYTES);
    bytes
}
