//! A look at a disk's first bytes, before a file system is started only to hear that the disk is none of its own.
//!
//! Deliberately not here: what the bytes mean; that is `volume-kind`'s.

use client::access::AccessError;
use client::namespace::TIMEOUT_MS;
use contracts::directory::NameError;
use contracts::disk::{self, states};
use sip::Deadline;
use sip::exheap::ExVec;
use volume_kind::{BYTES, may_hold};

use crate::Manager;
use crate::waiting::before;

/// Sectors that are larger than this are no sectors.
const LARGEST_SECTOR: u32 = 65_536;

/// Whether the disk may hold a volume of the manager's kind. Of one that cannot be read, or does not answer, the file
/// system is to tell.
pub(crate) async fn is_own(manager: &Manager, disk: &str) -> bool {
    match before(Deadline::after_ms(TIMEOUT_MS), first_bytes(manager, disk)).await {
        Some(Ok(block)) => may_hold(&manager.kind, &block[..BYTES.min(block.len())]),
        Some(Err(_)) | None => true,
    }
}

/// Whole sectors from the disk's first on, those that [`may_hold`] wants as far as the disk has them.
async fn first_bytes(manager: &Manager, path: &str) -> Result<ExVec<u8>, AccessError> {
    let failed = || AccessError::Name(NameError::DeviceError);
    let channel = open(manager, path).await?;
    let (size_bytes, sector_bytes, channel) = match channel.get_info().receive_async().await {
        disk::ImpReadyAfterGetInfo::Info { size_bytes, sector_bytes, next, .. } => (size_bytes, sector_bytes, next),
        disk::ImpReadyAfterGetInfo::ChannelClosed(_) => return Err(AccessError::ServerEnded),
    };
    if !sector_bytes.is_power_of_two() || sector_bytes > LARGEST_SECTOR {
        return Err(failed());
    }
    let there = size_bytes - size_bytes % u64::from(sector_bytes);
    // Both numbers fit: the smaller one is at most the largest sector.
    let count = (BYTES as u32).next_multiple_of(sector_bytes).min(there.min(LARGEST_SECTOR.into()) as u32);
    if count == 0 {
        return Ok(ExVec::new(0)?);
    }
    match channel.read(ExVec::new(count as usize)?, 0, count).receive_async().await {
        disk::ImpReadyAfterRead::ReadDone { data, .. } => Ok(data),
        disk::ImpReadyAfterRead::ReadFailed { .. } => Err(failed()),
        disk::ImpReadyAfterRead::ChannelClosed(_) => Err(AccessError::ServerEnded),
    }
}

async fn open(manager: &Manager, path: &str) -> Result<disk::Imp<states::Ready>, AccessError> {
    let (importer, exporter) = disk::new_channel()?;
    manager.namespace.borrow_mut().bind(path, exporter)?;
    match importer.receive_async().await {
        disk::ImpStart::Success { next } => Ok(next),
        disk::ImpStart::Refused { .. } => Err(AccessError::Name(NameError::DeviceError)),
        disk::ImpStart::ChannelClosed(_) => Err(AccessError::ServerEnded),
    }
}
