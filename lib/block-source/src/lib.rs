//! Block device interface: a file system's disk and environment.
//!
//! Key items: [`BlockSource`], [`DiskError`]. Deliberately not here: implementations; the one over a driver is
//! `userland/disk-source`, those in memory and in files belong to tests.
#![no_std]
#![forbid(unsafe_code)]

use core::fmt;
use core::future::Future;
use core::ops::{Deref, DerefMut};

/// Why a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskError {
    /// The device reported an error, with its own code.
    Failed(u32),
    /// The range is beyond the end of the disk, or fewer bytes were transferred.
    Short,
    /// The driver has ended.
    Gone,
    /// Timeout of the device or its driver. The request may still be executed.
    NoAnswer,
    /// No memory for a buffer.
    NoMemory,
    /// The device is read-only.
    ReadOnly,
}

impl fmt::Display for DiskError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DiskError::Failed(code) => write!(formatter, "the device failed with code {code}"),
            DiskError::Short => formatter.write_str("the device moved fewer bytes than were asked for"),
            DiskError::Gone => formatter.write_str("the disk driver has ended"),
            DiskError::NoAnswer => formatter.write_str("the disk does not answer"),
            DiskError::NoMemory => formatter.write_str("no memory is left to hold its bytes"),
            DiskError::ReadOnly => formatter.write_str("the device refuses to be written"),
        }
    }
}

impl core::error::Error for DiskError {}

/// A disk or partition that holds a volume, and services of the environment.
///
/// Transfers are aligned to [`BlockSource::sector_bytes`]. Several can be pending; each holds one of the few channels
/// to the disk from the poll that sends its request to the poll that receives the reply, while the others wait for a
/// channel. So the future of a transfer must be polled to completion whenever it is woken: its task awaits nothing
/// else meanwhile, or it was given to [`BlockSource::spawn`]. A transfer that is kept while its task awaits another
/// one deadlocks.
pub trait BlockSource: 'static {
    /// Buffer type for zero-copy transfers and caching.
    type Buffer: Deref<Target = [u8]> + DerefMut + 'static;

    /// Size of the disk in bytes.
    fn size_bytes(&self) -> u64;

    /// Sector size in bytes: a power of two from 512 to 4096.
    fn sector_bytes(&self) -> usize {
        512
    }

    /// Whether the disk is read-only.
    fn is_read_only(&self) -> bool;

    /// Allocates a buffer of `bytes` bytes with arbitrary content.
    ///
    /// # Errors
    /// Out of memory.
    fn allocate(&self, bytes: usize) -> Result<Self::Buffer, DiskError>;

    /// Reads `bytes` bytes at `offset` into the buffer. The buffer is returned unless it was lost with its peer.
    fn read(
        &self,
        offset: u64,
        buffer: Self::Buffer,
        bytes: usize,
    ) -> impl Future<Output = (Option<Self::Buffer>, Result<(), DiskError>)>;

    /// Writes the first `bytes` bytes of the buffer at `offset`; durable only after the next [`BlockSource::flush`].
    /// The buffer is returned unless it was lost with its peer.
    fn write(
        &self,
        offset: u64,
        buffer: Self::Buffer,
        bytes: usize,
    ) -> impl Future<Output = (Option<Self::Buffer>, Result<(), DiskError>)>;

    /// Makes all writes that completed before this call durable.
    fn flush(&self) -> impl Future<Output = Result<(), DiskError>>;

    /// Spawns a task, which runs to completion even if the caller is dropped. A source that never waits may run it
    /// inline.
    fn spawn(&self, task: impl Future<Output = ()> + 'static);

    /// Current time, in seconds since 1970.
    fn now_s(&self) -> u32;
}
