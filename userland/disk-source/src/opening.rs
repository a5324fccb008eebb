//! Opens a disk, waiting for a driver that is being restarted. A driver that does not answer is not opened.

use alloc::vec::Vec;
use core::cell::RefCell;
use core::future::Future;

use client::access::AccessError;
use client::answer::{DISK_LIMIT, wait_async};
use client::namespace::Namespace;
use contracts::directory::NameError;
use contracts::disk;
use contracts::disk_events;
use sip::exheap::ExVec;
use sip::{Deadline, executor};

use crate::{Channel, Events, Mark};

/// Retry interval for a missing disk, in milliseconds.
const AGAIN_AFTER_MS: u64 = 5;
/// Minimum sector size in bytes.
const SMALLEST_SECTOR: u32 = 512;
const LARGEST_SECTOR: u32 = 4096;

/// A disk's properties according to its driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    /// Size of the disk in bytes.
    pub size_bytes: u64,
    /// Size of a sector in bytes.
    pub sector_bytes: u32,
    /// Whether the disk is read-only.
    pub read_only: bool,
}

/// Identity of a disk, by which it is recognized.
#[derive(PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) info: Info,
    /// The bytes of its mark; `None` if they cannot be read, or without a mark.
    mark: Option<Vec<u8>>,
}

/// An open disk.
pub(crate) struct Opened {
    pub(crate) channels: Vec<Channel>,
    /// Announces the driver's end.
    pub(crate) events: Events,
    pub(crate) shape: Shape,
}

/// Retries opening a disk until it succeeds, fails for good, or the deadline passes.
///
/// # Errors
///
/// That of the last attempt.
pub async fn until_open<T, F>(deadline: Deadline, mut attempt: impl FnMut() -> F) -> Result<T, AccessError>
where
    F: Future<Output = Result<T, AccessError>>,
{
    loop {
        match attempt().await {
            Err(error) if error.may_pass() && !deadline.has_passed() => {
                executor::sleep_until(Deadline::after_ms(AGAIN_AFTER_MS)).await;
            }
            other => return other,
        }
    }
}

/// Opens a channel to the disk at this path.
///
/// # Errors
///
/// There is no such disk, this program may not open it, or its driver does not answer.
pub async fn open_channel(namespace: &RefCell<Namespace>, path: &str) -> Result<Channel, AccessError> {
    let (importer, exporter) = disk::new_channel()?;
    namespace.borrow_mut().bind(path, exporter)?;
    match wait_async(importer, DISK_LIMIT).await? {
        disk::ImpStart::Success { next } => Ok(next),
        disk::ImpStart::Refused { .. } => Err(AccessError::Name(NameError::DeviceError)),
        disk::ImpStart::ChannelClosed(_) => Err(AccessError::ServerEnded),
    }
}

/// Queries the disk's properties.
///
/// # Errors
/// The driver has ended, or does not answer.
pub async fn get_info(channel: Channel) -> Result<(Channel, Info), AccessError> {
    match wait_async(channel.get_info(), DISK_LIMIT).await? {
        disk::ImpReadyAfterGetInfo::Info { size_bytes, sector_bytes, read_only, next } => {
            Ok((next, Info { size_bytes, sector_bytes, read_only }))
        }
        disk::ImpReadyAfterGetInfo::ChannelClosed(_) => Err(AccessError::ServerEnded),
    }
}

/// Opens `count` channels to the disk, subscribes to its events, and reads its identity.
pub(crate) async fn open_all(
    namespace: &RefCell<Namespace>,
    path: &str,
    count: usize,
    mark: Option<Mark>,
) -> Result<Opened, AccessError> {
    let (first, info) = get_info(open_channel(namespace, path).await?).await?;
    if !info.sector_bytes.is_power_of_two() || !(SMALLEST_SECTOR..=LARGEST_SECTOR).contains(&info.sector_bytes) {
        return Err(AccessError::Name(NameError::DeviceError));
    }
    let (events, exporter) = disk_events::new_channel()?;
    let first = match wait_async(first.notify(exporter), DISK_LIMIT).await? {
        disk::ImpReadyAfterNotify::Notifying { next } => next,
        disk::ImpReadyAfterNotify::ChannelClosed(_) => return Err(AccessError::ServerEnded),
    };
    let (first, mark) = match mark {
        Some(mark) => read_mark(first, info.sector_bytes, mark).await?,
        None => (first, None),
    };
    let mut channels = alloc::vec![first];
    while channels.len() < count {
        channels.push(open_channel(namespace, path).await?);
    }
    Ok(Opened { channels, events, shape: Shape { info, mark } })
}

async fn read_mark(channel: Channel, sector_bytes: u32, mark: Mark) -> Result<(Channel, Option<Vec<u8>>), AccessError> {
    let Some(length) = mark.parts.iter().map(|part| part.end).max() else { return Ok((channel, None)) };
    // Transfers are aligned to sectors.
    let before = mark.offset % u64::from(sector_bytes);
    let bytes = (before as usize + length).next_multiple_of(sector_bytes as usize);
    let block = ExVec::<u8>::new(bytes)?;
    match wait_async(channel.read(block, mark.offset - before, bytes as u32), DISK_LIMIT).await? {
        disk::ImpReadyAfterRead::ReadDone { data, next } => {
            let marked = data.get(before as usize..).unwrap_or(&[]);
            let parts = mark.parts.iter().flat_map(|part| marked.get(part.clone()).unwrap_or(&[]));
            Ok((next, Some(parts.copied().collect())))
        }
        // A disk fault shows when the disk is used.
        disk::ImpReadyAfterRead::ReadFailed { next, .. } => Ok((next, None)),
        disk::ImpReadyAfterRead::ChannelClosed(_) => Err(AccessError::ServerEnded),
    }
}
