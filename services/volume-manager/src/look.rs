//! Probes a disk's first bytes, to avoid starting a file system for a disk of another kind.
//!
//! Deliberately not here: the meaning of the bytes; see `volume-kind`.

use client::access::AccessError;
use client::namespace::TIMEOUT_MS;
use contracts::directory::NameError;
use contracts::disk::{self, states};
use sip::exheap::ExVec;
use sip::{Deadline, executor};
use volume_kind::{BYTES, may_hold};

use crate::Manager;
use crate::waiting::before;

/// Maximum sector size in bytes; larger values are invalid.
const MAX_SECTOR_BYTES: u32 = 65_536;

/// Pause before a disk whose driver has ended is read again, in milliseconds.
const AGAIN_AFTER_MS: u64 = 20;

/// Whether the disk may hold a volume of the manager's kind. True if it cannot be read or times out: the file system
/// then reports the error. A driver that has ended is waited for: a disk that is claimed on suspicion is not there for the
/// manager whose volume it holds.
pub(crate) async fn is_own(manager: &Manager, disk: &str) -> bool {
    let deadline = Deadline::after_ms(TIMEOUT_MS);
    loop {
        match before(deadline, read_first_bytes(manager, disk)).await {
            Some(Ok(block)) => return may_hold(&manager.kind, &block[..BYTES.min(block.len())]),
            Some(Err(error)) if is_driver_away(error) && !deadline.has_passed() => {
                executor::sleep_until(Deadline::after_ms(AGAIN_AFTER_MS)).await;
            }
            Some(Err(_)) | None => return true,
        }
    }
}

/// Whether the driver of a disk that was listed has ended, and may be back soon.
fn is_driver_away(error: AccessError) -> bool {
    error.may_pass() || error == AccessError::Name(NameError::NotFound)
}

/// Reads the leading whole sectors that [`may_hold`] needs, as far as the disk has them.
async fn read_first_bytes(manager: &Manager, path: &str) -> Result<ExVec<u8>, AccessError> {
    let failed = || AccessError::Name(NameError::DeviceError);
    let channel = open(manager, path).await?;
    let (size_bytes, sector_bytes, channel) = match channel.get_info().receive_async().await {
        disk::ImpReadyAfterGetInfo::Info { size_bytes, sector_bytes, next, .. } => (size_bytes, sector_bytes, next),
        disk::ImpReadyAfterGetInfo::ChannelClosed(_) => return Err(AccessError::ServerEnded),
    };
    if !sector_bytes.is_power_of_two() || sector_bytes > MAX_SECTOR_BYTES {
        return Err(failed());
    }
    let there = size_bytes - size_bytes % u64::from(sector_bytes);
    // Fits: the minimum is at most the maximum sector size.
    let count = (BYTES as u32).next_multiple_of(sector_bytes).min(there.min(MAX_SECTOR_BYTES.into()) as u32);
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
