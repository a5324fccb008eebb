//! Disks in memory for tests and fuzz targets, and a way to run a volume's requests.

use std::cell::RefCell;
use std::collections::HashSet;
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use fat::{Access, BlockSource, CacheLimits, Clock, DateTime, DiskError, Error, MountOptions, Volume};

/// Runs a future that waits for nothing but itself.
pub fn run<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..1_000_000 {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
    }
    panic!("the future waits for something that does not come");
}

/// What a memory disk does wrong.
#[derive(Default)]
pub struct Faults {
    /// Sectors that cannot be read.
    pub unreadable: HashSet<u64>,
    /// Sectors that cannot be written.
    pub unwritable: HashSet<u64>,
    /// After so many writes all fail.
    pub writes_left: Option<u64>,
}

#[derive(Default)]
struct Content {
    bytes: Vec<u8>,
    faults: Faults,
    reads: u64,
    writes: u64,
}

/// A disk in memory; clones are the same disk.
#[derive(Clone)]
pub struct MemoryDisk {
    content: Rc<RefCell<Content>>,
    sector_bytes: usize,
    is_read_only: bool,
    /// Answers take one more poll, as those of a real disk.
    is_slow: bool,
}

impl MemoryDisk {
    pub fn new(bytes: Vec<u8>) -> MemoryDisk {
        let content = Rc::new(RefCell::new(Content { bytes, ..Content::default() }));
        MemoryDisk { content, sector_bytes: 512, is_read_only: false, is_slow: true }
    }

    pub fn with_sector_bytes(mut self, sector_bytes: usize) -> MemoryDisk {
        self.sector_bytes = sector_bytes;
        self
    }

    pub fn read_only(mut self) -> MemoryDisk {
        self.is_read_only = true;
        self
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.content.borrow().bytes.clone()
    }

    pub fn set_faults(&self, faults: Faults) {
        self.content.borrow_mut().faults = faults;
    }

    pub fn reads(&self) -> u64 {
        self.content.borrow().reads
    }

    pub fn writes(&self) -> u64 {
        self.content.borrow().writes
    }

    fn range(&self, offset: u64, bytes: usize) -> std::ops::Range<usize> {
        assert!(offset.is_multiple_of(self.sector_bytes as u64), "a transfer begins within a sector");
        assert!(bytes.is_multiple_of(self.sector_bytes) && bytes > 0, "a transfer ends within a sector");
        offset as usize..offset as usize + bytes
    }

    async fn pause(&self) {
        let mut is_first = self.is_slow;
        std::future::poll_fn(|_| if std::mem::take(&mut is_first) { Poll::Pending } else { Poll::Ready(()) }).await;
    }
}

impl BlockSource for MemoryDisk {
    type Buffer = Vec<u8>;

    fn size_bytes(&self) -> u64 {
        self.content.borrow().bytes.len() as u64
    }

    fn sector_bytes(&self) -> usize {
        self.sector_bytes
    }

    fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    fn allocate(&self, bytes: usize) -> Result<Vec<u8>, DiskError> {
        Ok(vec![0xA5; bytes])
    }

    async fn read(&self, offset: u64, mut buffer: Vec<u8>, bytes: usize) -> (Option<Vec<u8>>, Result<(), DiskError>) {
        self.pause().await;
        let range = self.range(offset, bytes);
        let mut content = self.content.borrow_mut();
        content.reads += 1;
        let sectors = offset / 512..(offset + bytes as u64) / 512;
        if sectors.into_iter().any(|sector| content.faults.unreadable.contains(&sector)) {
            return (Some(buffer), Err(DiskError::Failed(5)));
        }
        match content.bytes.get(range) {
            Some(found) => buffer[..bytes].copy_from_slice(found),
            None => return (Some(buffer), Err(DiskError::Short)),
        }
        (Some(buffer), Ok(()))
    }

    async fn write(&self, offset: u64, buffer: Vec<u8>, bytes: usize) -> (Option<Vec<u8>>, Result<(), DiskError>) {
        self.pause().await;
        assert!(!self.is_read_only, "a disk that cannot be written to is written to");
        let range = self.range(offset, bytes);
        let mut content = self.content.borrow_mut();
        content.writes += 1;
        if let Some(left) = &mut content.faults.writes_left {
            if *left == 0 {
                return (Some(buffer), Err(DiskError::Failed(5)));
            }
            *left -= 1;
        }
        let sectors = offset / 512..(offset + bytes as u64) / 512;
        if sectors.into_iter().any(|sector| content.faults.unwritable.contains(&sector)) {
            return (Some(buffer), Err(DiskError::Failed(5)));
        }
        match content.bytes.get_mut(range) {
            Some(place) => place.copy_from_slice(&buffer[..bytes]),
            None => return (Some(buffer), Err(DiskError::Short)),
        }
        (Some(buffer), Ok(()))
    }

    async fn flush(&self) -> Result<(), DiskError> {
        self.pause().await;
        if self.content.borrow().faults.writes_left == Some(0) { Err(DiskError::Failed(5)) } else { Ok(()) }
    }

    fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        run(task);
    }

    fn now_s(&self) -> u32 {
        TEST_TIME_S as u32
    }
}

/// A clock that stands still: 2024-05-06 07:08:10.
pub struct TestClock;

pub const TEST_TIME_S: i64 = 1_714_979_290;

impl Clock for TestClock {
    fn now(&self) -> DateTime {
        DateTime::from_unix_seconds(TEST_TIME_S).expect("a date")
    }
}

pub fn options(access: Access) -> MountOptions {
    MountOptions { limits: CacheLimits { data_bytes: 1 << 20, line_bytes: 32 << 10 }, access, clock: &TestClock }
}

pub fn mount(disk: &MemoryDisk) -> Result<Volume<MemoryDisk>, Error> {
    run(Volume::mount(disk.clone(), options(Access::WriteIfPossible)))
}
