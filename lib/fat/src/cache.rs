//! The cache of a disk: aligned lines of it in the source's own buffers, written back when told or when full.
//!
//! Key type: [`Cache`]. One operation of the volume runs at a time, so a line is only ever away (being read or
//! written) while that operation waits for it; lines that are read ahead are polled by whichever operation comes
//! by. A sector that cannot be read makes only itself unreadable, not its line. What could not be written stays
//! and is tried again. Deliberately not here: what the bytes mean.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::task::Poll;

use crate::join::join_all;
use crate::{BlockSource, DiskError};

/// The unit in which lines know what of them is dirty or unreadable.
pub(crate) const SECTOR_BYTES: usize = 512;
/// A line has a bit for each sector in a word.
const LARGEST_LINE: usize = 64 * SECTOR_BYTES;
const SMALLEST_LINE: usize = 4096;
/// Fewer lines than this would be thrown out before they are used.
const FEWEST_LINES: usize = 32;
/// Transfers that are under way at once.
const AT_ONCE: u64 = 8;
/// Lines that are read ahead of a sequential reader at most.
const MOST_AHEAD: u64 = 16;

/// How much a cache holds.
#[derive(Clone, Copy, Debug)]
pub struct CacheLimits {
    /// Bytes of data at most.
    pub data_bytes: usize,
    /// Bytes of a line; rounded to a power of two from 4 to 32 KiB.
    pub line_bytes: usize,
}

impl Default for CacheLimits {
    fn default() -> CacheLimits {
        CacheLimits { data_bytes: 4 << 20, line_bytes: LARGEST_LINE }
    }
}

/// What a cache has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounters {
    /// Look-ups of a line that found it.
    pub hits: u64,
    /// Look-ups that had to read.
    pub misses: u64,
    /// Bytes held.
    pub bytes: u64,
    /// Bytes that may be held.
    pub limit_bytes: u64,
    /// Bytes that are not on the disk yet.
    pub unwritten_bytes: u64,
}

type Load<B> = Pin<Box<dyn Future<Output = Result<Line<B>, DiskError>>>>;

struct Line<B> {
    /// Away only while it is being written.
    buffer: Option<B>,
    /// A bit for each sector that the disk does not have yet.
    dirty: u64,
    /// A bit for each sector that could not be read.
    unreadable: u64,
    used: u64,
}

/// Where sequential reading was last seen.
#[derive(Default)]
struct Sequence {
    expected: u64,
    ahead: u64,
}

/// The lines of a disk.
pub(crate) struct Cache<S: BlockSource> {
    source: Rc<S>,
    line_bytes: usize,
    most_lines: usize,
    size_bytes: u64,
    lines: RefCell<BTreeMap<u64, Line<S::Buffer>>>,
    loads: RefCell<BTreeMap<u64, Load<S::Buffer>>>,
    sequence: RefCell<Sequence>,
    clock: Cell<u64>,
    hits: Cell<u64>,
    misses: Cell<u64>,
    /// A dirty line was lost with the driver: nothing may be written over what is left.
    broken: Cell<bool>,
}

impl<S: BlockSource> Cache<S> {
    pub(crate) fn new(source: S, limits: CacheLimits) -> Cache<S> {
        let wanted = limits.line_bytes.clamp(SMALLEST_LINE, LARGEST_LINE);
        let line_bytes = if wanted.is_power_of_two() { wanted } else { wanted.next_power_of_two() / 2 };
        let size_bytes = source.size_bytes() - source.size_bytes() % source.sector_bytes() as u64;
        Cache {
            source: Rc::new(source),
            line_bytes,
            most_lines: (limits.data_bytes / line_bytes).max(FEWEST_LINES),
            size_bytes,
            lines: RefCell::new(BTreeMap::new()),
            loads: RefCell::new(BTreeMap::new()),
            sequence: RefCell::new(Sequence::default()),
            clock: Cell::new(0),
            hits: Cell::new(0),
            misses: Cell::new(0),
            broken: Cell::new(false),
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
            limit_bytes: (self.most_lines * self.line_bytes) as u64,
            unwritten_bytes: dirty * SECTOR_BYTES as u64,
        }
    }

    fn line_of(&self, offset: u64) -> u64 {
        offset / self.line_bytes as u64
    }

    /// Bytes of this line that the disk has.
    fn bytes_of(&self, line: u64) -> usize {
        let start = line * self.line_bytes as u64;
        // Not more than a line.
        self.size_bytes.saturating_sub(start).min(self.line_bytes as u64) as usize
    }

    fn tick(&self) -> u64 {
        self.clock.set(self.clock.get() + 1);
        self.clock.get()
    }

    /// Copies what is there of the range from `offset` on into `target`, up to the first line that is not. Gives
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
            let Some(buffer) = &line.buffer else { break };
            let piece = buffer.get(within..within + count).ok_or(DiskError::Short)?;
            target[done..done + count].copy_from_slice(piece);
            line.used = self.tick();
            self.hits.set(self.hits.get() + 1);
            done += count;
        }
        Ok(done)
    }

    /// Copies `bytes` into what is there of the range from `offset` on, likewise.
    pub(crate) fn copy_in(&self, offset: u64, bytes: &[u8]) -> Result<usize, DiskError> {
        if self.broken.get() {
            return Err(DiskError::Gone);
        }
        let mut lines = self.lines.borrow_mut();
        let mut done = 0;
        while done < bytes.len() {
            let at = offset + done as u64;
            let Some(line) = lines.get_mut(&self.line_of(at)) else { break };
            let within = (at % self.line_bytes as u64) as usize;
            let count = (self.line_bytes - within).min(bytes.len() - done);
            let Some(buffer) = &mut line.buffer else { break };
            let piece = buffer.get_mut(within..within + count).ok_or(DiskError::Short)?;
            let sectors = sector_bits(within, count);
            let is_whole = within.is_multiple_of(SECTOR_BYTES) && count.is_multiple_of(SECTOR_BYTES);
            if !is_whole && line.unreadable & sectors != 0 {
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

    /// Sees to it that the line at `offset` is there, and starts what else a read of `bytes` bytes needs.
    pub(crate) async fn bring(self: Rc<Cache<S>>, offset: u64, bytes: usize) -> Result<(), DiskError> {
        let first = self.line_of(offset);
        let last = self.line_of(offset + bytes.max(1) as u64 - 1).min(first + AT_ONCE - 1);
        if !self.loads.borrow().contains_key(&first) {
            self.misses.set(self.misses.get() + 1);
        }
        let ahead = self.read_ahead(first, last);
        // What is brought must not throw out what was just brought.
        let dirty = self.lines.borrow().values().filter(|line| line.dirty != 0).count();
        let most = (self.most_lines.saturating_sub(dirty) / 2).max(1) as u64;
        self.start(first, (last + ahead).min(first + most - 1)).await?;
        self.arrival(first).await
    }

    /// How many lines after `last` to read as well, because reading is sequential.
    fn read_ahead(&self, first: u64, last: u64) -> u64 {
        let mut sequence = self.sequence.borrow_mut();
        sequence.ahead = if first != 0 && first >= sequence.expected && first <= sequence.expected + sequence.ahead {
            (sequence.ahead * 2).clamp(2, MOST_AHEAD)
        } else {
            0
        };
        sequence.expected = last + 1;
        sequence.ahead
    }

    /// A new line whose whole content the caller brings; nothing is read.
    pub(crate) async fn make(self: Rc<Cache<S>>, offset: u64) -> Result<(), DiskError> {
        let line = self.line_of(offset);
        if self.loads.borrow().contains_key(&line) {
            return self.arrival(line).await;
        }
        self.make_room(1).await?;
        let buffer = self.source.allocate(self.line_bytes)?;
        let used = self.tick();
        self.lines.borrow_mut().insert(line, Line { buffer: Some(buffer), dirty: 0, unreadable: 0, used });
        Ok(())
    }

    /// Whether a write of `bytes` bytes at `offset` covers the whole line there.
    pub(crate) fn covers_line(&self, offset: u64, bytes: usize) -> bool {
        offset.is_multiple_of(self.line_bytes as u64) && bytes >= self.bytes_of(self.line_of(offset))
    }

    async fn start(&self, first: u64, last: u64) -> Result<(), DiskError> {
        for line in first..=last {
            let is_known = self.lines.borrow().contains_key(&line) || self.loads.borrow().contains_key(&line);
            if is_known || self.bytes_of(line) == 0 {
                continue;
            }
            self.make_room(1).await?;
            let load = load(Rc::clone(&self.source), line, self.line_bytes, self.bytes_of(line));
            let mut load: Load<S::Buffer> = Box::pin(load);
            // The first poll asks the disk; a line may be there at once.
            let early = poll_fn(|context| Poll::Ready(load.as_mut().poll(context))).await;
            match early {
                Poll::Ready(Ok(arrived)) => self.arrived(line, arrived),
                // Who needs this line asks again.
                Poll::Ready(Err(error)) if line == first => return Err(error),
                Poll::Ready(Err(_)) => return Ok(()),
                Poll::Pending => drop(self.loads.borrow_mut().insert(line, load)),
            }
        }
        Ok(())
    }

    fn arrived(&self, line: u64, mut arrived: Line<S::Buffer>) {
        arrived.used = self.tick();
        self.lines.borrow_mut().insert(line, arrived);
    }

    /// Waits for a line that is on its way; others that arrive meanwhile are welcome.
    async fn arrival(&self, line: u64) -> Result<(), DiskError> {
        let load = self.loads.borrow_mut().remove(&line);
        let Some(load) = load else {
            return if self.lines.borrow().contains_key(&line) { Ok(()) } else { Err(DiskError::Short) };
        };
        let arrived = load.await?;
        self.arrived(line, arrived);
        Ok(())
    }

    /// Throws out the lines that were not used for longest, after writing them where they are dirty.
    async fn make_room(&self, count: usize) -> Result<(), DiskError> {
        let too_many = |cache: &Self| {
            (cache.lines.borrow().len() + cache.loads.borrow().len() + count).saturating_sub(cache.most_lines)
        };
        if too_many(self) == 0 {
            return Ok(());
        }
        if self.evict(too_many(self)) {
            return Ok(());
        }
        self.write_back().await?;
        if self.evict(too_many(self)) {
            return Ok(());
        }
        // Only what is being read ahead is left.
        self.drain().await;
        if self.evict(too_many(self)) { Ok(()) } else { Err(DiskError::NoMemory) }
    }

    /// Throws out this many clean lines. Whether there were so many.
    fn evict(&self, count: usize) -> bool {
        let mut lines = self.lines.borrow_mut();
        for _ in 0..count {
            let clean = lines.iter().filter(|(_, line)| line.dirty == 0 && line.buffer.is_some());
            let Some(oldest) = clean.min_by_key(|(_, line)| line.used).map(|(line, _)| *line) else {
                return false;
            };
            lines.remove(&oldest);
        }
        true
    }

    /// Waits for everything that is on its way.
    pub(crate) async fn drain(&self) {
        loop {
            let next = self.loads.borrow_mut().pop_first();
            let Some((line, load)) = next else { return };
            if let Ok(arrived) = load.await {
                self.arrived(line, arrived);
            }
        }
    }

    /// Whether so much is dirty that it had better be written.
    pub(crate) fn is_full_of_changes(&self) -> bool {
        let dirty = self.lines.borrow().values().filter(|line| line.dirty != 0).count();
        dirty > self.most_lines / 4 * 3
    }

    /// Writes every dirty line to its place, in the order of the disk.
    pub(crate) async fn write_back(&self) -> Result<(), DiskError> {
        if self.broken.get() {
            return Err(DiskError::Gone);
        }
        let dirty: Vec<u64> =
            self.lines.borrow().iter().filter(|(_, line)| line.dirty != 0).map(|(number, _)| *number).collect();
        let mut outcome = Ok(());
        for batch in dirty.chunks(AT_ONCE as usize) {
            for written in join_all(batch.iter().map(|line| self.write_line(*line)).collect()).await {
                outcome = outcome.and(written);
            }
        }
        outcome
    }

    /// Writes every dirty line and waits until it is on the medium.
    pub(crate) async fn flush(self: Rc<Cache<S>>) -> Result<(), DiskError> {
        self.write_back().await?;
        self.source.flush().await
    }

    /// [`Cache::write_back`] for an operation that is under way.
    pub(crate) async fn write_back_now(self: Rc<Cache<S>>) -> Result<(), DiskError> {
        self.write_back().await
    }

    async fn write_line(&self, number: u64) -> Result<(), DiskError> {
        let taken = self.lines.borrow_mut().get_mut(&number).and_then(|line| {
            let buffer = line.buffer.take()?;
            Some((buffer, line.dirty, line.unreadable))
        });
        let Some((buffer, dirty, unreadable)) = taken else { return Ok(()) };
        let offset = number * self.line_bytes as u64;
        let (buffer, outcome) = if unreadable == 0 {
            let sector_bytes = self.source.sector_bytes();
            let end = (u64::BITS - dirty.leading_zeros()) as usize * SECTOR_BYTES;
            let bytes = end.next_multiple_of(sector_bytes).min(self.bytes_of(number));
            self.source.write(offset, buffer, bytes).await
        } else {
            self.write_pieces(offset, buffer, dirty).await
        };
        let mut lines = self.lines.borrow_mut();
        match buffer {
            Some(buffer) => {
                if let Some(line) = lines.get_mut(&number) {
                    line.buffer = Some(buffer);
                    line.dirty = if outcome.is_ok() { 0 } else { dirty };
                }
            }
            None => {
                lines.remove(&number);
                self.broken.set(true);
            }
        }
        outcome
    }

    /// Writes the dirty sectors one by one, because what lies between them could not be read.
    async fn write_pieces(
        &self,
        offset: u64,
        buffer: S::Buffer,
        dirty: u64,
    ) -> (Option<S::Buffer>, Result<(), DiskError>) {
        let sector_bytes = self.source.sector_bytes();
        let mut at = 0;
        while at < self.line_bytes {
            if dirty & sector_bits(at, sector_bytes) != 0 {
                let piece = self.source.allocate(sector_bytes).map(|mut piece| {
                    piece[..sector_bytes].copy_from_slice(&buffer[at..at + sector_bytes]);
                    piece
                });
                let outcome = match piece {
                    Ok(piece) => self.source.write(offset + at as u64, piece, sector_bytes).await.1,
                    Err(error) => Err(error),
                };
                if outcome.is_err() {
                    return (Some(buffer), outcome);
                }
            }
            at += sector_bytes;
        }
        (Some(buffer), Ok(()))
    }
}

/// Reads a line; where that fails, sector by sector.
async fn load<S: BlockSource>(
    source: Rc<S>,
    line: u64,
    line_bytes: usize,
    bytes: usize,
) -> Result<Line<S::Buffer>, DiskError> {
    let offset = line * line_bytes as u64;
    let buffer = source.allocate(line_bytes)?;
    let (buffer, outcome) = source.read(offset, buffer, bytes).await;
    match (buffer, outcome) {
        (Some(buffer), Ok(())) => Ok(Line { buffer: Some(buffer), dirty: 0, unreadable: 0, used: 0 }),
        (_, Err(DiskError::Failed(code))) => load_pieces(source.as_ref(), offset, line_bytes, bytes, code).await,
        (_, Err(error)) => Err(error),
        (None, Ok(())) => Err(DiskError::Gone),
    }
}

async fn load_pieces<S: BlockSource>(
    source: &S,
    offset: u64,
    line_bytes: usize,
    bytes: usize,
    code: u32,
) -> Result<Line<S::Buffer>, DiskError> {
    let sector_bytes = source.sector_bytes();
    let mut whole = source.allocate(line_bytes)?;
    whole.fill(0);
    let mut unreadable = 0;
    for at in (0..bytes).step_by(sector_bytes) {
        let piece = source.allocate(sector_bytes)?;
        match source.read(offset + at as u64, piece, sector_bytes).await {
            (Some(piece), Ok(())) => {
                whole[at..at + sector_bytes].copy_from_slice(&piece[..sector_bytes]);
            }
            (_, Err(DiskError::Failed(_))) => unreadable |= sector_bits(at, sector_bytes),
            (_, Err(error)) => return Err(error),
            (None, Ok(())) => return Err(DiskError::Gone),
        }
    }
    if unreadable == sector_bits(0, bytes) {
        return Err(DiskError::Failed(code));
    }
    Ok(Line { buffer: Some(whole), dirty: 0, unreadable, used: 0 })
}

/// The bits of the sectors that this range of a line touches.
fn sector_bits(within: usize, bytes: usize) -> u64 {
    let first = within / SECTOR_BYTES;
    let count = (within + bytes).div_ceil(SECTOR_BYTES) - first;
    let ones = if count >= 64 { u64::MAX } else { (1 << count) - 1 };
    ones << first
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sector_of_a_range_has_its_bit() {
        assert_eq!(sector_bits(0, 512), 1);
        assert_eq!(sector_bits(512, 1024), 0b110);
        assert_eq!(sector_bits(0, LARGEST_LINE), u64::MAX);
        assert_eq!(sector_bits(LARGEST_LINE - 512, 512), 1 << 63);
    }
}
