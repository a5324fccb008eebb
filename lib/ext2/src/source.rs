//! Block sources: the [`BlockSource`] trait and an in-memory disk.

use alloc::rc::Rc;
use alloc::vec;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::future::Future;
use core::pin::pin;
use core::task::{Context, Poll, Waker};

pub use block_source::BlockSource;
use block_source::DiskError;

/// An in-memory disk. Clones share its bytes.
#[derive(Clone, Debug, Default)]
pub struct MemoryDisk {
    bytes: Rc<RefCell<Vec<u8>>>,
    read_only: Rc<Cell<bool>>,
    now_s: Rc<Cell<u32>>,
}

impl MemoryDisk {
    /// A disk that contains `bytes`.
    pub fn new(bytes: Vec<u8>) -> MemoryDisk {
        MemoryDisk { bytes: Rc::new(RefCell::new(bytes)), ..MemoryDisk::default() }
    }

    /// A copy of the disk's contents.
    pub fn bytes(&self) -> Vec<u8> {
        self.bytes.borrow().clone()
    }

    /// Sets whether writes fail with [`DiskError::ReadOnly`].
    pub fn set_read_only(&self, read_only: bool) {
        self.read_only.set(read_only);
    }

    /// Sets the clock, in seconds since 1970.
    pub fn set_now_s(&self, now_s: u32) {
        self.now_s.set(now_s);
    }
}

/// The range of `bytes` bytes at `offset`, or [`DiskError::Short`] if it exceeds `available`.
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

/// Runs an operation to completion on the calling thread, for sources that are always ready. It busy-polls a source
/// that can be pending; such a source needs an executor.
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
