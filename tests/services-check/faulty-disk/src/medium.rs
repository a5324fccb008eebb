//! Storage of the bytes: memory, or another disk.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::RefCell;

use block_source::{BlockSource, DiskError as SourceError};
use client::namespace::Namespace;
use contracts::disk::DiskError;
use disk_server::{SECTOR_BYTES, Shape};
use disk_source::{DiskSource, Mark};

/// Any disk of the same size will do after a restart of the driver below.
const ANY_DISK: Mark = Mark { offset: 0, parts: &[] };

/// The bytes of a disk.
pub enum Bytes {
    /// In memory.
    Memory(RefCell<Vec<u8>>),
    /// On another disk, with one request at a time.
    Below(DiskSource),
}

impl Bytes {
    /// This many zero bytes.
    pub fn in_memory(size_bytes: u64) -> Result<Bytes, String> {
        let size = usize::try_from(size_bytes).unwrap_or(usize::MAX);
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(size).map_err(|_| format!("there is no memory for a disk of {size_bytes} bytes"))?;
        bytes.resize(size, 0);
        Ok(Bytes::Memory(RefCell::new(bytes)))
    }

    /// Creates a medium on the disk at this path.
    pub async fn over(namespace: Namespace, path: &str) -> Result<Bytes, String> {
        let below = DiskSource::open(namespace, path, 1, Some(ANY_DISK)).await;
        below.map(Bytes::Below).map_err(|error| format!("{path}: {error}"))
    }

    /// The disk's attributes.
    pub fn shape(&self) -> Shape {
        match self {
            Bytes::Memory(bytes) => {
                Shape { size_bytes: bytes.borrow().len() as u64, sector_bytes: SECTOR_BYTES, read_only: false }
            }
            Bytes::Below(below) => Shape {
                size_bytes: below.size_bytes(),
                sector_bytes: below.sector_bytes() as u32,
                read_only: below.is_read_only(),
            },
        }
    }

    /// Reads from `offset` on. Must not be called concurrently, as all that follow.
    pub async fn read(&self, offset: u64, target: &mut [u8]) -> Result<(), DiskError> {
        match self {
            Bytes::Memory(bytes) => {
                target.copy_from_slice(&bytes.borrow()[offset as usize..offset as usize + target.len()]);
                Ok(())
            }
            Bytes::Below(below) => {
                let block = below.allocate(target.len()).map_err(failed)?;
                let (block, result) = below.read(offset, block, target.len()).await;
                result.map_err(failed)?;
                target.copy_from_slice(block.as_deref().ok_or(DiskError::DeviceError)?);
                Ok(())
            }
        }
    }

    /// Writes from `offset` on.
    pub async fn write(&self, offset: u64, source: &[u8]) -> Result<(), DiskError> {
        match self {
            Bytes::Memory(bytes) => {
                bytes.borrow_mut()[offset as usize..offset as usize + source.len()].copy_from_slice(source);
                Ok(())
            }
            Bytes::Below(below) => {
                let mut block = below.allocate(source.len()).map_err(failed)?;
                block.copy_from_slice(source);
                below.write(offset, block, source.len()).await.1.map_err(failed)
            }
        }
    }

    /// Makes earlier writes durable.
    pub async fn flush(&self) -> Result<(), DiskError> {
        match self {
            Bytes::Memory(_) => Ok(()),
            Bytes::Below(below) => below.flush().await.map_err(failed),
        }
    }
}

/// Converts an error of the underlying disk.
fn failed(error: SourceError) -> DiskError {
    match error {
        SourceError::ReadOnly => DiskError::ReadOnly,
        SourceError::NoMemory => DiskError::Exhausted,
        SourceError::Short => DiskError::OutOfRange,
        SourceError::Failed(_) | SourceError::Gone | SourceError::NoAnswer => DiskError::DeviceError,
    }
}
