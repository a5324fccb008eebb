//! File data: read and written through the cache pages.

use super::Store;
use super::pages::{Mask, bits};
use super::tasks::each;
use crate::error::{DiskError, Error};
use crate::format::error::{Problem, Structure};
use crate::source::BlockSource;

/// Failed page writes after which waiting writers get the error.
const MAX_FAILURES: usize = 8;

/// Result of an attempt that does not wait.
enum Attempt {
    Done,
    /// The page is lent to the disk.
    Busy,
    /// The page must be read first.
    Missing,
}

/// A part of a page: the page, its first byte and block there, and the blocks it touches.
struct Piece {
    index: u64,
    start: usize,
    mask: Mask,
}

impl<S: BlockSource> Store<S> {
    /// Reads bytes of contiguous blocks, from byte `within` of the first on.
    pub(crate) async fn read_data(&self, first: u32, within: usize, target: &mut [u8]) -> Result<(), Error> {
        let offset = self.checked_offset(first, within, target.len())?;
        let mut done = 0;
        while done < target.len() {
            let (piece, bytes) = self.piece(offset + done as u64, target.len() - done);
            match self.copy_out(&piece, &mut target[done..done + bytes]) {
                Attempt::Done => done += bytes,
                // Several pages concurrently.
                _ => return self.read_missing(offset + done as u64, &mut target[done..]).await,
            }
        }
        Ok(())
    }

    /// Reads bytes as [`Store::read_data`] does, if all of them are in one cached page; otherwise returns false, and
    /// the content of the target is unspecified.
    pub(crate) fn read_cached(&self, first: u32, within: usize, target: &mut [u8]) -> bool {
        let Ok(offset) = self.checked_offset(first, within, target.len()) else { return false };
        let (piece, bytes) = self.piece(offset, target.len());
        bytes == target.len() && matches!(self.copy_out(&piece, target), Attempt::Done)
    }

    /// Reads the rest of a request, several pages concurrently.
    async fn read_missing(&self, mut offset: u64, target: &mut [u8]) -> Result<(), Error> {
        let mut rest = target;
        let next = || {
            let (piece, bytes) = self.piece(offset, rest.len());
            let (part, after) = core::mem::take(&mut rest).split_at_mut(bytes);
            (offset, rest) = (offset + bytes as u64, after);
            (bytes > 0).then(|| self.read_piece(piece, part))
        };
        each(self.0.limits.requests, next).await
    }

    async fn read_piece(&self, piece: Piece, target: &mut [u8]) -> Result<(), Error> {
        loop {
            match self.copy_out(&piece, target) {
                Attempt::Done => return Ok(()),
                Attempt::Busy => self.wait_for(piece.index).await,
                // No await separates loading from copying out.
                Attempt::Missing => self.load(piece.index, piece.mask).await?,
            }
        }
    }

    fn copy_out(&self, piece: &Piece, target: &mut [u8]) -> Attempt {
        let mut pages = self.0.pages.borrow_mut();
        let Some(slot) = pages.find(piece.index) else { return self.copy_out_of_sets(None, piece, target) };
        let Some(page) = pages.get(slot) else { return Attempt::Missing };
        match &page.buffer {
            Some(buffer) if page.valid & piece.mask == piece.mask => {
                target.copy_from_slice(&buffer[piece.start..piece.start + target.len()]);
                pages.hits += 1;
                pages.touch(slot);
                Attempt::Done
            }
            buffer => {
                let own = buffer.as_ref().map(|buffer| (&**buffer, page.valid));
                match self.copy_out_of_sets(own, piece, target) {
                    Attempt::Missing if page.is_busy => Attempt::Busy,
                    attempt => attempt,
                }
            }
        }
    }

    /// Copies a piece with blocks in the write set, if the others are in the page.
    fn copy_out_of_sets(&self, page: Option<(&[u8], Mask)>, piece: &Piece, target: &mut [u8]) -> Attempt {
        let geometry = &self.0.geometry;
        let sets = self.0.sets.borrow();
        let (first_block, count) = geometry.page_range(piece.index);
        let mut valid = page.map_or(0, |(_, valid)| valid);
        let shadowed = sets.mask(first_block, count);
        if (valid | shadowed) & piece.mask != piece.mask {
            return Attempt::Missing;
        }
        valid &= !shadowed;
        let mut done = 0;
        while done < target.len() {
            let start = piece.start + done;
            let (block, within) = (start / geometry.block_bytes, start % geometry.block_bytes);
            let bytes = (geometry.block_bytes - within).min(target.len() - done);
            let from = match page {
                Some((own, _)) if valid >> block & 1 != 0 => own.get(start..start + bytes),
                _ => sets.get(first_block + block as u32).and_then(|own| own.get(within..within + bytes)),
            };
            let Some(from) = from else { return Attempt::Missing };
            target[done..done + bytes].copy_from_slice(from);
            done += bytes;
        }
        Attempt::Done
    }

    /// Loads blocks in the background.
    pub(crate) fn read_ahead(&self, first: u32, blocks: u32) {
        let geometry = &self.0.geometry;
        let most = (self.0.limits.read_ahead_bytes / geometry.block_bytes) as u32;
        let blocks = blocks.min(most);
        if blocks == 0 || !geometry.contains(first, blocks) || self.0.is_shut.get() {
            return;
        }
        {
            let pages = self.0.pages.borrow();
            let mut ahead = self.0.ahead.borrow_mut();
            // Read-ahead must not evict earlier read-ahead before it is used.
            let room = (geometry.pages / 2).saturating_sub(ahead.len());
            let wanted = geometry.page_of(first).0..=geometry.page_of(first + blocks - 1).0;
            let missing = wanted.filter(|&index| pages.find(index).is_none());
            for index in missing.take(room) {
                if !ahead.contains(&index) {
                    ahead.push_back(index);
                }
            }
        }
        while self.0.readers_ahead.get() < self.0.limits.requests.max(1) && !self.0.ahead.borrow().is_empty() {
            self.0.readers_ahead.set(self.0.readers_ahead.get() + 1);
            let store = self.clone();
            self.0.source.spawn(async move { store.load_ahead().await });
        }
    }

    async fn load_ahead(&self) {
        loop {
            let next = self.0.ahead.borrow_mut().pop_front();
            let Some(index) = next else { break };
            if self.0.pages.borrow().find(index).is_none() {
                // A real read of it meets the failure again.
                self.load(index, Mask::MAX).await.unwrap_or(());
            }
        }
        self.0.readers_ahead.set(self.0.readers_ahead.get() - 1);
    }

    /// Writes bytes into contiguous blocks, from byte `within` of the first on. The rest of `fresh` blocks is zeroed;
    /// that of others is kept.
    pub(crate) async fn write_data(&self, first: u32, within: usize, bytes: &[u8], fresh: bool) -> Result<(), Error> {
        let offset = self.checked_offset(first, within, bytes.len())?;
        self.check_writable()?;
        let end = within + bytes.len();
        let blocks = end.div_ceil(self.0.geometry.block_bytes) - within / self.0.geometry.block_bytes;
        // Both fit: the range was checked to lie in the volume.
        let first_written = first + (within / self.0.geometry.block_bytes) as u32;
        self.allocator().check_owned(first_written, blocks as u32)?;
        let mut done = 0;
        while done < bytes.len() {
            let (piece, count) = self.piece(offset + done as u64, bytes.len() - done);
            let part = &bytes[done..done + count];
            loop {
                self.make_room().await?;
                match self.copy_in(&piece, part, fresh)? {
                    Attempt::Done => break,
                    Attempt::Busy => self.wait_for(piece.index).await,
                    Attempt::Missing => self.load(piece.index, piece.mask).await?,
                }
            }
            done += count;
        }
        self.write_in_background();
        Ok(())
    }

    fn copy_in(&self, piece: &Piece, bytes: &[u8], fresh: bool) -> Result<Attempt, Error> {
        let geometry = &self.0.geometry;
        let (first_block, _) = geometry.page_range(piece.index);
        let found = self.0.pages.borrow().find(piece.index);
        if found.is_none() {
            let buffer = self.take_buffer().map_err(|error| Error::Write(geometry.offset(first_block), error))?;
            let mut pages = self.0.pages.borrow_mut();
            let slot = pages.insert(piece.index, Some(buffer));
            pages.settle(slot);
        }
        let mut pages = self.0.pages.borrow_mut();
        let Some(slot) = pages.find(piece.index) else { return Ok(Attempt::Missing) };
        let Some(page) = pages.get_mut(slot) else { return Ok(Attempt::Missing) };
        let not_valid = piece.mask & !page.valid;
        if not_valid != 0 {
            let count = piece.mask.count_ones() as usize;
            let first = piece.mask.trailing_zeros() as usize;
            if self.0.sets.borrow().mask(first_block + first as u32, count) != 0 {
                let problem = Problem::Meaningless { field: "two owners, one of them", value: first_block.into() };
                return Err(Error::corrupt(
                    Structure::BlockBitmap(geometry.group_of(first_block)),
                    first_block.into(),
                    problem,
                ));
            }
        }
        let (block_bytes, valid) = (geometry.block_bytes, page.valid);
        let is_busy = page.is_busy;
        let Some(buffer) = &mut page.buffer else { return Ok(Attempt::Busy) };
        // Only the first and the last block may be written partially.
        let last = (piece.start + bytes.len() - 1) / block_bytes;
        let head = (!piece.start.is_multiple_of(block_bytes)).then_some(piece.start / block_bytes);
        let tail = (!(piece.start + bytes.len()).is_multiple_of(block_bytes)).then_some(last);
        for block in [head, tail].into_iter().flatten() {
            if fresh {
                buffer[block * block_bytes..(block + 1) * block_bytes].fill(0);
            } else if !fresh && valid >> block & 1 == 0 {
                return Ok(if is_busy { Attempt::Busy } else { Attempt::Missing });
            }
        }
        buffer[piece.start..piece.start + bytes.len()].copy_from_slice(bytes);
        page.valid |= piece.mask;
        page.dirty |= piece.mask;
        pages.settle(slot);
        Ok(Attempt::Done)
    }

    /// Maximum dirty pages before writers have to wait.
    fn max_unwritten(&self) -> usize {
        self.0.geometry.pages * 3 / 4
    }

    /// Waits until there is room for another dirty page.
    async fn make_room(&self) -> Result<(), Error> {
        let most = self.max_unwritten();
        let mut failures = 0;
        loop {
            let oldest = {
                let pages = self.0.pages.borrow();
                if pages.unwritten < most {
                    return Ok(());
                }
                pages.oldest_dirty()
            };
            match oldest {
                // A page that cannot be written stays in the cache; another one may do.
                Some(index) => match self.write_page(index).await {
                    Err(error) if failures >= MAX_FAILURES => return Err(error),
                    result => failures += usize::from(result.is_err()),
                },
                None => self.0.room.until(|| self.0.pages.borrow().unwritten < most).await,
            }
        }
    }

    /// Starts tasks that write the pages that have been dirty longest, if many are dirty.
    fn write_in_background(&self) {
        let many = self.0.geometry.pages / 4;
        while self.0.pages.borrow().unwritten > many
            && self.0.pages.borrow().oldest_dirty().is_some()
            && self.0.writers.get() < self.0.limits.requests.max(1)
        {
            self.0.writers.set(self.0.writers.get() + 1);
            let store = self.clone();
            self.0.source.spawn(async move {
                while store.0.pages.borrow().unwritten > many {
                    let oldest = store.0.pages.borrow().oldest_dirty();
                    let Some(index) = oldest else { break };
                    // A failure is recorded for the next commit, which retries.
                    if store.write_page(index).await.is_err() {
                        break;
                    }
                }
                store.0.writers.set(store.0.writers.get() - 1);
            });
            if self.0.data_error.get().is_some() {
                break;
            }
        }
    }

    /// Returns the disk offset of a byte in an extent, which must lie in the volume.
    fn checked_offset(&self, first: u32, within: usize, bytes: usize) -> Result<u64, Error> {
        let geometry = &self.0.geometry;
        let offset = geometry.offset(first) + within as u64;
        let end = offset + bytes as u64;
        if first <= geometry.first_data_block || end > geometry.offset(geometry.blocks) {
            return Err(Error::Read(offset, DiskError::Short));
        }
        Ok(offset)
    }

    /// Returns the part of a request in its first page.
    fn piece(&self, offset: u64, bytes: usize) -> (Piece, usize) {
        let geometry = &self.0.geometry;
        let page_bytes = geometry.page_bytes as u64;
        // Smaller than a page.
        let (index, start) = (offset / page_bytes, (offset % page_bytes) as usize);
        let bytes = bytes.min(geometry.page_bytes - start);
        let first = start / geometry.block_bytes;
        let count = (start + bytes).div_ceil(geometry.block_bytes) - first;
        (Piece { index, start, mask: bits(first, count) }, bytes)
    }
}
