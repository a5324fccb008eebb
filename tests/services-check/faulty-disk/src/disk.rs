//! The disk: a medium, a volatile cache before it, and a plan of failures.

use alloc::collections::VecDeque;
use core::cell::{Cell, RefCell};
use core::future::poll_fn;
use core::task::{Poll, Waker};

use contracts::disk::DiskError;
use disk_server::{Direction, Medium, Shape, Transferred};
use faulty_contract::faulty_disk::{FaultCounts, FaultPlan};
use sip::exheap::{ExVec, Lent};
use sip::{Deadline, executor};

use crate::cache::Cache;
use crate::medium::Bytes;
use crate::plan::{Asked, Fate, Progress};

/// Maximum size of the cache; beyond it the oldest writes go to the medium.
const CACHE_BYTES: usize = 64 << 20;

/// A disk that fails by plan.
pub struct FaultyDisk {
    bytes: Bytes,
    shape: Shape,
    write_through: bool,
    progress: RefCell<Progress>,
    cache: RefCell<Cache>,
    /// Set while one request uses medium and cache; the others wait in order.
    busy: Cell<bool>,
    waiting: RefCell<VecDeque<Waker>>,
}

/// Exclusive access to medium and cache.
struct Turn<'a>(&'a FaultyDisk);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.busy.set(false);
        let next = self.0.waiting.borrow_mut().pop_front();
        if let Some(next) = next {
            next.wake();
        }
    }
}

impl FaultyDisk {
    /// A disk under a plan.
    pub fn new(bytes: Bytes, plan: FaultPlan, write_through: bool) -> FaultyDisk {
        FaultyDisk {
            shape: bytes.shape(),
            bytes,
            write_through,
            progress: RefCell::new(Progress::new(plan)),
            cache: RefCell::default(),
            busy: Cell::new(false),
            waiting: RefCell::default(),
        }
    }

    /// Sets a plan. The power state is unchanged.
    pub fn set_plan(&self, plan: FaultPlan) {
        let is_off = self.progress.borrow().counts.is_off;
        let mut progress = Progress::new(plan);
        progress.counts.is_off = is_off;
        *self.progress.borrow_mut() = progress;
    }

    /// Cuts power.
    pub async fn cut(&self, seed: u64) -> Result<(), DiskError> {
        let _turn = self.turn().await;
        self.cut_now(seed).await
    }

    /// Restores power.
    pub fn power_on(&self) {
        self.progress.borrow_mut().counts.is_off = 0;
    }

    /// Events since the last plan.
    pub fn counts(&self) -> FaultCounts {
        let counts = self.progress.borrow().counts;
        FaultCounts { unflushed_writes: self.cache.borrow().count() as u64, ..counts }
    }

    async fn turn(&self) -> Turn<'_> {
        poll_fn(|context| {
            if self.busy.get() {
                self.waiting.borrow_mut().push_back(context.waker().clone());
                return Poll::Pending;
            }
            self.busy.set(true);
            Poll::Ready(())
        })
        .await;
        Turn(self)
    }

    async fn cut_now(&self, seed: u64) -> Result<(), DiskError> {
        self.progress.borrow_mut().counts.is_off = 1;
        self.cache.borrow_mut().lose(seed);
        self.settle(0).await
    }

    /// Moves the oldest writes to the medium until the cache holds no more than `bytes`.
    async fn settle(&self, bytes: usize) -> Result<(), DiskError> {
        while self.cache.borrow().bytes() > bytes {
            let Some(write) = self.cache.borrow_mut().pop() else { break };
            self.bytes.write(write.offset, &write.bytes).await?;
        }
        Ok(())
    }

    async fn write(&self, offset: u64, source: &[u8]) -> Result<(), DiskError> {
        if self.write_through {
            return self.bytes.write(offset, source).await;
        }
        self.cache.borrow_mut().push(offset, source).ok_or(DiskError::Exhausted)?;
        self.settle(CACHE_BYTES).await
    }

    async fn read(&self, offset: u64, target: &mut [u8]) -> Result<(), DiskError> {
        self.bytes.read(offset, target).await?;
        self.cache.borrow().cover(offset, target);
        Ok(())
    }

    /// Executes a request according to its fate.
    async fn perform(&self, asked: Asked, data: &mut [u8]) -> Result<(), DiskError> {
        let fate = self.progress.borrow_mut().ask(asked);
        match (fate, asked) {
            (Fate::Fails, _) => Err(DiskError::DeviceError),
            (Fate::Ends, Asked::Write(offset, bytes)) => {
                let half = bytes / 2 / self.shape.sector_bytes as usize * self.shape.sector_bytes as usize;
                // Its result is discarded.
                let _ = self.write(offset, &data[..half]).await;
                sip::process::exit(1)
            }
            (Fate::Last, Asked::Write(offset, _)) => {
                self.write(offset, data).await?;
                let seed = self.progress.borrow().plan().cut_seed;
                self.cut_now(seed).await?;
                Err(DiskError::DeviceError)
            }
            (_, Asked::Write(offset, _)) => self.write(offset, data).await,
            (_, Asked::Read(offset, _)) => self.read(offset, data).await,
            (_, Asked::Flush) => {
                self.settle(0).await?;
                self.bytes.flush().await
            }
        }
    }

    async fn delay(&self) {
        let microseconds = self.progress.borrow().plan().delay_us;
        if microseconds > 0 {
            executor::sleep_until(Deadline::after_ns(microseconds.saturating_mul(1_000))).await;
        }
    }
}

impl Medium for FaultyDisk {
    fn shape(&self) -> Shape {
        self.shape
    }

    async fn transfer(
        &self,
        direction: Direction,
        offset: u64,
        mut data: Lent<ExVec<u8>>,
        bytes: usize,
    ) -> Transferred {
        let asked = match direction {
            Direction::Read => Asked::Read(offset, bytes),
            Direction::Write => Asked::Write(offset, bytes),
        };
        let turn = self.turn().await;
        let result = self.perform(asked, &mut data[..bytes]).await;
        drop(turn);
        self.delay().await;
        Transferred { data: Some(data), result }
    }

    async fn flush(&self) -> Result<(), DiskError> {
        let turn = self.turn().await;
        let result = self.perform(Asked::Flush, &mut []).await;
        drop(turn);
        self.delay().await;
        result
    }
}
