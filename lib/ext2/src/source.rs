//! Where bytes come from.

use alloc::vec::Vec;
use core::future::Future;
use core::ops::Deref;
use core::pin::pin;
use core::task::{Context, Poll, Waker};

use crate::ReadError;

/// A disk, as the file system sees it.
pub trait BlockSource {
    /// What a read gives: memory that the source chose, so that it can go into a cache without
    /// being copied.
    type Buffer: Deref<Target = [u8]>;

    /// Bytes of the disk.
    fn size_bytes(&self) -> u64;

    /// Reads exactly `bytes` bytes from `offset` on, both multiples of 512. Several reads may be under way at once. The file
    /// system never drops a read before its end unless the whole operation is dropped.
    fn read(&self, offset: u64, bytes: usize) -> impl Future<Output = Result<Self::Buffer, ReadError>>;
}

/// A disk in memory.
#[derive(Clone, Debug, Default)]
pub struct MemoryDisk(pub Vec<u8>);

impl BlockSource for MemoryDisk {
    type Buffer = Vec<u8>;

    fn size_bytes(&self) -> u64 {
        self.0.len() as u64
    }

    async fn read(&self, offset: u64, bytes: usize) -> Result<Vec<u8>, ReadError> {
        let start = usize::try_from(offset).map_err(|_| ReadError::Short)?;
        let end = start.checked_add(bytes).ok_or(ReadError::Short)?;
        self.0.get(start..end).map(<[u8]>::to_vec).ok_or(ReadError::Short)
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
