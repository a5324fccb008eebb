//! Tasks that move pages between cache and disk: the only source of disk requests.
//!
//! A task owns its page's buffer from start to end, which the page's latch records. A task that is dropped halfway
//! gives the page up ([`InFlight`]).

use alloc::rc::Rc;

use super::{Cache, Page, Place, SECTOR_BYTES, sector_bits};
use crate::latch::{Completion, Latch, latch};
use crate::{BlockSource, DiskError};

/// The result of a read.
struct Filled<B> {
    buffer: B,
    unreadable: u64,
}

/// A page whose buffer a task owns.
struct InFlight<S: BlockSource> {
    cache: Rc<Cache<S>>,
    number: u64,
    /// Taken when the task ends regularly.
    completion: Option<Completion>,
}

impl<S: BlockSource> InFlight<S> {
    /// Stores the page's new state and wakes the waiters.
    fn land(mut self, page: Option<Page<S::Buffer>>, outcome: Result<(), DiskError>) {
        if let Some(completion) = self.completion.take() {
            self.cache.land(self.number, &completion, page);
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
    /// Ends the transfer of a page; without a new state the page is dropped.
    fn land(&self, number: u64, completion: &Completion, landed: Option<Page<S::Buffer>>) {
        let mut pages = self.pages.borrow_mut();
        let Some(page) = pages.get_mut(&number) else { return };
        if !matches!(&page.place, Place::AtDisk(latch) if latch.is_opened_by(completion)) {
            return;
        }
        match landed {
            Some(landed) => *page = landed,
            None => {
                if page.dirty != 0 {
                    self.has_lost_changes.set(true);
                }
                pages.remove(&number);
            }
        }
    }

    /// Starts reading a page that is not in the cache.
    pub(super) fn start_load(self: &Rc<Self>, number: u64, buffer: S::Buffer) -> Latch {
        let (waiting, completion) = latch();
        let page = Page { place: Place::AtDisk(waiting.clone()), dirty: 0, unreadable: 0, used: self.tick() };
        self.pages.borrow_mut().insert(number, page);
        let flight = InFlight { cache: Rc::clone(self), number, completion: Some(completion) };
        self.source.spawn(async move {
            let cache = Rc::clone(&flight.cache);
            match cache.load(number, buffer).await {
                Ok(Filled { buffer, unreadable }) => {
                    let page = Page { place: Place::Here(buffer), dirty: 0, unreadable, used: cache.tick() };
                    flight.land(Some(page), Ok(()));
                }
                Err(error) => flight.land(None, Err(error)),
            }
        });
        waiting
    }

    /// Reads a page; after an error, sector by sector.
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

    /// Starts writing a page that is dirty and here.
    pub(super) fn start_write(self: &Rc<Self>, number: u64) -> Option<Latch> {
        let (waiting, completion) = latch();
        let (buffer, dirty, unreadable) = {
            let mut pages = self.pages.borrow_mut();
            let page = pages.get_mut(&number).filter(|page| page.dirty != 0)?;
            let buffer = page.depart(&waiting)?;
            (buffer, page.dirty, page.unreadable)
        };
        let flight = InFlight { cache: Rc::clone(self), number, completion: Some(completion) };
        self.source.spawn(async move {
            let cache = Rc::clone(&flight.cache);
            let (buffer, outcome) = cache.store(number, buffer, dirty, unreadable).await;
            let page = buffer.map(|buffer| {
                let dirty = if outcome.is_ok() { 0 } else { dirty };
                Page { place: Place::Here(buffer), dirty, unreadable, used: cache.tick() }
            });
            flight.land(page, outcome);
        });
        Some(waiting)
    }

    /// Writes the dirty part of a page.
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

    /// Writes the dirty sectors one by one, because sectors between them could not be read.
    async fn store_pieces(
        &self,
        number: u64,
        buffer: S::Buffer,
        dirty: u64,
    ) -> (Option<S::Buffer>, Result<(), DiskError>) {
        let offset = self.offset_of(number);
        let sector_bytes = self.source.sector_bytes();
        let dirty_pieces =
            (0..self.page_bytes).step_by(sector_bytes).filter(|at| dirty & sector_bits(*at, sector_bytes) != 0);
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
