//! The write-back cache of a disk: aligned lines of it in the source's own buffers.
//!
//! # Who owns a line
//!
//! A line's buffer is either *here*, where the operation that holds the volume copies from it and to it, or *at the
//! disk*: a task that reads or writes this one line owns it, and the line says so with a latch. Every request to the
//! disk is made by such a task ([`transfer`]), which the source's executor drives ([`BlockSource::spawn`]). An
//! operation makes none: it starts tasks and waits for latches. So whatever an operation waits for, and even if it is
//! never polled again or is dropped, a request that occupies a channel to the disk is polled when its answer comes,
//! and gives the channel on. Read-ahead is a task like any other; nobody need wait for it.
//!
//! A task ends in one of three ways, and the latch opens in each:
//! - it succeeds: the line is here, and clean;
//! - it fails: a line that was read is not in the cache any more, and the next operation that needs it reads it
//!   again; a line that was written is here and as dirty as before, for the next write-back;
//! - it is dropped, with the executor: the same as a failed read; where changes were lost with a written line, the
//!   cache refuses every change from then on, as it does when the driver does not give the buffer back.
//!
//! One operation of the volume runs at a time, so nothing changes a line between being looked up and being used but
//! the end of a task. A sector that cannot be read makes only itself unreadable, not its line.
//!
//! Key type: [`Cache`]. Deliberately not here: what the bytes mean.

mod limits;
mod line;
mod transfer;

use alloc::collections::{BTreeMap, VecDeque};
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use crate::latch::Latch;
use crate::{BlockSource, DiskError};
pub use limits::{CacheCounters, CacheLimits};
pub(crate) use line::SECTOR_BYTES;
use line::{Line, Place, sector_bits};

/// Lines that one read asks for at once, and lines that are written at once.
const MAX_BATCH: usize = 8;
/// Lines that are read ahead of a sequential reader.
const MAX_READ_AHEAD: usize = 16;
/// Lines at the disk: while there are as many as a read may ask for, nothing more is read ahead.
const MAX_IN_FLIGHT: usize = MAX_BATCH + MAX_READ_AHEAD + MAX_BATCH;

/// Where sequential reading was last seen.
#[derive(Default)]
struct Sequence {
    expected: u64,
    ahead: u64,
}

/// What a line does at the disk.
enum Flight {
    None,
    Read(Latch),
    Write(Latch),
}

/// The lines of a disk.
pub(crate) struct Cache<S: BlockSource> {
    source: Rc<S>,
    line_bytes: usize,
    max_lines: usize,
    size_bytes: u64,
    lines: RefCell<BTreeMap<u64, Line<S::Buffer>>>,
    sequence: RefCell<Sequence>,
    clock: Cell<u64>,
    hits: Cell<u64>,
    misses: Cell<u64>,
    /// A dirty line was lost with the driver: nothing may be written over what is left.
    has_lost_changes: Cell<bool>,
}

impl<S: BlockSource> Cache<S> {
    pub(crate) fn new(source: S, limits: CacheLimits) -> Cache<S> {
        let size_bytes = source.size_bytes() - source.size_bytes() % source.sector_bytes() as u64;
        Cache {
            source: Rc::new(source),
            line_bytes: limits.rounded_line_bytes(),
            max_lines: limits.max_lines(),
            size_bytes,
            lines: RefCell::new(BTreeMap::new()),
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
        let lines = self.lines.borrow();
        let dirty: u64 = lines.values().map(|line| u64::from(line.dirty.count_ones())).sum();
        CacheCounters {
            hits: self.hits.get(),
            misses: self.misses.get(),
            bytes: (lines.len() * self.line_bytes) as u64,
            limit_bytes: (self.max_lines * self.line_bytes) as u64,
            unwritten_bytes: dirty * SECTOR_BYTES as u64,
        }
    }

    fn line_of(&self, offset: u64) -> u64 {
        offset / self.line_bytes as u64
    }

    fn offset_of(&self, line: u64) -> u64 {
        line * self.line_bytes as u64
    }

    /// Bytes of this line that the disk has.
    fn bytes_of(&self, line: u64) -> usize {
        // Not more than a line.
        self.size_bytes.saturating_sub(self.offset_of(line)).min(self.line_bytes as u64) as usize
    }

    fn tick(&self) -> u64 {
        self.clock.set(self.clock.get() + 1);
        self.clock.get()
    }

    /// Copies what is here of the range from `offset` on into `target`, up to the first line that is not. Gives
    /// how many bytes that is.
    pub(crate) fn copy_out(&self, offset: u64, target: &mut [u8]) -> Result<usize, DiskError> {
        let mut lines = self.lines.borrow_mut();
        let mut done = 0;
        while done < target.len() {
            let at = offset + done as u64;
            let Some(line) = lines.get_mut(&self.line_of(at)) else { break };
            let within = (at % self.line_bytes as u64) as usize;
            let count = (self.line_bytes - within).min(target.len() - done);
            if line.unreadable & sector_bits(within, count) != 0 {
                return Err(DiskError::Failed(0));
            }
            let Some(buffer) = line.buffer_mut() else { break };
            let piece = buffer.get(within..within + count).ok_or(DiskError::Short)?;
            target[done..done + count].copy_from_slice(piece);
            line.used = self.tick();
            self.hits.set(self.hits.get() + 1);
            done += count;
        }
        Ok(done)
    }

    /// Copies `bytes` into what is here of the range from `offset` on, likewise.
    pub(crate) fn copy_in(&self, offset: u64, bytes: &[u8]) -> Result<usize, DiskError> {
        if self.has_lost_changes.get() {
            return Err(DiskError::Gone);
        }
        let mut lines = self.lines.borrow_mut();
        let mut done = 0;
        while done < bytes.len() {
            let at = offset + done as u64;
            let Some(line) = lines.get_mut(&self.line_of(at)) else { break };
            let within = (at % self.line_bytes as u64) as usize;
            let count = (self.line_bytes - within).min(bytes.len() - done);
            let unreadable = line.unreadable;
            let Some(buffer) = line.buffer_mut() else { break };
            let piece = buffer.get_mut(within..within + count).ok_or(DiskError::Short)?;
            let sectors = sector_bits(within, count);
            let is_whole = within.is_multiple_of(SECTOR_BYTES) && count.is_multiple_of(SECTOR_BYTES);
            if !is_whole && unreadable & sectors != 0 {
                return Err(DiskError::Failed(0));
            }
            piece.copy_from_slice(&bytes[done..done + count]);
            line.dirty |= sectors;
            line.unreadable &= !sectors;
            line.used = self.tick();
            done += count;
        }
        Ok(done)
    }

    /// Waits until the line at `offset` is here, and starts reading what else a read of `bytes` bytes needs.
    pub(crate) async fn bring(self: Rc<Cache<S>>, offset: u64, bytes: usize) -> Result<(), DiskError> {
        let first = self.line_of(offset);
        if self.bytes_of(first) == 0 {
            return Err(DiskError::Short);
        }
        let last = self.line_of(offset + bytes.max(1) as u64 - 1).min(first + MAX_BATCH as u64 - 1);
        let last = last + self.read_ahead(first, last);
        match self.flight_of(first) {
            Flight::None => {}
            Flight::Read(latch) => {
                self.start_more(first, last);
                return latch.wait().await;
            }
            // What a write came to is the concern of its write-back.
            Flight::Write(latch) => return latch.wait().await.or(Ok(())),
        }
        if self.lines.borrow().contains_key(&first) {
            return Ok(());
        }
        self.misses.set(self.misses.get() + 1);
        let buffer = self.take_buffer().await?;
        let latch = self.start_load(first, buffer);
        self.start_more(first, last);
        latch.wait().await
    }

    /// How many lines after `last` to read as well, because reading is sequential.
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

    /// Starts reading the lines after `first` up to `last`, as far as that costs nothing but clean lines that were not
    /// used for long: not those that were just brought.
    fn start_more(self: &Rc<Self>, first: u64, last: u64) {
        let dirty = self.lines.borrow().values().filter(|line| line.dirty != 0).count();
        let most = (self.max_lines.saturating_sub(dirty) / 2).max(1) as u64;
        for line in first + 1..=last.min(first + most - 1) {
            if self.bytes_of(line) == 0 || self.in_flight() >= MAX_IN_FLIGHT - MAX_BATCH {
                return;
            }
            if self.lines.borrow().contains_key(&line) {
                continue;
            }
            let Ok(buffer) = self.spare_buffer() else { return };
            self.start_load(line, buffer);
        }
    }

    fn in_flight(&self) -> usize {
        self.lines.borrow().values().filter(|line| line.latch().is_some()).count()
    }

    fn flight_of(&self, line: u64) -> Flight {
        let lines = self.lines.borrow();
        match lines.get(&line).and_then(|line| Some((line.latch()?, line.dirty))) {
            None => Flight::None,
            // Nothing is written that is not dirty, and nothing is dirty before it was read.
            Some((latch, 0)) => Flight::Read(latch),
            Some((latch, _)) => Flight::Write(latch),
        }
    }

    /// A new line whose whole content the caller brings; nothing is read.
    pub(crate) async fn make(self: Rc<Cache<S>>, offset: u64) -> Result<(), DiskError> {
        let line = self.line_of(offset);
        if let Flight::Read(latch) | Flight::Write(latch) = self.flight_of(line) {
            // It is overwritten, whatever came of that.
            return latch.wait().await.or(Ok(()));
        }
        let buffer = self.take_buffer().await?;
        let used = self.tick();
        self.lines.borrow_mut().insert(line, Line { place: Place::Here(buffer), dirty: 0, unreadable: 0, used });
        Ok(())
    }

    /// Whether a write of `bytes` bytes at `offset` covers the whole line there.
    pub(crate) fn covers_line(&self, offset: u64, bytes: usize) -> bool {
        offset.is_multiple_of(self.line_bytes as u64) && bytes >= self.bytes_of(self.line_of(offset))
    }

    /// A buffer for one more line: of the clean line that was not used for longest where the cache is full, after
    /// writing lines if all are dirty.
    async fn take_buffer(self: &Rc<Self>) -> Result<S::Buffer, DiskError> {
        if let Ok(buffer) = self.spare_buffer() {
            return Ok(buffer);
        }
        self.write_back().await?;
        if let Ok(buffer) = self.spare_buffer() {
            return Ok(buffer);
        }
        // Only what is being read ahead is left.
        self.drain().await;
        self.spare_buffer()
    }

    /// The same where it can be had without waiting.
    fn spare_buffer(&self) -> Result<S::Buffer, DiskError> {
        if self.lines.borrow().len() >= self.max_lines {
            return self.evict().ok_or(DiskError::NoMemory);
        }
        self.source.allocate(self.line_bytes).or_else(|error| self.evict().ok_or(error))
    }

    /// Gives up the clean line that was not used for longest, for its buffer.
    fn evict(&self) -> Option<S::Buffer> {
        let mut lines = self.lines.borrow_mut();
        let evictable = lines.iter().filter(|(_, line)| line.is_evictable());
        let oldest = evictable.min_by_key(|(_, line)| line.used).map(|(number, _)| *number)?;
        match lines.remove(&oldest)?.place {
            Place::Here(buffer) => Some(buffer),
            Place::AtDisk(_) => None,
        }
    }

    /// Waits until no line is at the disk.
    pub(crate) async fn drain(&self) {
        loop {
            let next = self.lines.borrow().values().find_map(Line::latch);
            match next {
                // How it ended concerns those who asked for it.
                Some(latch) => drop(latch.wait().await),
                None => return,
            }
        }
    }

    /// Whether so much is dirty that it had better be written.
    pub(crate) fn is_full_of_changes(&self) -> bool {
        let dirty = self.lines.borrow().values().filter(|line| line.dirty != 0).count();
        dirty > self.max_lines / 4 * 3
    }

    /// Writes every dirty line to its place, in the order of the disk. A failure does not keep the others from being
    /// written; gives the first.
    pub(crate) async fn write_back(self: &Rc<Self>) -> Result<(), DiskError> {
        if self.has_lost_changes.get() {
            return Err(DiskError::Gone);
        }
        let dirty: Vec<(u64, Option<Latch>)> = {
            let lines = self.lines.borrow();
            lines.iter().filter(|(_, line)| line.dirty != 0).map(|(number, line)| (*number, line.latch())).collect()
        };
        let mut outcome = Ok(());
        let mut under_way = VecDeque::new();
        for (number, earlier) in dirty {
            // An operation that was dropped may have left a write under way.
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

    /// Writes every dirty line and waits until it is on the medium.
    pub(crate) async fn flush(self: Rc<Cache<S>>) -> Result<(), DiskError> {
        self.write_back().await?;
        self.start_flush().wait().await
    }

    /// [`Cache::write_back`] for an operation that is under way.
    pub(crate) async fn write_back_now(self: Rc<Cache<S>>) -> Result<(), DiskError> {
        self.write_back().await
    }
}
