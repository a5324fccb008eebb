//! Transfers between pages and the disk.

use super::pages::{Mask, bits, first_run};
use super::tasks::each;
use super::{Shared, Store};
use crate::error::{DiskError, Error, ReadOnlyReason};
use crate::source::BlockSource;

/// Disk I/O of a page. Ends also if the operation is dropped.
struct Flight<'a, S: BlockSource> {
    shared: &'a Shared<S>,
    slot: u32,
    writes: bool,
}

impl<'a, S: BlockSource> Flight<'a, S> {
    fn begin(shared: &'a Shared<S>, slot: u32, writes: bool) -> Flight<'a, S> {
        shared.pages.borrow_mut().begin_flight(slot, writes);
        Flight { shared, slot, writes }
    }
}

impl<S: BlockSource> Drop for Flight<'_, S> {
    fn drop(&mut self) {
        let mut pages = self.shared.pages.borrow_mut();
        pages.end_flight(self.slot, self.writes);
        if pages.get(self.slot).is_some_and(|page| page.buffer.is_none()) {
            pages.remove(self.slot);
        }
        drop(pages);
        if self.writes {
            self.shared.room.notify_all();
        }
    }
}

/// Ways to write a page.
enum Writing<B> {
    Nothing,
    Busy,
    /// The buffer itself goes to the disk, with its first so many blocks.
    Lend(u32, B, usize),
    /// A copy of these blocks goes to the disk.
    Copy(u32, Mask),
}

impl<S: BlockSource> Store<S> {
    /// Returns a buffer of a page's size, with unspecified content.
    pub(super) fn take_buffer(&self) -> Result<S::Buffer, DiskError> {
        if let Some(buffer) = self.0.spare.borrow_mut().pop() {
            return Ok(buffer);
        }
        let mut pages = self.0.pages.borrow_mut();
        // More than one, if there were too many because none could be evicted.
        let mut evicted = None;
        while pages.is_full() {
            match pages.evict() {
                Some(buffer) => evicted = Some(buffer),
                None => break,
            }
        }
        if let Some(buffer) = evicted {
            return Ok(buffer);
        }
        match self.0.source.allocate(self.0.geometry.page_bytes) {
            Ok(buffer) if buffer.len() >= self.0.geometry.page_bytes => Ok(buffer),
            Ok(_) => Err(DiskError::Short),
            Err(error) => pages.evict().ok_or(error),
        }
    }

    /// Keeps a buffer for reuse.
    pub(super) fn give_back(&self, buffer: Option<S::Buffer>) {
        let Some(buffer) = buffer else { return };
        if self.0.has_kept.get() && self.0.kept.borrow().is_empty() {
            return self.0.keep_for_commit(buffer);
        }
        let mut spare = self.0.spare.borrow_mut();
        if spare.len() < self.0.limits.requests * 2 {
            spare.push(buffer);
        }
    }

    /// Waits for the end of a page's disk I/O.
    pub(super) async fn wait_for(&self, index: u64) {
        loop {
            let idle = {
                let mut pages = self.0.pages.borrow_mut();
                pages.find(index).and_then(|slot| pages.until_idle(slot))
            };
            match idle {
                Some(idle) => idle.notified().await,
                None => return,
            }
        }
    }

    /// Reads the invalid blocks of a page, or waits for the task that does. The caller must check again afterwards: if
    /// the disk fails at other blocks of the page, only the `needed` ones are read.
    pub(super) async fn load(&self, index: u64, needed: Mask) -> Result<(), Error> {
        if self.0.is_shut.get() {
            return Err(Error::ShutDown);
        }
        let (first_block, count) = self.0.geometry.page_range(index);
        let offset = self.0.geometry.offset(first_block);
        let found = {
            let pages = self.0.pages.borrow();
            pages.find(index).map(|slot| (slot, pages.get(slot).is_some_and(|page| page.is_busy)))
        };
        if let Some((_, true)) = found {
            self.wait_for(index).await;
            return Ok(());
        }
        let failed = |error| Error::Read(offset, error);
        let (flight, buffer) = match found {
            // Removed from its list first, so that its own buffer is not evicted.
            Some((slot, _)) => (Flight::begin(&self.0, slot, false), self.take_buffer().map_err(failed)?),
            None => {
                let buffer = self.take_buffer().map_err(failed)?;
                let slot = self.0.pages.borrow_mut().insert(index, None);
                (Flight::begin(&self.0, slot, false), buffer)
            }
        };
        self.0.pages.borrow_mut().misses += 1;
        let block_bytes = self.0.geometry.block_bytes;
        let (buffer, result) = self.0.source.read(offset, buffer, count * block_bytes).await;
        match (buffer, result) {
            (Some(buffer), Ok(())) => self.loaded(&flight, buffer, bits(0, count)),
            (Some(buffer), Err(DiskError::Failed(_))) if needed.count_ones() < count as u32 => {
                self.load_needed(&flight, buffer, offset, needed).await?;
            }
            (buffer, result) => {
                self.give_back(buffer);
                return Err(failed(result.err().unwrap_or(DiskError::Gone)));
            }
        }
        Ok(())
    }

    /// Reads an extent alone.
    async fn load_needed(
        &self,
        flight: &Flight<'_, S>,
        buffer: S::Buffer,
        offset: u64,
        needed: Mask,
    ) -> Result<(), Error> {
        let block_bytes = self.0.geometry.block_bytes;
        let (first, count) = first_run(needed).unwrap_or((0, 1));
        let offset = offset + (first * block_bytes) as u64;
        let (buffer, result) = self.0.source.read(offset, buffer, count * block_bytes).await;
        match (buffer, result) {
            (Some(mut buffer), Ok(())) => {
                buffer.copy_within(..count * block_bytes, first * block_bytes);
                self.loaded(flight, buffer, bits(first, count));
                Ok(())
            }
            (buffer, result) => {
                self.give_back(buffer);
                Err(Error::Read(offset, result.err().unwrap_or(DiskError::Gone)))
            }
        }
    }

    /// Moves read blocks into the page, except those that became stale.
    fn loaded(&self, flight: &Flight<'_, S>, buffer: S::Buffer, read: Mask) {
        let mut pages = self.0.pages.borrow_mut();
        let Some(page) = pages.get_mut(flight.slot) else { return };
        let (first_block, count) = self.0.geometry.page_range(page.index);
        let shadowed = self.0.sets.borrow().mask(first_block, count);
        let wanted = read & !page.valid & !page.spoiled & !shadowed;
        let unused = match &mut page.buffer {
            None => page.buffer.replace(buffer),
            Some(own) => {
                let block_bytes = self.0.geometry.block_bytes;
                let mut rest = wanted;
                while let Some((first, count)) = first_run(rest) {
                    let range = first * block_bytes..(first + count) * block_bytes;
                    own[range.clone()].copy_from_slice(&buffer[range]);
                    rest &= !bits(first, count);
                }
                Some(buffer)
            }
        };
        page.valid |= wanted;
        drop(pages);
        self.give_back(unused);
    }

    /// Writes the dirty blocks of a page. A failure is recorded for the next commit, and the blocks stay dirty.
    pub(super) async fn write_page(&self, index: u64) -> Result<(), Error> {
        loop {
            match self.begin_writing(index) {
                Writing::Nothing => return Ok(()),
                Writing::Busy => self.wait_for(index).await,
                Writing::Lend(slot, buffer, count) => return self.write_lent(index, slot, buffer, count).await,
                Writing::Copy(slot, dirty) => return self.write_copies(index, slot, dirty).await,
            }
        }
    }

    fn begin_writing(&self, index: u64) -> Writing<S::Buffer> {
        let mut pages = self.0.pages.borrow_mut();
        let Some(slot) = pages.find(index) else { return Writing::Nothing };
        let Some(page) = pages.get_mut(slot) else { return Writing::Nothing };
        if page.is_busy {
            return Writing::Busy;
        }
        let Some((first, count)) = first_run(page.dirty) else { return Writing::Nothing };
        let dirty = core::mem::take(&mut page.dirty);
        let is_start = first == 0 && dirty == bits(0, count);
        // Users of a lent page have to wait, so less than half of it is copied instead.
        if is_start
            && count * 2 >= self.0.geometry.page_blocks
            && let Some(buffer) = page.buffer.take()
        {
            return Writing::Lend(slot, buffer, count);
        }
        Writing::Copy(slot, dirty)
    }

    async fn write_lent(&self, index: u64, slot: u32, buffer: S::Buffer, count: usize) -> Result<(), Error> {
        let flight = Flight::begin(&self.0, slot, true);
        let offset = self.0.geometry.offset(self.0.geometry.page_range(index).0);
        let (buffer, result) = self.0.source.write(offset, buffer, count * self.0.geometry.block_bytes).await;
        let result = if buffer.is_none() { Err(DiskError::Gone) } else { result };
        let mut pages = self.0.pages.borrow_mut();
        if let Some(page) = pages.get_mut(flight.slot) {
            page.buffer = buffer;
        }
        drop(pages);
        self.wrote(&flight, bits(0, count), result.map_err(|error| Error::Write(offset, error)))
    }

    async fn write_copies(&self, index: u64, slot: u32, dirty: Mask) -> Result<(), Error> {
        let flight = Flight::begin(&self.0, slot, true);
        let block_bytes = self.0.geometry.block_bytes;
        let page_offset = self.0.geometry.offset(self.0.geometry.page_range(index).0);
        let mut left = dirty;
        let mut result = Ok(());
        while let Some((first, count)) = first_run(left) {
            let offset = page_offset + (first * block_bytes) as u64;
            let failed = |error| Error::Write(offset, error);
            let copy = self.take_buffer().map_err(failed).map(|mut buffer| {
                let pages = self.0.pages.borrow();
                if let Some(own) = pages.get(slot).and_then(|page| page.buffer.as_ref()) {
                    let bytes = count * block_bytes;
                    buffer[..bytes].copy_from_slice(&own[first * block_bytes..][..bytes]);
                }
                buffer
            });
            let written = match copy {
                Err(error) => Err(error),
                Ok(buffer) => {
                    let (buffer, written) = self.0.source.write(offset, buffer, count * block_bytes).await;
                    self.give_back(buffer);
                    written.map_err(failed)
                }
            };
            result = result.and(self.wrote(&flight, bits(first, count), written));
            left &= !bits(first, count);
        }
        result
    }

    /// Records the result of writing these blocks.
    fn wrote(&self, flight: &Flight<'_, S>, written: Mask, result: Result<(), Error>) -> Result<(), Error> {
        if let Err(error) = result {
            self.0.data_error.set(Some(error));
            if let Some(page) = self.0.pages.borrow_mut().get_mut(flight.slot) {
                page.dirty |= written & !page.spoiled & page.valid;
            }
        }
        result
    }

    /// Writes all pages that are dirty now, and waits for writes in progress. Failures are recorded.
    pub(super) async fn write_all_data(&self) {
        let mut indices = self.0.pages.borrow().unwritten_indices().into_iter();
        // A failure is recorded, and does not prevent the other writes.
        let next = || {
            let index = indices.next()?;
            Some(async move {
                let _ = self.write_page(index).await;
                Ok::<(), Error>(())
            })
        };
        each(self.0.limits.requests, next).await.unwrap_or(());
    }

    /// Makes completed writes durable.
    pub(crate) async fn flush(&self) -> Result<(), Error> {
        self.0.source.flush().await.map_err(|error| self.fail(ReadOnlyReason::FlushFailed(error)))
    }
}
