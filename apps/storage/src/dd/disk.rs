//! A raw disk with byte-granular reads and writes.

use alloc::string::String;

use client::access::AccessError;
use client::answer::{DISK_LIMIT, wait};
use client::namespace::Namespace;
use contracts::directory::NameError;
use contracts::disk::{self, DiskError, states};
use contracts::file::FileError;
use sip::exheap::ExVec;

use crate::dd::ends::Error;

type Endpoint = disk::Imp<states::Ready>;

/// An open disk.
pub struct RawDisk {
    path: String,
    endpoint: Option<Endpoint>,
    /// Size in whole sectors; a partial sector at the end cannot be transferred.
    size_bytes: u64,
    sector_bytes: usize,
}

impl RawDisk {
    /// Opens the disk at a path, if it is a disk.
    pub fn open(namespace: &mut Namespace, path: &str) -> Result<RawDisk, AccessError> {
        let endpoint = namespace.open(path, disk::new_channel, |importer| match wait(importer, DISK_LIMIT)? {
            disk::ImpStart::Success { next } => Ok(next),
            disk::ImpStart::Refused { error, .. } => Err(access_error(error)),
            disk::ImpStart::ChannelClosed(_) => Err(AccessError::ServerEnded),
        })?;
        match wait(endpoint.get_info(), DISK_LIMIT)? {
            disk::ImpReadyAfterGetInfo::Info { size_bytes, sector_bytes, next, .. } => {
                let sector_bytes = sector_bytes.max(1);
                Ok(RawDisk {
                    path: path.into(),
                    endpoint: Some(next),
                    size_bytes: size_bytes - size_bytes % u64::from(sector_bytes),
                    sector_bytes: sector_bytes as usize,
                })
            }
            disk::ImpReadyAfterGetInfo::ChannelClosed(_) => Err(AccessError::ServerEnded),
        }
    }

    /// Reads `wanted` bytes from `offset` on; fewer at the end of the disk.
    pub fn read(&mut self, offset: u64, wanted: usize) -> Result<(ExVec<u8>, usize), Error> {
        let left = usize::try_from(self.size_bytes.saturating_sub(offset)).unwrap_or(usize::MAX);
        let wanted = wanted.min(left);
        let (start, lead, whole) = self.sectors(offset, wanted);
        let block = ExVec::new(whole).map_err(|status| self.error(status.into()))?;
        if whole == 0 {
            return Ok((block, 0));
        }
        let block = self.transfer(block, start, whole, Way::Read)?;
        if lead == 0 {
            return Ok((block, wanted));
        }
        let part = ExVec::from_slice(&block[lead..lead + wanted]);
        Ok((part.map_err(|status| self.error(status.into()))?, wanted))
    }

    /// Writes the first `bytes` bytes of `block` at `offset`. The rest of the first and last sector is preserved.
    pub fn write(&mut self, block: ExVec<u8>, offset: u64, bytes: usize) -> Result<ExVec<u8>, Error> {
        if bytes as u64 > self.size_bytes.saturating_sub(offset) {
            return Err(Error::DiskFull { path: self.path.clone(), size_bytes: self.size_bytes });
        }
        let (start, lead, whole) = self.sectors(offset, bytes);
        if lead == 0 && whole == bytes {
            return self.transfer(block, start, whole, Way::Write);
        }
        let around = ExVec::new(whole).map_err(|status| self.error(status.into()))?;
        let mut around = self.transfer(around, start, whole, Way::Read)?;
        around[lead..lead + bytes].copy_from_slice(&block[..bytes]);
        self.transfer(around, start, whole, Way::Write)?;
        Ok(block)
    }

    /// Waits until all writes are on the medium.
    pub fn flush(&mut self) -> Result<(), Error> {
        match wait(self.take()?.flush(), DISK_LIMIT).map_err(|error| self.error(error))? {
            disk::ImpReadyAfterFlush::Flushed { .. } => Ok(()),
            disk::ImpReadyAfterFlush::FlushFailed { error, .. } => Err(self.error(access_error(error))),
            disk::ImpReadyAfterFlush::ChannelClosed(_) => Err(self.error(AccessError::ServerEnded)),
        }
    }

    /// Returns the whole sectors around a byte range: their start, how far before the range they start, and their
    /// length.
    fn sectors(&self, offset: u64, bytes: usize) -> (u64, usize, usize) {
        let lead = (offset % self.sector_bytes as u64) as usize;
        (offset - lead as u64, lead, (lead + bytes).next_multiple_of(self.sector_bytes))
    }

    fn transfer(&mut self, block: ExVec<u8>, offset: u64, bytes: usize, way: Way) -> Result<ExVec<u8>, Error> {
        let count = u32::try_from(bytes).map_err(|_| self.error(access_error(DiskError::OutOfRange)))?;
        let endpoint = self.take()?;
        let outcome = match way {
            Way::Read => match wait(endpoint.read(block, offset, count), DISK_LIMIT) {
                Ok(disk::ImpReadyAfterRead::ReadDone { data, next }) => Ok((data, next)),
                Ok(disk::ImpReadyAfterRead::ReadFailed { error, .. }) => Err(access_error(error)),
                Ok(disk::ImpReadyAfterRead::ChannelClosed(_)) => Err(AccessError::ServerEnded),
                Err(error) => Err(error),
            },
            Way::Write => match wait(endpoint.write(block, offset, count), DISK_LIMIT) {
                Ok(disk::ImpReadyAfterWrite::WriteDone { data, next }) => Ok((data, next)),
                Ok(disk::ImpReadyAfterWrite::WriteFailed { error, .. }) => Err(access_error(error)),
                Ok(disk::ImpReadyAfterWrite::ChannelClosed(_)) => Err(AccessError::ServerEnded),
                Err(error) => Err(error),
            },
        };
        let (block, next) = outcome.map_err(|error| self.error(error))?;
        self.endpoint = Some(next);
        Ok(block)
    }

    fn take(&mut self) -> Result<Endpoint, Error> {
        self.endpoint.take().ok_or_else(|| self.error(AccessError::ServerEnded))
    }

    fn error(&self, error: AccessError) -> Error {
        Error::Access { path: self.path.clone(), error }
    }
}

#[derive(Clone, Copy)]
enum Way {
    Read,
    Write,
}

fn access_error(error: DiskError) -> AccessError {
    match error {
        DiskError::ReadOnly => FileError::ReadOnly.into(),
        DiskError::NotAligned | DiskError::OutOfRange | DiskError::DeviceError => FileError::DeviceError.into(),
        DiskError::Exhausted => NameError::Exhausted.into(),
    }
}
