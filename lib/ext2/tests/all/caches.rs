//! The caches respect their limits and save reads; pending reads are concurrent.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use crate::support::{AnyDisk, noise, read, resolve};
use ext2::make::{Attributes, File, Folder, ImageOptions, Node, make_image};
use ext2::{BlockSource, CacheLimits, DiskError, Error, MemoryDisk, MountOptions, Volume, complete};

const FILE_BYTES: usize = 3 << 20;

fn image() -> Vec<u8> {
    let attributes = Attributes::readable(1);
    let file = |seed| Node::File(File::with_bytes(attributes, noise(seed, FILE_BYTES)));
    let entries = BTreeMap::from([(b"a".to_vec(), file(1)), (b"b".to_vec(), file(2))]);
    let options =
        ImageOptions { block_bytes: 1024, volume_bytes: 8 << 20, inodes: None, label: [0; 16], uuid: [0; 16], made: 1 };
    let mut image = Vec::new();
    let built = make_image(&options, &Folder { attributes, entries }, &mut image).unwrap();
    image.resize(built.volume_bytes as usize, 0);
    image
}

/// A disk that completes requests after a few polls, or fails.
struct SlowDisk {
    disk: MemoryDisk,
    reads: Cell<u32>,
    under_way: Cell<u32>,
    max_under_way: Cell<u32>,
    /// Reads with a waiting caller.
    waited_for: Cell<u32>,
    is_beside: Cell<bool>,
    broken_from: Cell<u64>,
}

impl SlowDisk {
    fn new() -> Rc<SlowDisk> {
        let zero = || Cell::new(0);
        let disk = MemoryDisk::new(image());
        let (broken_from, is_beside) = (Cell::new(u64::MAX), Cell::new(false));
        Rc::new(SlowDisk {
            disk,
            reads: zero(),
            under_way: zero(),
            max_under_way: zero(),
            waited_for: zero(),
            is_beside,
            broken_from,
        })
    }
}

impl BlockSource for SlowDisk {
    type Buffer = Vec<u8>;

    fn size_bytes(&self) -> u64 {
        self.disk.size_bytes()
    }

    fn is_read_only(&self) -> bool {
        true
    }

    fn allocate(&self, bytes: usize) -> Result<Vec<u8>, DiskError> {
        Ok(vec![0; bytes])
    }

    async fn read(&self, offset: u64, buffer: Vec<u8>, bytes: usize) -> (Option<Vec<u8>>, Result<(), DiskError>) {
        self.reads.set(self.reads.get() + 1);
        self.waited_for.set(self.waited_for.get() + u32::from(!self.is_beside.get()));
        self.under_way.set(self.under_way.get() + 1);
        self.max_under_way.set(self.max_under_way.get().max(self.under_way.get()));
        let mut polls = 0;
        std::future::poll_fn(|_| {
            polls += 1;
            if polls > 3 { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        self.under_way.set(self.under_way.get() - 1);
        if offset >= self.broken_from.get() {
            return (Some(buffer), Err(DiskError::Failed(7)));
        }
        self.disk.read(offset, buffer, bytes).await
    }

    async fn write(&self, offset: u64, buffer: Vec<u8>, bytes: usize) -> (Option<Vec<u8>>, Result<(), DiskError>) {
        self.disk.write(offset, buffer, bytes).await
    }

    async fn flush(&self) -> Result<(), DiskError> {
        Ok(())
    }

    fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        let before = self.is_beside.replace(true);
        complete(task);
        self.is_beside.set(before);
    }

    fn now_s(&self) -> u32 {
        0
    }
}

#[test]
fn what_was_read_is_not_read_again() {
    // Read-ahead would run beside the request, which alone has to saturate the disk here.
    let limits = CacheLimits { read_ahead_bytes: 0, ..CacheLimits::default() };
    let options = MountOptions { limits, ..MountOptions::default() };
    let disk = SlowDisk::new();
    let volume = complete(Volume::mount(AnyDisk::shared(Rc::clone(&disk)), options)).unwrap();
    let file = resolve(&volume, "a").unwrap();
    let mut buffer = vec![0; FILE_BYTES];
    read(&volume, &file, 0, &mut buffer).unwrap();
    let reads = disk.reads.get();
    assert!(reads < 110, "{reads} reads for 3 MiB in pages of 32 KiB");
    read(&volume, &file, 0, &mut buffer).unwrap();
    assert!(buffer == noise(1, FILE_BYTES));
    assert_eq!(disk.reads.get(), reads);
    assert!(disk.max_under_way.get() >= 8);
}

/// With blocks of 1 KiB a table covers 256 KiB, so this file has eleven of them after the first.
#[test]
fn who_reads_in_order_waits_for_no_table() {
    let disk = SlowDisk::new();
    let volume = complete(Volume::mount(AnyDisk::shared(Rc::clone(&disk)), MountOptions::default())).unwrap();
    let file = resolve(&volume, "a").unwrap();
    let opened = complete(volume.open(file.number)).unwrap();
    let mut piece = vec![0; 16 << 10];
    complete(opened.read(0, &mut piece)).unwrap();
    let first = disk.waited_for.get();
    for offset in (piece.len()..FILE_BYTES).step_by(piece.len()) {
        complete(opened.read(offset as u64, &mut piece)).unwrap();
        assert!(piece == noise(1, FILE_BYTES)[offset..][..piece.len()]);
    }
    assert_eq!(disk.waited_for.get(), first);
}

#[test]
fn the_caches_keep_within_their_limits() {
    let limits = CacheLimits {
        inode_bytes: 500,
        number_bytes: 4000,
        data_bytes: 100_000,
        page_bytes: 8192,
        ..CacheLimits::default()
    };
    let options = MountOptions { limits, ..MountOptions::default() };
    let volume = complete(Volume::mount(AnyDisk::shared(SlowDisk::new()), options)).unwrap();
    let mut buffer = vec![0; FILE_BYTES];
    for (seed, name) in [(1, "a"), (2, "b"), (1, "a")] {
        let file = resolve(&volume, name).unwrap();
        read(&volume, &file, 0, &mut buffer).unwrap();
        assert!(buffer == noise(seed, FILE_BYTES));
        let counts = volume.statistics().caches;
        assert!(counts.inodes.bytes <= 500 && counts.numbers.bytes <= 4000 && counts.data.bytes <= 100_000);
        assert!(counts.data.entries > 0);
    }
}

#[test]
fn no_cache_at_all_serves_as_well() {
    let limits =
        CacheLimits { inode_bytes: 0, number_bytes: 0, data_bytes: 0, page_bytes: 0, ..CacheLimits::default() };
    let options = MountOptions { limits, ..MountOptions::default() };
    let volume = complete(Volume::mount(AnyDisk::shared(SlowDisk::new()), options)).unwrap();
    let file = resolve(&volume, "b").unwrap();
    let mut buffer = vec![0; 100_000];
    read(&volume, &file, 1_000_001, &mut buffer).unwrap();
    assert!(buffer == noise(2, FILE_BYTES)[1_000_001..][..100_000]);
}

#[test]
fn clients_are_served_side_by_side() {
    let volume = complete(Volume::mount(AnyDisk::shared(SlowDisk::new()), MountOptions::default())).unwrap();
    let volume = &volume;
    let read = |name: &'static str, seed| async move {
        let file = volume.resolve(ext2::ROOT_INODE, name.as_bytes(), ext2::LastLink::Follow).await.unwrap();
        let file = volume.open(file.number).await.unwrap();
        let mut buffer = vec![0; FILE_BYTES];
        for (index, chunk) in buffer.chunks_mut(5000).enumerate() {
            file.read(index as u64 * 5000, chunk).await.unwrap();
        }
        assert!(buffer == noise(seed, FILE_BYTES));
    };
    let (mut first, mut second) = (pin!(read("a", 1)), pin!(read("b", 2)));
    let mut context = Context::from_waker(Waker::noop());
    let (mut first_done, mut second_done) = (false, false);
    while !(first_done && second_done) {
        first_done = first_done || first.as_mut().poll(&mut context).is_ready();
        second_done = second_done || second.as_mut().poll(&mut context).is_ready();
    }
}

#[test]
fn a_failing_disk_fails_the_request_and_abandons_no_read() {
    let disk = SlowDisk::new();
    let volume = complete(Volume::mount(AnyDisk::shared(Rc::clone(&disk)), MountOptions::default())).unwrap();
    let file = resolve(&volume, "b").unwrap();
    let mut buffer = vec![0; FILE_BYTES];
    disk.broken_from.set(4 << 20);
    let result = read(&volume, &file, 0, &mut buffer);
    assert!(matches!(result, Err(Error::Read(offset, DiskError::Failed(7))) if offset >= 4 << 20));
    assert_eq!(disk.under_way.get(), 0);
    disk.broken_from.set(u64::MAX);
    read(&volume, &file, 0, &mut buffer).unwrap();
    assert!(buffer == noise(2, FILE_BYTES));
}
