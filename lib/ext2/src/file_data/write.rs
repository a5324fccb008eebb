//! Writing files.
//!
//! Mapped blocks are written in place; of the metadata only the times change, at most once a second. For holes and past
//! the end, blocks are allocated, written, and only then mapped, in one change: no crash exposes their old content.

use alloc::rc::Rc;

use task_sync::Mode;

use super::FileData;
use crate::block_map::Run;
use crate::block_map::grow::{GROW_BLOCKS, Growth};
use crate::error::Error;
use crate::format::inode::{Inode, Kind, flag};
use crate::inode::{InodePlace, Node};
use crate::source::BlockSource;
use crate::store::{Change, Feature};

/// Maximum blocks allocated in one change.
const MAX_BLOCKS: u64 = 1024;
/// Maximum file size in bytes without the feature `large_file`.
const LARGE_FILE: u64 = 0x7fff_ffff;

/// A write that ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partial {
    /// Bytes written before the error.
    pub written: usize,
    /// Why the rest was not written.
    pub error: Error,
}

/// Position of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Position {
    At(u64),
    End,
}

impl<S: BlockSource> FileData<S> {
    /// Writes bytes into an open file. Returns their offset.
    pub(crate) async fn write(&self, node: &Rc<Node>, position: Position, bytes: &[u8]) -> Result<u64, Partial> {
        let nothing = |error| Partial { written: 0, error };
        self.admission.check_writable().map_err(nothing)?;
        let _content = node.content.acquire(Mode::Exclusive).await;
        self.admission.check_writable().map_err(nothing)?;
        let inode = self.inodes.get_open(node).await.map_err(nothing)?;
        let offset = match position {
            Position::At(offset) => offset,
            Position::End => inode.size,
        };
        self.check_write(&inode, offset).map_err(nothing)?;
        if bytes.is_empty() {
            return Ok(offset);
        }
        if offset > inode.size {
            self.clear_tail(&inode, inode.size, offset).await.map_err(nothing)?;
        }
        // Bytes beyond the maximum size are not written at all.
        let room = self.max_size().saturating_sub(offset);
        let fits = usize::try_from(room).map_or(bytes.len(), |room| room.min(bytes.len()));
        let (written, mut result) = self.write_content(inode, offset, &bytes[..fits]).await;
        if result.is_ok() && fits < bytes.len() {
            result = Err(Error::TooLarge);
        }
        match result {
            Ok(()) => Ok(offset),
            Err(error) => Err(Partial { written, error }),
        }
    }

    fn check_write(&self, inode: &Inode, offset: u64) -> Result<(), Error> {
        if inode.kind != Kind::File {
            return Err(Error::NotAFile);
        }
        let is_kept = inode.flags & flag::APPEND_ONLY != 0 && offset != inode.size;
        if inode.flags & flag::IMMUTABLE != 0 || is_kept {
            return Err(Error::Protected);
        }
        if offset >= self.max_size() { Err(Error::TooLarge) } else { Ok(()) }
    }

    /// Maximum file size in bytes: bounded by three levels of indirection and by the inode's count of sectors.
    pub(crate) fn max_size(&self) -> u64 {
        let sectors_left = u64::from(u32::MAX) / u64::from(self.store.geometry().block_sectors());
        let per_block = u64::from(self.store.geometry().numbers_per_block());
        // The tables count as well.
        let max_blocks = sectors_left - sectors_left / per_block - sectors_left / (per_block * per_block) - 3;
        self.store.geometry().max_file_bytes.min(max_blocks * self.blocks.block_bytes())
    }

    /// Writes bytes and updates the inode. Returns how many were written.
    async fn write_content(&self, mut inode: Inode, offset: u64, bytes: &[u8]) -> (usize, Result<(), Error>) {
        let mut written = 0;
        let mut result = Ok(());
        while written < bytes.len() && result.is_ok() {
            match self.write_piece(&mut inode, offset + written as u64, &bytes[written..]).await {
                Ok(count) => written += count,
                Err(error) => result = Err(error),
            }
        }
        let end = offset + written as u64;
        let now = self.store.now_s();
        let is_known = inode.size >= end && inode.modified == now && inode.changed == now;
        if written > 0 && !is_known {
            let noted = self.note_write(&inode, end).await;
            if let Err(error) = noted {
                // Bytes past the recorded end do not count.
                written = usize::try_from(inode.size.saturating_sub(offset)).unwrap_or(written).min(written);
                result = Err(error);
            }
        }
        (written, result)
    }

    async fn note_write(&self, inode: &Inode, end: u64) -> Result<(), Error> {
        let change = self.store.begin(1).await?;
        let place = self.inodes.fetch(&change, inode.number).await?;
        self.note_size(&change, &place, end, None)?;
        Ok(())
    }

    /// Updates size and times after a write up to `end`.
    fn note_size(
        &self,
        change: &Change<S>,
        place: &InodePlace,
        end: u64,
        growth: Option<&Growth>,
    ) -> Result<Inode, Error> {
        self.note_large(change, end);
        let now = self.store.now_s();
        self.inodes.change(change, place, |inode| {
            if let Some(growth) = growth {
                growth.note(inode, self.store.geometry().block_sectors());
            }
            inode.size = inode.size.max(end);
            (inode.modified, inode.changed) = (now, now);
        })
    }

    /// Sets the feature `large_file` before the first file needs it.
    pub(super) fn note_large(&self, change: &Change<S>, size: u64) {
        if size > LARGE_FILE {
            self.store.add_feature(change, Feature::LargeFile);
        }
    }

    /// Writes the bytes that lie in one run. Returns how many.
    async fn write_piece(&self, inode: &mut Inode, offset: u64, bytes: &[u8]) -> Result<usize, Error> {
        let block_bytes = self.blocks.block_bytes();
        let (logical, within) = (offset / block_bytes, (offset % block_bytes) as usize);
        let wanted = (within as u64 + bytes.len() as u64).div_ceil(block_bytes);
        match self.blocks.run(inode, logical, wanted).await? {
            Run::Blocks { first, blocks } => {
                let count = bytes.len().min((blocks * block_bytes) as usize - within);
                self.store.write_data(first, within, &bytes[..count], false).await?;
                Ok(count)
            }
            Run::Hole { blocks } => {
                let most = blocks.min(wanted).min(MAX_BLOCKS);
                self.fill_hole(inode, offset, bytes, most).await
            }
        }
    }

    async fn fill_hole(&self, inode: &mut Inode, offset: u64, bytes: &[u8], most: u64) -> Result<usize, Error> {
        let block_bytes = self.blocks.block_bytes();
        let change = self.store.begin_for(GROW_BLOCKS + 1, most as u32 + 3).await?;
        let place = self.inodes.fetch(&change, inode.number).await?;
        let growth = self.blocks.grow(&change, inode, offset / block_bytes, most).await?;
        let within = (offset % block_bytes) as usize;
        let count = bytes.len().min((growth.blocks() * block_bytes) as usize - within);
        if let Err(error) = self.fill(&growth, within, &bytes[..count]).await {
            self.blocks.give_back(&change, &growth).await;
            return Err(error);
        }
        self.blocks.install(&change, inode.number, &growth)?;
        *inode = self.note_size(&change, &place, offset + count as u64, Some(&growth))?;
        Ok(count)
    }

    async fn fill(&self, growth: &Growth, mut within: usize, mut bytes: &[u8]) -> Result<(), Error> {
        for &(first, count) in &growth.runs {
            let room = count as usize * self.store.block_bytes() - within;
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.store.write_data(first, within, now, true).await?;
            (bytes, within) = (later, 0);
        }
        Ok(())
    }

    /// Zeroes the last block past the end of the file, before the file grows beyond it.
    pub(super) async fn clear_tail(&self, inode: &Inode, size: u64, new_size: u64) -> Result<(), Error> {
        let block_bytes = self.blocks.block_bytes();
        let within = (size % block_bytes) as usize;
        if within == 0 {
            return Ok(());
        }
        let Run::Blocks { first, .. } = self.blocks.run(inode, size / block_bytes, 1).await? else { return Ok(()) };
        let count = (block_bytes - within as u64).min(new_size - size) as usize;
        self.store.write_data(first, within, &alloc::vec![0; count], false).await
    }
}
