//! The tasks that move lines between the cache and the disk: the only place that asks the disk for anything.
//!
//! A task owns the buffer of its line from its start to its end, and the line's latch in the cache says so. A task
//! that is dropped before its end gives the line up on its way ([`InFlight`]).

use alloc::rc::Rc;

use super::{Cache, Line, Place, SECTOR_BYTES, sector_bits};
use crate::latch::{Completion, Latch, latch};
use crate::{BlockSource, DiskError};

/// What a read brought.
struct Filled<B> {
    buffer: B,
    unreadable: u64,
}

/// A line whose buffer a task has.
struct InFlight<S: BlockSource> {
    cache: Rc<Cache<S>>,
    number: u64,
    /// Taken by the regular end.
    completion: Option<Completion>,
}

impl<S: BlockSource> InFlight<S> {
    /// Puts the line's new state in place and wakes who waits for it.
    fn land(mut self, line: Option<Line<S::Buffer>>, outcome: Result<(), DiskError>) {
        if let Some(completion) = self.completion.take() {
            self.cache.land(self.number, &completion, line);
            completion.complete(outcome);
        }
    }
}

impl<S: BlockSource> Drop for InFlight<S> {
    fn drop(&mut self) {
        if let Some(completion) = self.completion.take() {
            self.cache.land(self.number, &completion, None);
        }
    }
}

impl<S: BlockSource> Cache<S> {
    /// Ends the flight of a line; without one to put there its content is lost.
    fn land(&self, number: u64, completion: &Completion, landed: Option<Line<S::Buffer>>) {
        let mut lines = self.lines.borrow_mut();
        let Some(line) = lines.get_mut(&number) else { return };
        if !matches!(&line.place, Place::AtDisk(latch) if latch.is_opened_by(completion)) {
            return;
        }
        match landed {
            Some(landed) => *line = landed,
            None => {
                if line.dirty != 0 {
                    self.has_lost_changes.set(true);
                }
                lines.remove(&number);
            }
        }
    }

    /// Starts reading a line that is not there.
    pub(super) fn start_load(self: &Rc<Self>, number: u64, buffer: S::Buffer) -> Latch {
        let (waiting, completion) = latch();
        let line = Line { place: Place::AtDisk(waiting.clone()), dirty: 0, unreadable: 0, used: self.tick() };
        self.lines.borrow_mut().insert(number, line);
        let flight = InFlight { cache: Rc::clone(self), number, completion: Some(completion) };
        self.source.spawn(async move {
            let cache = Rc::clone(&flight.cache);
            match cache.load(number, buffer).await {
                Ok(Filled { buffer, unreadable }) => {
                    let line = Line { place: Place::Here(buffer), dirty: 0, unreadable, used: cache.tick() };
                    flight.land(Some(line), Ok(()));
                }
                Err(error) => flight.land(None, Err(error)),
            }
        });
        waiting
    }

    /// Reads a line; where that fails, sector by sector.
    async fn load(&self, number: u64, buffer: S::Buffer) -> Result<Filled<S::Buffer>, DiskError> {
        let offset = self.offset_of(number);
        let (buffer, outcome) = self.source.read(offset, buffer, self.bytes_of(number)).await;
        match (buffer, outcome) {
            (Some(buffer), Ok(())) => Ok(Filled { buffer, unreadable: 0 }),
            (Some(buffer), Err(DiskError::Failed(code))) => self.load_pieces(number, buffer, code).await,
            (_, Err(error)) => Err(error),
            (None, Ok(())) => Err(DiskError::Gone),
        }
    }

    async fn load_pieces(&self, number: u64, mut whole: S::Buffer, code: u32) -> Result<Filled<S::Buffer>, DiskError> {
        let (offset, bytes) = (self.offset_of(number), self.bytes_of(number));
        let sector_bytes = self.source.sector_bytes();
        whole.fill(0);
        let mut unreadable = 0;
        let mut piece = self.source.allocate(sector_bytes)?;
        for at in (0..bytes).step_by(sector_bytes) {
            let (home, outcome) = self.source.read(offset + at as u64, piece, sector_bytes).await;
            piece = home.ok_or(DiskError::Gone)?;
            match outcome {
                Ok(()) => whole[at..at + sector_bytes].copy_from_slice(&piece[..sector_bytes]),
                Err(DiskError::Failed(_)) => unreadable |= sector_bits(at, sector_bytes),
                Err(error) => return Err(error),
            }
        }
        if unreadable == sector_bits(0, bytes) {
            return Err(DiskError::Failed(code));
        }
        Ok(Filled { buffer: whole, unreadable })
    }

    /// Starts writing a line that is dirty and not at the disk already.
    pub(super) fn start_write(self: &Rc<Self>, number: u64) -> Option<Latch> {
        let (waiting, completion) = latch();
        let (buffer, dirty, unreadable) = {
            let mut lines = self.lines.borrow_mut();
            let line = lines.get_mut(&number).filter(|line| line.dirty != 0)?;
            let buffer = line.depart(&waiting)?;
            (buffer, line.dirty, line.unreadable)
        };
        let flight = InFlight { cache: Rc::clone(self), number, completion: Some(completion) };
        self.source.spawn(async move {
            let cache = Rc::clone(&flight.cache);
            let (buffer, outcome) = cache.store(number, buffer, dirty, unreadable).await;
            let line = buffer.map(|buffer| {
                let dirty = if outcome.is_ok() { 0 } else { dirty };
                Line { place: Place::Here(buffer), dirty, unreadable, used: cache.tick() }
            });
            flight.land(line, outcome);
        });
        Some(waiting)
    }

    /// Writes what is dirty of a line.
    async fn store(
        &self,
        number: u64,
        buffer: S::Buffer,
        dirty: u64,
        unreadable: u64,
    ) -> (Option<S::Buffer>, Result<(), DiskError>) {
        if unreadable != 0 {
            return self.store_pieces(number, buffer, dirty).await;
        }
        let end = (u64::BITS - dirty.leading_zeros()) as usize * SECTOR_BYTES;
        let bytes = end.next_multiple_of(self.source.sector_bytes()).min(self.bytes_of(number));
        let (buffer, outcome) = self.source.write(self.offset_of(number), buffer, bytes).await;
        let outcome = if buffer.is_none() { outcome.and(Err(DiskError::Gone)) } else { outcome };
        (buffer, outcome)
    }

    /// Writes the dirty sectors one by one, because what lies between them could not be read.
    async fn store_pieces(
        &self,
        number: u64,
        buffer: S::Buffer,
        dirty: u64,
    ) -> (Option<S::Buffer>, Result<(), DiskError>) {
        let offset = self.offset_of(number);
        let sector_bytes = self.source.sector_bytes();
        let dirty_pieces =
            (0..self.line_bytes).step_by(sector_bytes).filter(|at| dirty & sector_bits(*at, sector_bytes) != 0);
        for at in dirty_pieces {
            let mut piece = match self.source.allocate(sector_bytes) {
                Ok(piece) => piece,
                Err(error) => return (Some(buffer), Err(error)),
            };
            piece[..sector_bytes].copy_from_slice(&buffer[at..at + sector_bytes]);
            let (_, outcome) = self.source.write(offset + at as u64, piece, sector_bytes).await;
            if outcome.is_err() {
                return (Some(buffer), outcome);
            }
        }
        (Some(buffer), Ok(()))
    }

    /// Starts a flush of the disk.
    pub(super) fn start_flush(self: &Rc<Self>) -> Latch {
        let (waiting, completion) = latch();
        let source = Rc::clone(&self.source);
        self.source.spawn(async move { completion.complete(source.flush().await) });
        waiting
    }
}
