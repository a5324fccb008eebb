//! A mounted volume: its superblock, its caches and the reading of files.
//!
//! There are three caches, as in the paper: inodes, block numbers (the leaf tables of the indirect
//! blocks) and data. The data cache holds lines: aligned pieces of the disk, larger than a block,
//! so that one request to the disk brings what will be wanted next. A line is the source's own
//! buffer and is not copied into the cache.

use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::future::poll_fn;
use core::ops::Deref;
use core::pin::Pin;
use core::task::Poll;

use crate::cache::{Cache, CacheCounts};
use crate::error::{DiskError, Error, Problem, Structure};
use crate::mapping::{Leaf, Run};
use crate::source::BlockSource;
use crate::wire::group::{self, GroupDescriptor};
use crate::wire::inode::{self, Inode, Kind};
use crate::wire::superblock::{self, Superblock};

/// Lines that one read asks the disk for at the same time.
const LINES_AT_ONCE: u64 = 8;
/// The source is asked for multiples of this.
const SECTOR_BYTES: u64 = 512;
/// Bytes that a cached inode counts for, its place in the cache's map included.
const INODE_COST: usize = size_of::<Inode>() + 64;

/// Folders whose place of the last find is remembered.
const FOLDERS_REMEMBERED: usize = 64;

/// How much each cache may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheLimits {
    /// Bytes of inodes.
    pub inode_bytes: usize,
    /// Bytes of block numbers.
    pub number_bytes: usize,
    /// Bytes of data.
    pub data_bytes: usize,
    /// Bytes of a piece of data; made a power of two between 4 KiB and 1 MiB.
    pub line_bytes: usize,
}

impl Default for CacheLimits {
    /// A few MiB in all: enough to hold the metadata that a shell's commands touch.
    fn default() -> CacheLimits {
        CacheLimits { inode_bytes: 256 << 10, number_bytes: 512 << 10, data_bytes: 4 << 20, line_bytes: 32 << 10 }
    }
}

/// How the caches have done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStatistics {
    /// The inode cache.
    pub inodes: CacheCounts,
    /// The block number cache.
    pub numbers: CacheCounts,
    /// The data cache.
    pub data: CacheCounts,
}

/// A block, held in the cache's line as long as this lives.
pub(crate) struct BlockReference<B> {
    /// The block's number.
    pub(crate) number: u32,
    line: Rc<B>,
    start: usize,
    bytes: usize,
}

impl<B: Deref<Target = [u8]>> Deref for BlockReference<B> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // The line was checked to have all its bytes when it was read.
        self.line.get(self.start..self.start + self.bytes).unwrap_or(&[])
    }
}

/// A mounted volume.
pub struct Volume<S: BlockSource> {
    source: S,
    superblock: Superblock,
    line_bytes: u64,
    inodes: RefCell<Cache<u32, Inode>>,
    pub(crate) numbers: RefCell<Cache<(u32, u64), Leaf>>,
    lines: RefCell<Cache<u64, Rc<S::Buffer>>>,
    /// For each folder the block in which a name was found last: who asks for name after name in the
    /// folder's order finds each where the one before was.
    pub(crate) found_at: RefCell<Cache<u32, u64>>,
}

impl<S: BlockSource> Volume<S> {
    /// Reads and checks the superblock, and refuses what cannot be read rightly.
    pub async fn mount(source: S, limits: CacheLimits) -> Result<Volume<S>, Error> {
        let superblock = read_superblock(&source).await?;
        let disk_bytes = source.size_bytes();
        if superblock.volume_bytes() > disk_bytes {
            return Err(Error::Truncated { disk_bytes, volume_bytes: superblock.volume_bytes() });
        }
        let block_bytes = u64::from(superblock.block_bytes);
        let descriptor_blocks = (u64::from(superblock.groups()) * group::BYTES as u64).div_ceil(block_bytes);
        let most = u64::from(superblock.blocks - superblock.first_data_block) - 1;
        if descriptor_blocks > most {
            let problem = Problem::OutOfRange {
                field: "the number of descriptor blocks",
                value: descriptor_blocks,
                least: 1,
                most,
            };
            return Err(Error::corrupt(Structure::Superblock, superblock.first_data_block.into(), problem));
        }
        let line_bytes = limits.line_bytes.clamp(4096, 1 << 20).next_power_of_two();
        Ok(Volume {
            source,
            superblock,
            line_bytes: line_bytes as u64,
            inodes: RefCell::new(Cache::new(limits.inode_bytes)),
            numbers: RefCell::new(Cache::new(limits.number_bytes)),
            lines: RefCell::new(Cache::new(limits.data_bytes)),
            found_at: RefCell::new(Cache::new(FOLDERS_REMEMBERED)),
        })
    }

    /// The superblock.
    pub fn superblock(&self) -> &Superblock {
        &self.superblock
    }

    /// The disk.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// How the caches have done.
    pub fn cache_statistics(&self) -> CacheStatistics {
        CacheStatistics {
            inodes: self.inodes.borrow().counts(),
            numbers: self.numbers.borrow().counts(),
            data: self.lines.borrow().counts(),
        }
    }

    /// The inode with this number, which has to be in use.
    pub async fn inode(&self, number: u32) -> Result<Inode, Error> {
        let cached = self.inodes.borrow_mut().get(number);
        if let Some(inode) = cached {
            return Ok(inode);
        }
        let (block, start) = self.locate_inode(number).await?;
        let bytes = self.block(block).await?;
        let home_block = u64::from(block);
        let damaged = |problem| Error::corrupt(Structure::Inode(number), home_block, problem);
        let view = bytes.get(start..).and_then(inode::View::new).ok_or(damaged(Problem::Missing("its end")))?;
        let inode = Inode::parse(number, home_block, &view, self.superblock.largest_file()).map_err(damaged)?;
        self.inodes.borrow_mut().insert(number, inode, INODE_COST);
        Ok(inode)
    }

    /// Reads a file's bytes from `offset` on into `buffer`: as many as fit or as there are.
    pub async fn read(&self, file: &Inode, offset: u64, buffer: &mut [u8]) -> Result<usize, Error> {
        if file.kind != Kind::File {
            return Err(Error::NotAFile);
        }
        self.read_content(file, offset, buffer).await
    }

    pub(crate) async fn read_content(&self, inode: &Inode, offset: u64, buffer: &mut [u8]) -> Result<usize, Error> {
        let left = inode.size.saturating_sub(offset);
        let wanted = usize::try_from(left).map_or(buffer.len(), |left| left.min(buffer.len()));
        let block_bytes = u64::from(self.superblock.block_bytes);
        let mut done = 0;
        while done < wanted {
            let position = offset + done as u64;
            let within = position % block_bytes;
            let run = self.run(inode, position / block_bytes).await?;
            let run_bytes = run.blocks() * block_bytes - within;
            let bytes = usize::try_from(run_bytes).map_or(wanted - done, |bytes| bytes.min(wanted - done));
            let target = &mut buffer[done..done + bytes];
            match run {
                Run::Hole { .. } => target.fill(0),
                Run::Blocks { first, .. } => self.read_disk(u64::from(first) * block_bytes + within, target).await?,
            }
            done += bytes;
        }
        Ok(wanted)
    }

    /// The block with this number, which the caller has checked to lie in the volume.
    pub(crate) async fn block(&self, block: u32) -> Result<BlockReference<S::Buffer>, Error> {
        let bytes = self.superblock.block_bytes as usize;
        let offset = u64::from(block) * bytes as u64;
        let line = self.line(offset / self.line_bytes).await?;
        // Smaller than a line, which is at most 1 MiB.
        let start = (offset % self.line_bytes) as usize;
        if line.len() < start + bytes {
            return Err(Error::Read(offset, DiskError::Short));
        }
        Ok(BlockReference { number: block, line, start, bytes })
    }

    /// The block and the byte in it where this inode lies.
    async fn locate_inode(&self, number: u32) -> Result<(u32, usize), Error> {
        let superblock = &self.superblock;
        if number == 0 || number > superblock.inodes {
            return Err(Error::corrupt(
                Structure::Inode(number),
                superblock.first_data_block.into(),
                Problem::OutOfRange {
                    field: "its number",
                    value: number.into(),
                    least: 1,
                    most: superblock.inodes.into(),
                },
            ));
        }
        let (group, index) = ((number - 1) / superblock.inodes_per_group, (number - 1) % superblock.inodes_per_group);
        let table_blocks = (u64::from(superblock.inodes_per_group) * u64::from(superblock.inode_bytes))
            .div_ceil(superblock.block_bytes.into());
        let descriptors_per_block = superblock.block_bytes / group::BYTES as u32;
        let descriptor_block = superblock.first_data_block + 1 + group / descriptors_per_block;
        let bytes = self.block(descriptor_block).await?;
        let damaged = |problem| Error::corrupt(Structure::GroupDescriptor(group), descriptor_block.into(), problem);
        let start = (group % descriptors_per_block) as usize * group::BYTES;
        let view = bytes.get(start..).and_then(group::View::new).ok_or(damaged(Problem::Missing("its end")))?;
        let table = GroupDescriptor::parse(&view).inode_table;
        let least = u64::from(superblock.first_data_block) + 1;
        let most = u64::from(superblock.blocks).saturating_sub(table_blocks);
        if !(least..=most).contains(&table.into()) {
            let value = table.into();
            return Err(damaged(Problem::OutOfRange { field: "inode_table", value, least, most }));
        }
        let byte = u64::from(index) * u64::from(superblock.inode_bytes);
        let block = u64::from(table) + byte / u64::from(superblock.block_bytes);
        // Both fit: the table lies in the volume, and the rest is smaller than a block.
        Ok((block as u32, (byte % u64::from(superblock.block_bytes)) as usize))
    }

    /// Copies bytes of the disk through the data cache.
    async fn read_disk(&self, offset: u64, target: &mut [u8]) -> Result<(), Error> {
        let end = offset + target.len() as u64;
        let mut done = 0;
        while done < target.len() {
            let first = (offset + done as u64) / self.line_bytes;
            let last = ((end - 1) / self.line_bytes).min(first + LINES_AT_ONCE - 1);
            for (index, line) in (first..).zip(self.lines(first, last).await?) {
                let position = offset + done as u64;
                let start = (position - index * self.line_bytes) as usize;
                let available = line.get(start..).unwrap_or(&[]);
                let bytes = available.len().min(target.len() - done);
                if bytes == 0 {
                    return Err(Error::Read(position, DiskError::Short));
                }
                target[done..done + bytes].copy_from_slice(&available[..bytes]);
                done += bytes;
            }
        }
        Ok(())
    }

    /// The lines from `first` to `last`, asked for all at once.
    async fn lines(&self, first: u64, last: u64) -> Result<Vec<Rc<S::Buffer>>, Error> {
        if first == last {
            return Ok(alloc::vec![self.line(first).await?]);
        }
        let mut loads: Vec<_> = (first..=last).map(|index| Box::pin(self.line(index))).collect();
        let mut lines: Vec<Option<Result<Rc<S::Buffer>, Error>>> = loads.iter().map(|_| None).collect();
        // All are seen to their end, even if one fails: a source may not have its reads abandoned.
        poll_fn(|context| {
            for (load, line) in loads.iter_mut().zip(&mut lines).filter(|(_, line)| line.is_none()) {
                if let Poll::Ready(result) = Pin::new(load).poll(context) {
                    *line = Some(result);
                }
            }
            if lines.iter().any(Option::is_none) { Poll::Pending } else { Poll::Ready(()) }
        })
        .await;
        lines.into_iter().flatten().collect()
    }

    async fn line(&self, index: u64) -> Result<Rc<S::Buffer>, Error> {
        let cached = self.lines.borrow_mut().get(index);
        if let Some(line) = cached {
            return Ok(line);
        }
        let offset = index * self.line_bytes;
        let left = self.source.size_bytes().saturating_sub(offset);
        // At most a line, which is at most 1 MiB; and whole sectors, as a disk has it.
        let bytes = (left - left % SECTOR_BYTES).min(self.line_bytes) as usize;
        let line = Rc::new(read_exactly(&self.source, offset, bytes).await?);
        self.lines.borrow_mut().insert(index, Rc::clone(&line), bytes);
        Ok(line)
    }
}

async fn read_exactly<S: BlockSource>(source: &S, offset: u64, bytes: usize) -> Result<S::Buffer, Error> {
    let failed = |error| Error::Read(offset, error);
    let buffer = source.allocate(bytes).map_err(failed)?;
    let (buffer, result) = source.read(offset, buffer, bytes).await;
    result.map_err(failed)?;
    buffer.filter(|buffer| buffer.len() >= bytes).ok_or(failed(DiskError::Short))
}

async fn read_superblock<S: BlockSource>(source: &S) -> Result<Superblock, Error> {
    let disk_bytes = source.size_bytes();
    if disk_bytes < superblock::OFFSET + superblock::BYTES as u64 {
        return Err(Error::TooSmall(disk_bytes));
    }
    let bytes = read_exactly(source, superblock::OFFSET, superblock::BYTES).await?;
    let view = superblock::View::new(&bytes).ok_or(Error::TooSmall(disk_bytes))?;
    match Superblock::parse(&view) {
        Err(Error::NotExt2 { found, .. }) => Err(Error::NotExt2 { found, backup: find_backup(source).await }),
        parsed => parsed,
    }
}

/// Looks for a copy of the superblock where group 1 begins on volumes with the usual group size.
async fn find_backup<S: BlockSource>(source: &S) -> Option<(u64, u32)> {
    for (log_block_size, block) in [(0, 8193), (1, 16384), (2, 32768)] {
        let block_bytes = 1024u32 << log_block_size;
        let offset = block * u64::from(block_bytes);
        if offset + superblock::BYTES as u64 > source.size_bytes() {
            continue;
        }
        let Ok(bytes) = read_exactly(source, offset, superblock::BYTES).await else { continue };
        let view = superblock::View::new(&bytes);
        if view.is_some_and(|view| view.magic() == superblock::MAGIC && view.log_block_size() == log_block_size) {
            return Some((block, block_bytes));
        }
    }
    None
}
