//! Sequential reads of a large file: the disk reads ahead while the client has its data.
//!
//! Time is counted in ticks. A disk read takes some of them, however many are active; the client takes some between its
//! requests. So late read-ahead shows as ticks that the client waits.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use crate::support::{AnyDisk, noise};
use ext2::make::{Attributes, File, Folder, ImageOptions, Node, make_image};
use ext2::{
    BlockSource, CacheLimits, DiskError, LastLink, MemoryDisk, MountOptions, OpenFile, ROOT_INODE, Volume, complete,
};

type Task = Pin<Box<dyn Future<Output = ()>>>;

const BLOCK_BYTES: usize = 1024;
const FILE_BYTES: usize = 16 << 20;
/// Bytes reachable through a leaf table.
const TABLE_BYTES: usize = BLOCK_BYTES / 4 * BLOCK_BYTES;
/// Latency of a disk read.
const READ_TICKS: u64 = 4;
const PAGE_BYTES: usize = 32 << 10;
const LIMITS: CacheLimits = CacheLimits {
    inode_bytes: 256 << 10,
    number_bytes: 512 << 10,
    data_bytes: 4 << 20,
    page_bytes: PAGE_BYTES,
    requests: 8,
    read_ahead_bytes: 1 << 20,
};

/// A disk with latency that records its requests.
struct TimedDisk {
    disk: MemoryDisk,
    now: Cell<u64>,
    read_ticks: Cell<u64>,
    /// Time, offset and length of each read.
    reads: RefCell<Vec<(u64, u64, usize)>>,
    under_way: Cell<usize>,
    spawned: RefCell<Vec<Task>>,
}

impl BlockSource for TimedDisk {
    type Buffer = Vec<u8>;

    fn size_bytes(&self) -> u64 {
        self.disk.size_bytes()
    }

    fn is_read_only(&self) -> bool {
        true
    }

    fn allocate(&self, bytes: usize) -> Result<Vec<u8>, DiskError> {
        Ok(vec![0x5a; bytes])
    }

    async fn read(&self, offset: u64, buffer: Vec<u8>, bytes: usize) -> (Option<Vec<u8>>, Result<(), DiskError>) {
        let asked = self.now.get();
        self.reads.borrow_mut().push((asked, offset, bytes));
        self.under_way.set(self.under_way.get() + 1);
        let is_over = |_: &mut Context<'_>| {
            if self.now.get() >= asked + self.read_ticks.get() { Poll::Ready(()) } else { Poll::Pending }
        };
        std::future::poll_fn(is_over).await;
        self.under_way.set(self.under_way.get() - 1);
        self.disk.read(offset, buffer, bytes).await
    }

    async fn write(&self, _: u64, buffer: Vec<u8>, _: usize) -> (Option<Vec<u8>>, Result<(), DiskError>) {
        (Some(buffer), Err(DiskError::ReadOnly))
    }

    async fn flush(&self) -> Result<(), DiskError> {
        Ok(())
    }

    fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        self.spawned.borrow_mut().push(Box::pin(task));
    }

    fn now_s(&self) -> u32 {
        0
    }
}

/// A volume with one file on a slow disk, and the tasks beside its client.
struct Bench {
    disk: Rc<TimedDisk>,
    file: OpenFile<AnyDisk>,
    /// Disk offsets of the file's leaf tables.
    tables: Vec<u64>,
    beside: RefCell<Vec<Task>>,
    /// Number of active reads in each tick that the client waited.
    waits: RefCell<Vec<usize>>,
}

impl Bench {
    fn new() -> Bench {
        let attributes = Attributes::readable(1);
        let file = Node::File(File::with_bytes(attributes, noise(1, FILE_BYTES)));
        let root = Folder { attributes, entries: BTreeMap::from([(b"file".to_vec(), file)]) };
        let options = ImageOptions {
            block_bytes: BLOCK_BYTES as u32,
            volume_bytes: FILE_BYTES as u64 + (4 << 20),
            inodes: None,
            label: [0; 16],
            uuid: [0; 16],
            made: 1,
        };
        let mut image = Vec::new();
        let built = make_image(&options, &root, &mut image).unwrap();
        image.resize(built.volume_bytes as usize, 0);
        let disk = Rc::new(TimedDisk {
            disk: MemoryDisk::new(image.clone()),
            now: Cell::new(0),
            read_ticks: Cell::new(0),
            reads: RefCell::default(),
            under_way: Cell::new(0),
            spawned: RefCell::default(),
        });
        let options = MountOptions { limits: LIMITS, ..MountOptions::default() };
        let volume = complete(Volume::mount(AnyDisk::shared(Rc::clone(&disk)), options)).unwrap();
        let inode = complete(volume.resolve(ROOT_INODE, b"file", LastLink::Follow)).unwrap();
        let file = complete(volume.open(inode.number)).unwrap();
        let place = |block: u32| u64::from(block) * BLOCK_BYTES as u64;
        let numbers = &image[place(inode.blocks[13]) as usize..][..BLOCK_BYTES];
        let later = numbers.chunks(4).map(|number| u32::from_le_bytes(number.try_into().unwrap()));
        let tables = [inode.blocks[12]].into_iter().chain(later).filter(|&block| block != 0).map(place).collect();
        disk.read_ticks.set(READ_TICKS);
        Bench { disk, file, tables, beside: RefCell::default(), waits: RefCell::default() }
    }

    /// Polls everything beside the client, then advances the time.
    fn tick(&self) {
        let mut context = Context::from_waker(Waker::noop());
        let mut beside = self.beside.borrow_mut();
        loop {
            let spawned: Vec<Task> = self.disk.spawned.borrow_mut().drain(..).collect();
            let is_first = spawned.is_empty();
            beside.extend(spawned);
            beside.retain_mut(|task| task.as_mut().poll(&mut context).is_pending());
            if is_first && self.disk.spawned.borrow().is_empty() {
                break;
            }
        }
        self.disk.now.set(self.disk.now.get() + 1);
    }

    /// Sends one request of the client, and returns the data.
    fn read(&self, offset: usize, bytes: usize) -> Vec<u8> {
        let mut buffer = vec![0; bytes];
        let mut context = Context::from_waker(Waker::noop());
        let read = {
            let mut request = pin!(self.file.read(offset as u64, &mut buffer));
            loop {
                match request.as_mut().poll(&mut context) {
                    Poll::Ready(read) => break read.unwrap(),
                    Poll::Pending => self.tick(),
                }
                self.waits.borrow_mut().push(self.disk.under_way.get());
                assert!(self.waits.borrow().len() < 100_000, "the client waits for ever");
            }
        };
        assert_eq!(read, bytes);
        buffer
    }

    /// Returns the time at which the page with this disk offset was first requested.
    fn asked(&self, place: u64) -> Option<u64> {
        let reads = self.disk.reads.borrow();
        reads.iter().find(|(_, offset, bytes)| (*offset..offset + *bytes as u64).contains(&place)).map(|read| read.0)
    }
}

#[test]
fn what_comes_next_is_there_before_it_is_asked_for() {
    let content = noise(1, FILE_BYTES);
    for piece in [16 << 10, 64 << 10, 256 << 10] {
        let bench = Bench::new();
        assert_eq!(bench.tables.len(), FILE_BYTES / TABLE_BYTES, "a file of many tables");
        // The disk could read 64 KiB in a tick; the client needs as long for 16 KiB.
        let work = (piece / (16 << 10)).max(2);
        let mut begun = BTreeMap::new();
        for offset in (0..FILE_BYTES).step_by(piece) {
            begun.insert(offset, bench.disk.now.get());
            bench.waits.borrow_mut().clear();
            assert!(bench.read(offset, piece) == content[offset..][..piece], "{piece} bytes at {offset}");
            let waits = bench.waits.borrow().len();
            // The first requests establish that access is sequential.
            assert!(offset < 2 << 20 || waits == 0, "{waits} ticks are waited for {piece} bytes at {offset}");
            for _ in 0..work {
                bench.tick();
            }
        }
        // The first table follows the direct blocks.
        for (window, &table) in bench.tables.iter().enumerate().skip(2 * (2 << 20) / TABLE_BYTES) {
            let needed = begun.range(..=window * TABLE_BYTES).next_back().map(|(_, tick)| *tick);
            let asked = bench.asked(table);
            assert!(
                asked.is_some() && asked < needed,
                "table {window} is asked for at {asked:?}, needed at {needed:?}"
            );
        }
    }
}

#[test]
fn a_large_request_is_read_in_parts_and_keeps_the_disk_busy() {
    let bench = Bench::new();
    const { assert!(FILE_BYTES > 3 * LIMITS.data_bytes, "a request that the cache cannot hold") };
    assert!(bench.read(0, FILE_BYTES) == noise(1, FILE_BYTES));
    let reads = bench.disk.reads.borrow();
    let places: BTreeSet<u64> = reads.iter().map(|(_, offset, _)| *offset).collect();
    assert_eq!(places.len(), reads.len(), "nothing is read twice");
    let waits = bench.waits.borrow();
    // Each round of the disk reads as many pages as it takes requests.
    let least = reads.len().div_ceil(LIMITS.requests) * READ_TICKS as usize;
    assert!(waits.len() < least + least / 8, "{} ticks instead of {least}", waits.len());
    let (start, end) = (waits.len() / 16, waits.len() - waits.len() / 16);
    let idle = waits[start..end].iter().filter(|&&under_way| under_way < 2).count();
    assert!(idle <= waits.len() / 50, "in {idle} of {} ticks the disk had nothing to do", waits.len());
}
