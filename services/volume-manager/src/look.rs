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

/// Timeout for a driver that has ended to be back, in milliseconds.
const DRIVER_BACK_MS: u64 = 10_000;
const AGAIN_AFTER_MS: u64 = 10;

/// Whether the disk may hold a volume of the manager's kind. True if it cannot be read or times out: the file system
/// then reports the error. A driver that ends meanwhile is waited for: to mount the disk of another kind would keep it from
/// that kind's manager.
pub(crate) async fn is_own(manager: &Manager, disk: &str) -> bool {
    let deadline = Deadline::after_ms(DRIVER_BACK_MS);
    loop {
        let read = before(Deadline::after_ms(TIMEOUT_MS), read_first_bytes(manager, disk)).await;
        let read = read.as_ref().map(|read| read.as_ref().map(|block| &block[..]).map_err(|error| *error));
        match judge(&manager.kind, read, deadline.has_passed()) {
            Some(is_own) => return is_own,
            None => executor::sleep_until(Deadline::after_ms(AGAIN_AFTER_MS)).await,
        }
    }
}

/// Whether a disk that was read so may hold a volume of this kind; `None` if it is to be read again.
fn judge(kind: &str, read: Option<Result<&[u8], AccessError>>, is_late: bool) -> Option<bool> {
    match read {
        Some(Ok(bytes)) => Some(may_hold(kind, &bytes[..BYTES.min(bytes.len())])),
        Some(Err(error)) if error.may_pass() && !is_late => None,
        Some(Err(_)) | None => Some(true),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_that_ends_is_no_reason_to_take_its_disk() {
        let ended = Some(Err(AccessError::ServerEnded));
        assert_eq!(judge("fat", ended, false), None);
        assert_eq!(judge("fat", ended, true), Some(true));
        let broken = Some(Err(AccessError::Name(NameError::DeviceError)));
        assert_eq!([judge("fat", broken, false), judge("fat", None, false)], [Some(true); 2]);
        assert_eq!(judge("fat", Some(Ok(&[0; BYTES])), false), Some(false));
    }
}
