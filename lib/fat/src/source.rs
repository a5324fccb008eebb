//! What a volume needs of the disk below it.

use core::fmt;
use core::future::Future;
use core::ops::{Deref, DerefMut};

/// Why a disk did not do what it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskError {
    /// The disk ends before the range that was asked for.
    Short,
    /// The driver has ended and is not back.
    Gone,
    /// There is no memory for a buffer.
    NoMemory,
    /// The disk cannot be written to.
    ReadOnly,
    /// The disk reported this error.
    Failed(u32),
}

impl fmt::Display for DiskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DiskError::Short => f.write_str("the disk ends before that"),
            DiskError::Gone => f.write_str("the disk's driver has ended"),
            DiskError::NoMemory => f.write_str("there is no memory for a buffer"),
            DiskError::ReadOnly => f.write_str("the disk cannot be written to"),
            DiskError::Failed(code) => write!(f, "the disk reports error {code}"),
        }
    }
}

impl core::error::Error for DiskError {}

/// A disk, or a part of one, that holds a volume.
///
/// Transfers begin and end at multiples of [`BlockSource::sector_bytes`]. A transfer that was begun is waited for;
/// none is dropped half way.
pub trait BlockSource: 'static {
    /// A piece of memory that the disk fills and empties.
    type Buffer: Deref<Target = [u8]> + DerefMut + 'static;

    /// Bytes of the disk.
    fn size_bytes(&self) -> u64;

    /// Bytes of the smallest piece that can be transferred: a power of two from 512 to 4096.
    fn sector_bytes(&self) -> usize;

    /// Whether the disk cannot be written to.
    fn is_read_only(&self) -> bool;

    /// A buffer of this many bytes, with any content.
    ///
    /// # Errors
    /// There is no memory.
    fn allocate(&self, bytes: usize) -> Result<Self::Buffer, DiskError>;

    /// Fills the first `bytes` bytes of the buffer from `offset` on. The buffer comes back unless it is lost with
    /// the driver.
    fn read(
        &self,
        offset: u64,
        buffer: Self::Buffer,
        bytes: usize,
    ) -> impl Future<Output = (Option<Self::Buffer>, Result<(), DiskError>)>;

    /// Writes the first `bytes` bytes of the buffer to `offset`. The buffer comes back likewise.
    fn write(
        &self,
        offset: u64,
        buffer: Self::Buffer,
        bytes: usize,
    ) -> impl Future<Output = (Option<Self::Buffer>, Result<(), DiskError>)>;

    /// Waits until what was written is on the medium.
    fn flush(&self) -> impl Future<Output = Result<(), DiskError>>;
}
