//! The write-back cache of a disk: aligned pages in the source's own buffers.
//!
//! # Page ownership
//!
//! A page's buffer is either *here*, where the operation that holds the volume copies from and to it, or *at the
//! disk*: owned by a task that reads or writes this one page, which then has a latch. All disk requests are made by
//! such tasks ([`transfer`]), driven by the source's executor ([`BlockSource::spawn`]). An operation makes none: it
//! spawns tasks and waits for latches. So even if an operation is never polled again or is dropped, the request that
//! occupies a channel to the disk is polled when its reply arrives, and frees the channel. Read-ahead is such a task
//! too, without waiters.
//!
//! A task ends in one of three ways, each of which completes the latch:
//! - success: the page is here, and clean;
//! - failure: a page that was read leaves the cache, and the next operation that needs it reads it again; a page that
//!   was written is here and still dirty, for the next write-back;
//! - dropped, with the executor: as a failed read; if dirty data was lost, the cache refuses all further changes, as it
//!   does when the driver does not return the buffer.
//!
//! Operations are serialized, so between lookup and use of a page nothing changes it but the end of a task. An
//! unreadable sector makes only itself unreadable, not its page.
//!
//! Key type: [`Cache`]. Deliberately not here: what the bytes mean.

mod limits;
mod page;
mod transfer;

use alloc::collections::{BTreeMap, VecDeque};
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use crate::latch::Latch;
use crate::{BlockSource, DiskError};
pub use limits::{CacheCounters, CacheLimits};
pub(crate) use page::SECTOR_BYTES;
use page::{Page, Place, sector_bits};

/// Maximum pages per read, and per write-back batch.
const MAX_BATCH: usize = 8;
/// Maximum pages read ahead of a sequential reader.
const MAX_READ_AHEAD: usize = 16;
/// Maximum pages at the disk; the part for reads is kept free of read-ahead.
const MAX_IN_FLIGHT: usize = MAX_BATCH + MAX_READ_AHEAD + MAX_BATCH;

/// Position at which sequential reading was last detected.
#[derive(Default)]
struct Sequence {
    expected: u64,
    ahead: u64,
}

/// The transfer of a page.
enum Flight {
    None,
    Read(Latch),
    Write(Latch),
}

/// The pages of a disk.
pub(crate) struct Cache<S: BlockSource> {
    source: Rc<S>,
    page_bytes: usize,
    max_pages: usize,
    size_bytes: u64,
    pages: RefCell<BTreeMap<u64, Page<S::Buffer>>>,
    sequence: RefCell<Sequence>,
    clock: Cell<u64>,
    hits: Cell<u64>,
    misses: Cell<u64>,
    /// A dirty page was lost with the driver: writing anything else could make the damage worse.
    has_lost_changes: Cell<bool>,
}

impl<S: BlockSource> Cache<S> {
    pub(crate) fn new(source: S, limits: CacheLimits) -> Cache<S> {
        let size_bytes = source.size_bytes() - source.size_bytes() % source.sector_bytes() as u64;
        Cache {
            source: Rc::new(source),
            page_bytes: limits.rounded_page_bytes(),
            max_pages: limits.max_pages(),
            size_bytes,
            pages: RefCell::new(BTreeMap::new()),
            sequence: RefCell::new(Sequence::default()),
            clock: Cell::new(0),
            hits: Cell::new(0),
            misses: Cell::new(0),
            has_lost_changes: Cell::new(false),
        }
    }

    pub(crate) fn source(&self) -> &S {
        &self.source
    }

    /// Bytes that can be transferred.
    pub(crate) fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    pub(crate) fn counters(&self) -> CacheCounters {
        let pages = self.pages.borrow();
        let dirty: u64 = pages.values().map(|page| u64::from(page.dirty.count_ones())).sum();
        CacheCounters {
            hits: self.hits.get(),
            misses: self.misses.get(),
            bytes: (pages.len() * self.page_bytes) as u64,
            limit_bytes: (self.max_pages * self.page_bytes) as u64,
            unwritten_bytes: dirty * SECTOR_BYTES as u64,
        }
    }

    fn page_of(&self, offset: u64) -> u64 {
        offset / self.page_bytes as u64
    }

    fn offset_of(&self, page: u64) -> u64 {
        page * self.page_bytes as u64
    }

    /// Bytes of this page within the disk.
    fn bytes_of(&self, page: u64) -> usize {
        // At most a page.
        self.size_bytes.saturating_sub(self.offset_of(page)).min(self.page_bytes as u64) as usize
    }

    fn tick(&self) -> u64 {
        self.clock.set(self.clock.get() + 1);
        self.clock.get()
    }

    /// Copies cached data from `offset` into `target`, up to the first page that is not here; returns the number of
    /// bytes.
    pub(crate) fn copy_out(&self, offset: u64, target: &mut [u8]) -> Result<usize, DiskError> {
        let mut pages = self.pages.borrow_mut();
        let mut done = 0;
        while done < target.len() {
            let at = offset + done as u64;
            let Some(page) = pages.get_mut(&self.page_of(at)) else { break };
            let within = (at % self.page_bytes as u64) as usize;
            let count = (self.page_bytes - within).min(target.len() - done);
            if page.unreadable & sector_bits(within, count) != 0 {
                return Err(DiskError::Failed(0));
            }
            let Some(buffer) = page.buffer_mut() else { break };
            let piece = buffer.get(within..within + count).ok_or(DiskError::Short)?;
            target[done..done + count].copy_from_slice(piece);
            page.used = self.tick();
            self.hits.set(self.hits.get() + 1);
            done += count;
        }
        Ok(done)
    }

    /// Copies `bytes` into cached pages from `offset`, up to the first page that is not here; returns the number of
    /// bytes.
    pub(crate) fn copy_in(&self, offset: u64, bytes: &[u8]) -> Result<usize, DiskError> {
        if self.has_lost_changes.get() {
            return Err(DiskError::Gone);
        }
        let mut pages = self.pages.borrow_mut();
        let mut done = 0;
        while done < bytes.len() {
            let at = offset + done as u64;
            let Some(page) = pages.get_mut(&self.page_of(at)) else { break };
            let within = (at % self.page_bytes as u64) as usize;
            let count = (self.page_bytes - within).min(bytes.len() - done);
            let unreadable = page.unreadable;
            let Some(buffer) = page.buffer_mut() else { break };
            let piece = buffer.get_mut(within..within + count).ok_or(DiskError::Short)?;
            let sectors = sector_bits(within, count);
            let is_whole = within.is_multiple_of(SECTOR_BYTES) && count.is_multiple_of(SECTOR_BYTES);
            if !is_whole && unreadable & sectors != 0 {
                return Err(DiskError::Failed(0));
            }
            piece.copy_from_slice(&bytes[done..done + count]);
            page.dirty |= sectors;
            page.unreadable &= !sectors;
            page.used = self.tick();
            done += count;
        }
        Ok(done)
    }

    /// Waits until the page at `offset` is here, and starts reading the others that a read of `bytes` bytes needs.
    pub(crate) async fn bring(self: Rc<Cache<S>>, offset: u64, bytes: usize) -> Result<(), DiskError> {
        let first = self.page_of(offset);
        if self.bytes_of(first) == 0 {
            return Err(DiskError::Short);
        }
        let last = self.page_of(offset + bytes.max(1) as u64 - 1).min(first + MAX_BATCH as u64 - 1);
        let last = last + self.read_ahead(first, last);
        match self.flight_of(first) {
            Flight::None => {}
            Flight::Read(latch) => {
                self.start_more(first, last);
                return latch.wait().await;
            }
            // A write error is handled by its write-back.
            Flight::Write(latch) => return latch.wait().await.or(Ok(())),
        }
        if self.pages.borrow().contains_key(&first) {
            return Ok(());
        }
        self.misses.set(self.misses.get() + 1);
        let buffer = self.take_buffer().await?;
        let latch = self.start_load(first, buffer);
        self.start_more(first, last);
        latch.wait().await
    }

    /// Number of pages after `last` to read ahead, if reading is sequential.
    fn read_ahead(&self, first: u64, last: u64) -> u64 {
        let mut sequence = self.sequence.borrow_mut();
        sequence.ahead = if first != 0 && first >= sequence.expected && first <= sequence.expected + sequence.ahead {
            (sequence.ahead * 2).clamp(2, MAX_READ_AHEAD as u64)
        } else {
            0
        };
        sequence.expected = last + 1;
        sequence.ahead
    }

    /// Starts reading the pages after `first` up to `last`, as far as that evicts only clean pages that were not used
    /// recently or just read.
    fn start_more(self: &Rc<Self>, first: u64, last: u64) {
        let dirty = self.pages.borrow().values().filter(|page| page.dirty != 0).count();
        let most = (self.max_pages.saturating_sub(dirty) / 2).max(1) as u64;
        for page in first + 1..=last.min(first + most - 1) {
            if self.bytes_of(page) == 0 || self.in_flight() >= MAX_IN_FLIGHT - MAX_BATCH {
                return;
            }
            if self.pages.borrow().contains_key(&page) {
                continue;
            }
            let Ok(buffer) = self.spare_buffer() else { return };
            self.start_load(page, buffer);
        }
    }

    fn in_flight(&self) -> usize {
        self.pages.borrow().values().filter(|page| page.latch().is_some()).count()
    }

    fn flight_of(&self, page: u64) -> Flight {
        let pages = self.pages.borrow();
        match pages.get(&page).and_then(|page| Some((page.latch()?, page.dirty))) {
            None => Flight::None,
            // Only dirty pages are written, and a page is dirty only after it was read.
            Some((latch, 0)) => Flight::Read(latch),
            Some((latch, _)) => Flight::Write(latch),
        }
    }

    /// Creates a page that the caller overwrites entirely; nothing is read.
    pub(crate) async fn make(self: Rc<Cache<S>>, offset: u64) -> Result<(), DiskError> {
        let page = self.page_of(offset);
        if let Flight::Read(latch) | Flight::Write(latch) = self.flight_of(page) {
            // The page is overwritten in any case.
            return latch.wait().await.or(Ok(()));
        }
        let buffer = self.take_buffer().await?;
        let used = self.tick();
        self.pages.borrow_mut().insert(page, Page { place: Place::Here(buffer), dirty: 0, unreadable: 0, used });
        Ok(())
    }

    /// Whether a write of `bytes` bytes at `offset` covers its whole page.
    pub(crate) fn covers_page(&self, offset: u64, bytes: usize) -> bool {
        offset.is_multiple_of(self.page_bytes as u64) && bytes >= self.bytes_of(self.page_of(offset))
    }

    /// Returns a buffer for one more page. In a full cache it is that of the least recently used clean page, after a
    /// write-back if all are dirty.
    async fn take_buffer(self: &Rc<Self>) -> Result<S::Buffer, DiskError> {
        if let Ok(buffer) = self.spare_buffer() {
            return Ok(buffer);
        }
        self.write_back().await?;
        if let Ok(buffer) = self.spare_buffer() {
            return Ok(buffer);
        }
        // All others are being read ahead.
        self.drain().await;
        self.spare_buffer()
    }

    /// A buffer for one more page, if there is one without waiting.
    fn spare_buffer(&self) -> Result<S::Buffer, DiskError> {
        if self.pages.borrow().len() >= self.max_pages {
            return self.evict().ok_or(DiskError::NoMemory);
        }
        self.source.allocate(self.page_bytes).or_else(|error| self.evict().ok_or(error))
    }

    /// Evicts the least recently used clean page; returns its buffer.
    fn evict(&self) -> Option<S::Buffer> {
        let mut pages = self.pages.borrow_mut();
        let evictable = pages.iter().filter(|(_, page)| page.is_evictable());
        let oldest = evictable.min_by_key(|(_, page)| page.used).map(|(number, _)| *number)?;
        match pages.remove(&oldest)?.place {
            Place::Here(buffer) => Some(buffer),
            Place::AtDisk(_) => None,
        }
    }

    /// Waits until no page is at the disk.
    pub(crate) async fn drain(&self) {
        loop {
            let next = self.pages.borrow().values().find_map(Page::latch);
            match next {
                // The outcome is reported to its waiters.
                Some(latch) => drop(latch.wait().await),
                None => return,
            }
        }
    }

    /// Whether enough pages are dirty for a write-back to be due.
    pub(crate) fn is_full_of_changes(&self) -> bool {
        let dirty = self.pages.borrow().values().filter(|page| page.dirty != 0).count();
        dirty > self.max_pages / 4 * 3
    }

    /// Writes all dirty pages, in disk order. After an error the others are still written; returns the first error.
    pub(crate) async fn write_back(self: &Rc<Self>) -> Result<(), DiskError> {
        if self.has_lost_changes.get() {
            return Err(DiskError::Gone);
        }
        let dirty: Vec<(u64, Option<Latch>)> = {
            let pages = self.pages.borrow();
            pages.iter().filter(|(_, page)| page.dirty != 0).map(|(number, page)| (*number, page.latch())).collect()
        };
        let mut outcome = Ok(());
        let mut under_way = VecDeque::new();
        for (number, earlier) in dirty {
            // A dropped operation may have left a pending write.
            let Some(latch) = earlier.or_else(|| self.start_write(number)) else { continue };
            under_way.push_back(latch);
            if under_way.len() >= MAX_BATCH
                && let Some(oldest) = under_way.pop_front()
            {
                outcome = outcome.and(oldest.wait().await);
            }
        }
        for latch in under_way {
            outcome = outcome.and(latch.wait().await);
        }
        outcome
    }

    /// Writes all dirty pages and flushes the disk.
    pub(crate) async fn flush(self: Rc<Cache<S>>) -> Result<(), DiskError> {
        self.write_back().await?;
        self.start_flush().wait().await
    }

    /// [`Cache::write_back`] by an operation that holds the volume.
    pub(crate) async fn write_back_now(self: Rc<Cache<S>>) -> Result<(), DiskError> {
        self.write_back().await
    }
}
