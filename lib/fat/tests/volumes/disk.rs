//! Disks in memory, and a single-future executor, for tests and fuzz targets.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::future::Future;
use std::os::unix::fs::FileExt;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use fat::{Access, BlockSource, CacheLimits, Clock, DateTime, DiskError, Error, MountOptions, Volume};

/// Runs a future that waits for nothing external.
pub fn run<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..1_000_000 {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
    }
    panic!("the future is stuck");
}

/// Faults of a memory disk.
#[derive(Default)]
pub struct Faults {
    /// Unreadable sectors.
    pub unreadable: HashSet<u64>,
    /// Unwritable sectors.
    pub unwritable: HashSet<u64>,
    /// All writes after this many fail.
    pub writes_left: Option<u64>,
}

/// Sparse memory: zero pieces are not stored, so a disk may be large.
#[derive(Clone, Default)]
struct Sparse {
    size_bytes: u64,
    pieces: BTreeMap<u64, Vec<u8>>,
}

const PIECE_BYTES: usize = 4096;

impl Sparse {
    fn new(bytes: &[u8]) -> Sparse {
        let mut sparse = Sparse { size_bytes: bytes.len() as u64, pieces: BTreeMap::new() };
        sparse.write(0, bytes);
        sparse
    }

    fn has(&self, offset: u64, bytes: usize) -> bool {
        offset.checked_add(bytes as u64).is_some_and(|end| end <= self.size_bytes)
    }

    fn read(&self, offset: u64, target: &mut [u8]) {
        let mut done = 0;
        while done < target.len() {
            let (piece, start, count) = parts(offset + done as u64, target.len() - done);
            match self.pieces.get(&piece) {
                Some(found) => target[done..done + count].copy_from_slice(&found[start..start + count]),
                None => target[done..done + count].fill(0),
            }
            done += count;
        }
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) {
        let mut done = 0;
        while done < bytes.len() {
            let (piece, start, count) = parts(offset + done as u64, bytes.len() - done);
            let part = &bytes[done..done + count];
            if self.pieces.contains_key(&piece) || part.iter().any(|byte| *byte != 0) {
                let own = self.pieces.entry(piece).or_insert_with(|| vec![0; PIECE_BYTES]);
                own[start..start + count].copy_from_slice(part);
            }
            done += count;
        }
    }
}

/// The piece that a range begins in, the offset within it, and the length in it.
fn parts(offset: u64, bytes: usize) -> (u64, usize, usize) {
    let start = (offset % PIECE_BYTES as u64) as usize;
    (offset / PIECE_BYTES as u64, start, bytes.min(PIECE_BYTES - start))
}

/// A recorded write or flush.
#[derive(Clone, Debug)]
pub enum Act {
    Write(u64, Vec<u8>),
    Flush,
}

#[derive(Default)]
struct Content {
    bytes: Sparse,
    /// Operations since recording began.
    acts: Option<Vec<Act>>,
    faults: Faults,
    reads: u64,
    writes: u64,
}

/// A disk in memory; clones share it.
#[derive(Clone)]
pub struct MemoryDisk {
    content: Rc<RefCell<Content>>,
    sector_bytes: usize,
    is_read_only: bool,
    /// Replies take one more poll, like those of a real disk.
    is_slow: bool,
}

impl MemoryDisk {
    pub fn new(bytes: Vec<u8>) -> MemoryDisk {
        MemoryDisk::over(Sparse::new(&bytes))
    }

    /// A disk of zeros.
    pub fn zeros(size_bytes: u64) -> MemoryDisk {
        MemoryDisk::over(Sparse { size_bytes, pieces: BTreeMap::new() })
    }

    fn over(bytes: Sparse) -> MemoryDisk {
        let content = Rc::new(RefCell::new(Content { bytes, ..Content::default() }));
        MemoryDisk { content, sector_bytes: 512, is_read_only: false, is_slow: true }
    }

    /// The content of a file, which may be sparse.
    pub fn of_file(file: &File) -> std::io::Result<MemoryDisk> {
        let mut bytes = Sparse { size_bytes: file.metadata()?.len(), pieces: BTreeMap::new() };
        let mut offset = 0;
        let mut piece = vec![0; 1 << 20];
        while offset < bytes.size_bytes {
            let count = (bytes.size_bytes - offset).min(piece.len() as u64) as usize;
            file.read_exact_at(&mut piece[..count], offset)?;
            bytes.write(offset, &piece[..count]);
            offset += count as u64;
        }
        Ok(MemoryDisk::over(bytes))
    }

    /// Writes it to a sparse file.
    pub fn write_to(&self, file: &File) -> std::io::Result<()> {
        let content = self.content.borrow();
        file.set_len(content.bytes.size_bytes)?;
        for (number, piece) in &content.bytes.pieces {
            let offset = number * PIECE_BYTES as u64;
            let count = (content.bytes.size_bytes - offset).min(piece.len() as u64) as usize;
            file.write_all_at(&piece[..count], offset)?;
        }
        Ok(())
    }

    /// An independent copy without faults.
    pub fn copy(&self) -> MemoryDisk {
        let bytes = self.content.borrow().bytes.clone();
        MemoryDisk { sector_bytes: self.sector_bytes, ..MemoryDisk::over(bytes) }
    }

    /// Starts recording.
    pub fn record(&self) {
        self.content.borrow_mut().acts = Some(Vec::new());
    }

    /// The recorded operations.
    pub fn acts(&self) -> Vec<Act> {
        self.content.borrow().acts.clone().unwrap_or_default()
    }

    /// Writes bytes, bypassing faults and recording.
    pub fn put(&self, offset: u64, bytes: &[u8]) {
        self.content.borrow_mut().bytes.write(offset, bytes);
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
        let content = self.content.borrow();
        let mut bytes = vec![0; content.bytes.size_bytes as usize];
        content.bytes.read(0, &mut bytes);
        bytes
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

    fn check_range(&self, offset: u64, bytes: usize) {
        assert!(offset.is_multiple_of(self.sector_bytes as u64), "unaligned offset");
        assert!(bytes.is_multiple_of(self.sector_bytes) && bytes > 0, "unaligned length");
    }

    async fn pause(&self) {
        let mut is_first = self.is_slow;
        std::future::poll_fn(|_| if std::mem::take(&mut is_first) { Poll::Pending } else { Poll::Ready(()) }).await;
    }
}

impl BlockSource for MemoryDisk {
    type Buffer = Vec<u8>;

    fn size_bytes(&self) -> u64 {
        self.content.borrow().bytes.size_bytes
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
        self.check_range(offset, bytes);
        let mut content = self.content.borrow_mut();
        content.reads += 1;
        let sectors = offset / 512..(offset + bytes as u64) / 512;
        if sectors.into_iter().any(|sector| content.faults.unreadable.contains(&sector)) {
            return (Some(buffer), Err(DiskError::Failed(5)));
        }
        if !content.bytes.has(offset, bytes) {
            return (Some(buffer), Err(DiskError::Short));
        }
        content.bytes.read(offset, &mut buffer[..bytes]);
        (Some(buffer), Ok(()))
    }

    async fn write(&self, offset: u64, buffer: Vec<u8>, bytes: usize) -> (Option<Vec<u8>>, Result<(), DiskError>) {
        self.pause().await;
        assert!(!self.is_read_only, "write to a read-only disk");
        self.check_range(offset, bytes);
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
        if !content.bytes.has(offset, bytes) {
            return (Some(buffer), Err(DiskError::Short));
        }
        content.bytes.write(offset, &buffer[..bytes]);
        if let Some(acts) = &mut content.acts {
            acts.push(Act::Write(offset, buffer[..bytes].to_vec()));
        }
        (Some(buffer), Ok(()))
    }

    async fn flush(&self) -> Result<(), DiskError> {
        self.pause().await;
        let mut content = self.content.borrow_mut();
        if content.faults.writes_left == Some(0) {
            return Err(DiskError::Failed(5));
        }
        if let Some(acts) = &mut content.acts {
            acts.push(Act::Flush);
        }
        Ok(())
    }

    fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        run(task);
    }

    fn now_s(&self) -> u32 {
        TEST_TIME_S as u32
    }
}

/// A fixed clock: 2024-05-06 07:08:10.
pub struct TestClock;

pub const TEST_TIME_S: i64 = 1_714_979_290;

impl Clock for TestClock {
    fn now(&self) -> DateTime {
        DateTime::from_unix_seconds(TEST_TIME_S).expect("a date")
    }
}

pub fn options(access: Access) -> MountOptions {
    MountOptions { limits: CacheLimits { data_bytes: 1 << 20, page_bytes: 32 << 10 }, access, clock: &TestClock }
}

pub fn mount(disk: &MemoryDisk) -> Result<Volume<MemoryDisk>, Error> {
    run(Volume::mount(disk.clone(), options(Access::WriteIfPossible)))
}
