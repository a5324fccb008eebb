//! What a file system needs of the disk below it, and of its surroundings.
//!
//! Key items: [`BlockSource`], [`DiskError`]. Deliberately not here: any disk; the way to a driver is
//! `userland/disk-source`, disks in memory and in files belong to the tests that need them.
#![no_std]
#![forbid(unsafe_code)]

use core::fmt;
use core::future::Future;
use core::ops::{Deref, DerefMut};

/// Why a disk did not do what it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskError {
    /// The device tried and failed; the number is the device's own code for it.
    Failed(u32),
    /// The disk ends before the range that was asked for, or fewer bytes were moved.
    Short,
    /// There is no device any more: its driver ended.
    Gone,
    /// The device, or its driver, has not answered in time. What was asked of it may still happen.
    NoAnswer,
    /// There is no memory to read into or to write from.
    NoMemory,
    /// The device refuses to be written.
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

/// A disk, or a part of one, that holds a volume, and what else the surroundings supply.
///
/// Transfers begin and end at multiples of [`BlockSource::sector_bytes`]. Several may be under way at once; each then
/// holds one of the few channels to the disk from the poll that asks for it to the poll that sees its answer, and the
/// others wait for a channel. So the future of a transfer must be polled whenever it is woken, until it ends: the task
/// that began it does nothing but drive it, or is one of [`BlockSource::spawn`] of which that is true. A future that is kept
/// while its task waits for another transfer deadlocks.
pub trait BlockSource: 'static {
    /// Memory that the source chooses, so that the disk can fill it and read from it, and caches can hold it,
    /// without a copy.
    type Buffer: Deref<Target = [u8]> + DerefMut + 'static;

    /// Bytes of the disk.
    fn size_bytes(&self) -> u64;

    /// Bytes of the smallest piece that can be transferred: a power of two from 512 to 4096.
    fn sector_bytes(&self) -> usize {
        512
    }

    /// Whether the disk refuses to be written.
    fn is_read_only(&self) -> bool;

    /// Memory of `bytes` bytes, with any content.
    ///
    /// # Errors
    /// There is no memory.
    fn allocate(&self, bytes: usize) -> Result<Self::Buffer, DiskError>;

    /// Fills the first `bytes` bytes of the buffer from `offset` on. The buffer comes back unless it is lost with
    /// the peer that had it.
    fn read(
        &self,
        offset: u64,
        buffer: Self::Buffer,
        bytes: usize,
    ) -> impl Future<Output = (Option<Self::Buffer>, Result<(), DiskError>)>;

    /// Writes the first `bytes` bytes of the buffer to `offset`. What was written survives the loss of power only
    /// after the next [`BlockSource::flush`]. The buffer comes back likewise.
    fn write(
        &self,
        offset: u64,
        buffer: Self::Buffer,
        bytes: usize,
    ) -> impl Future<Output = (Option<Self::Buffer>, Result<(), DiskError>)>;

    /// Makes every write that has ended before this call survive the loss of power.
    fn flush(&self) -> impl Future<Output = Result<(), DiskError>>;

    /// Runs a task beside the caller, to its end: it goes on whatever becomes of the caller. A source that is always
    /// ready may run it to its end at once.
    fn spawn(&self, task: impl Future<Output = ()> + 'static);

    /// Seconds since 1970.
    fn now_s(&self) -> u32;
}
