//! A disk of any type behind one type.

use std::cell::Cell;
use std::future::Future;
use std::mem::take;
use std::ops::{Deref, DerefMut};
use std::pin::Pin;
use std::rc::Rc;

use ext2::{BlockSource, DiskError};

type Waiting<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;
type Transferred = (Option<Vec<u8>>, Result<(), DiskError>);

/// [`BlockSource`], without types that differ between disks.
trait Erased {
    fn size_bytes(&self) -> u64;
    fn sector_bytes(&self) -> usize;
    fn is_read_only(&self) -> bool;
    fn allocate(&self, bytes: usize) -> Result<Vec<u8>, DiskError>;
    fn read(&self, offset: u64, buffer: Vec<u8>, bytes: usize) -> Waiting<'_, Transferred>;
    fn write(&self, offset: u64, buffer: Vec<u8>, bytes: usize) -> Waiting<'_, Transferred>;
    fn flush(&self) -> Waiting<'_, Result<(), DiskError>>;
    fn spawn(&self, task: Waiting<'static, ()>);
    fn now_s(&self) -> u32;
}

impl<S: BlockSource<Buffer = Vec<u8>>> Erased for S {
    fn size_bytes(&self) -> u64 {
        BlockSource::size_bytes(self)
    }

    fn sector_bytes(&self) -> usize {
        BlockSource::sector_bytes(self)
    }

    fn is_read_only(&self) -> bool {
        BlockSource::is_read_only(self)
    }

    fn allocate(&self, bytes: usize) -> Result<Vec<u8>, DiskError> {
        BlockSource::allocate(self, bytes)
    }

    fn read(&self, offset: u64, buffer: Vec<u8>, bytes: usize) -> Waiting<'_, Transferred> {
        Box::pin(BlockSource::read(self, offset, buffer, bytes))
    }

    fn write(&self, offset: u64, buffer: Vec<u8>, bytes: usize) -> Waiting<'_, Transferred> {
        Box::pin(BlockSource::write(self, offset, buffer, bytes))
    }

    fn flush(&self) -> Waiting<'_, Result<(), DiskError>> {
        Box::pin(BlockSource::flush(self))
    }

    fn spawn(&self, task: Waiting<'static, ()>) {
        BlockSource::spawn(self, task);
    }

    fn now_s(&self) -> u32 {
        BlockSource::now_s(self)
    }
}

/// A disk of any type, so that the file system is compiled once for all tests. Clones are the same disk.
#[derive(Clone)]
pub struct AnyDisk {
    disk: Rc<dyn Erased>,
    lent: Rc<Lent>,
}

/// Number of buffers in use, and its maximum.
#[derive(Default)]
struct Lent {
    now: Cell<usize>,
    most: Cell<usize>,
}

/// A buffer that is counted while it is in use.
pub struct Buffer {
    bytes: Vec<u8>,
    lent: Rc<Lent>,
}

impl Buffer {
    fn with(mut self, bytes: Vec<u8>) -> Buffer {
        self.bytes = bytes;
        self
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.lent.now.set(self.lent.now.get() - 1);
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

impl AnyDisk {
    pub fn new(disk: impl BlockSource<Buffer = Vec<u8>>) -> AnyDisk {
        AnyDisk::shared(Rc::new(disk))
    }

    /// As `new`, for a disk that the caller keeps too.
    pub fn shared(disk: Rc<impl BlockSource<Buffer = Vec<u8>>>) -> AnyDisk {
        AnyDisk { disk, lent: Rc::default() }
    }

    /// Returns the maximum number of buffers that were in use at a time.
    pub fn most_buffers(&self) -> usize {
        self.lent.most.get()
    }
}

impl BlockSource for AnyDisk {
    type Buffer = Buffer;

    fn size_bytes(&self) -> u64 {
        self.disk.size_bytes()
    }

    fn sector_bytes(&self) -> usize {
        self.disk.sector_bytes()
    }

    fn is_read_only(&self) -> bool {
        self.disk.is_read_only()
    }

    fn allocate(&self, bytes: usize) -> Result<Buffer, DiskError> {
        let bytes = self.disk.allocate(bytes)?;
        let Lent { now, most } = &*self.lent;
        now.set(now.get() + 1);
        most.set(most.get().max(now.get()));
        Ok(Buffer { bytes, lent: Rc::clone(&self.lent) })
    }

    async fn read(&self, offset: u64, mut buffer: Buffer, bytes: usize) -> (Option<Buffer>, Result<(), DiskError>) {
        let (content, result) = self.disk.read(offset, take(&mut buffer.bytes), bytes).await;
        (content.map(|bytes| buffer.with(bytes)), result)
    }

    async fn write(&self, offset: u64, mut buffer: Buffer, bytes: usize) -> (Option<Buffer>, Result<(), DiskError>) {
        let (content, result) = self.disk.write(offset, take(&mut buffer.bytes), bytes).await;
        (content.map(|bytes| buffer.with(bytes)), result)
    }

    fn flush(&self) -> impl Future<Output = Result<(), DiskError>> {
        self.disk.flush()
    }

    fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        self.disk.spawn(Box::pin(task));
    }

    fn now_s(&self) -> u32 {
        self.disk.now_s()
    }
}
