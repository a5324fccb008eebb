//! Where bytes come from and go to.

use alloc::rc::Rc;
use alloc::vec;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::future::Future;
use core::ops::{Deref, DerefMut};
use core::pin::pin;
use core::task::{Context, Poll, Waker};

use crate::DiskError;

/// A disk, as the file system sees it, and what else the surroundings supply.
///
/// Several reads and writes may be under way at once. The file system never drops one before its
/// end unless the whole operation is dropped.
pub trait BlockSource: 'static {
    /// Memory that the source chooses, so that the disk can fill it and read from it, and caches can
    /// hold it, without a copy.
    type Buffer: Deref<Target = [u8]> + DerefMut;

    /// Bytes of the disk.
    fn size_bytes(&self) -> u64;

    /// Whether the disk refuses to be written.
    fn is_read_only(&self) -> bool;

    /// Memory of `bytes` bytes, with any content.
    fn allocate(&self, bytes: usize) -> Result<Self::Buffer, DiskError>;

    /// Fills the first `bytes` bytes of the buffer from `offset` on, both multiples of 512. The buffer comes back
    /// unless it is lost with the peer that had it.
    fn read(
        &self,
        offset: u64,
        buffer: Self::Buffer,
        bytes: usize,
    ) -> impl Future<Output = (Option<Self::Buffer>, Result<(), DiskError>)>;

    /// Writes the first `bytes` bytes of the buffer at `offset`, both multiples of 512. What was written survives
    /// the loss of power only after the next [`BlockSource::flush`]. The buffer comes back unless it is lost with
    /// the peer that had it.
    fn write(
        &self,
        offset: u64,
        buffer: Self::Buffer,
        bytes: usize,
    ) -> impl Future<Output = (Option<Self::Buffer>, Result<(), DiskError>)>;

    /// Makes every write that has ended before this call survive the loss of power.
    fn flush(&self) -> impl Future<Output = Result<(), DiskError>>;

    /// Runs a task beside the caller. A source that is always ready may run it to its end at once.
    fn spawn(&self, task: impl Future<Output = ()> + 'static);

    /// Seconds since 1970.
    fn now_s(&self) -> u32;
}

/// A disk in memory. Clones share its bytes.
#[derive(Clone, Debug, Default)]
pub struct MemoryDisk {
    bytes: Rc<RefCell<Vec<u8>>>,
    read_only: Rc<Cell<bool>>,
    now_s: Rc<Cell<u32>>,
}

impl MemoryDisk {
    /// A disk with these bytes.
    pub fn new(bytes: Vec<u8>) -> MemoryDisk {
        MemoryDisk { bytes: Rc::new(RefCell::new(bytes)), ..MemoryDisk::default() }
    }

    /// A copy of its bytes.
    pub fn bytes(&self) -> Vec<u8> {
        self.bytes.borrow().clone()
    }

    /// Makes it refuse to be written, or take that back.
    pub fn set_read_only(&self, read_only: bool) {
        self.read_only.set(read_only);
    }

    /// Sets its clock.
    pub fn set_now_s(&self, now_s: u32) {
        self.now_s.set(now_s);
    }
}

/// The bytes from `offset` on, if there are that many.
fn place(offset: u64, bytes: usize, available: usize) -> Result<core::ops::Range<usize>, DiskError> {
    let start = usize::try_from(offset).map_err(|_| DiskError::Short)?;
    let end = start.checked_add(bytes).filter(|&end| end <= available).ok_or(DiskError::Short)?;
    Ok(start..end)
}

impl BlockSource for MemoryDisk {
    type Buffer = Vec<u8>;

    fn size_bytes(&self) -> u64 {
        self.bytes.borrow().len() as u64
    }

    fn is_read_only(&self) -> bool {
        self.read_only.get()
    }

    fn allocate(&self, bytes: usize) -> Result<Vec<u8>, DiskError> {
        Ok(vec![0; bytes])
    }

    async fn read(&self, offset: u64, mut buffer: Vec<u8>, bytes: usize) -> (Option<Vec<u8>>, Result<(), DiskError>) {
        let own = self.bytes.borrow();
        let result = place(offset, bytes, own.len()).and_then(|place| {
            let target = buffer.get_mut(..bytes).ok_or(DiskError::Short)?;
            target.copy_from_slice(&own[place]);
            Ok(())
        });
        (Some(buffer), result)
    }

    async fn write(&self, offset: u64, buffer: Vec<u8>, bytes: usize) -> (Option<Vec<u8>>, Result<(), DiskError>) {
        let mut own = self.bytes.borrow_mut();
        let result = place(offset, bytes, own.len()).and_then(|place| {
            if self.read_only.get() {
                return Err(DiskError::ReadOnly);
            }
            own[place].copy_from_slice(buffer.get(..bytes).ok_or(DiskError::Short)?);
            Ok(())
        });
        (Some(buffer), result)
    }

    async fn flush(&self) -> Result<(), DiskError> {
        Ok(())
    }

    fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        complete(task);
    }

    fn now_s(&self) -> u32 {
        self.now_s.get()
    }
}

/// Drives an operation whose source is always ready to its end on the calling thread. With a
/// source that waits for something, this polls without rest; such a source needs an executor.
pub fn complete<T>(operation: impl Future<Output = T>) -> T {
    let mut operation = pin!(operation);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(value) = operation.as_mut().poll(&mut context) {
            return value;
        }
        core::hint::spin_loop();
    }
}
