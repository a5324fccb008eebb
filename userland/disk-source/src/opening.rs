//! Opening a disk, also one whose driver is just being started again. A driver that does not answer is not opened.

use alloc::vec::Vec;
use core::cell::RefCell;

use client::access::AccessError;
use client::answer::{DISK_LIMIT, wait_async};
use client::namespace::{Namespace, TIMEOUT_MS};
use contracts::directory::NameError;
use contracts::{disk, disk_events};
use sip::exheap::ExVec;
use sip::{Deadline, executor};

use crate::{Channel, Events, Mark};

/// How long to wait before the disk is looked for again.
const AGAIN_AFTER_MS: u64 = 5;
/// Sectors that a disk can have.
const SMALLEST_SECTOR: u32 = 512;
const LARGEST_SECTOR: u32 = 4096;

/// What a disk is, by which it is known again.
#[derive(PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) size_bytes: u64,
    pub(crate) sector_bytes: u32,
    pub(crate) is_read_only: bool,
    /// The bytes of its mark; nothing where they cannot be read or nobody asks for them.
    mark: Option<Vec<u8>>,
}

/// An open disk.
pub(crate) struct Opened {
    pub(crate) idle: Vec<Channel>,
    /// Tells of the driver's end.
    pub(crate) events: Events,
    pub(crate) shape: Shape,
}

/// Opens the disk `channels` times, asks to be told of its end, and looks at what it is. Waits for a driver that
/// is being started again.
pub(crate) async fn open_all(
    namespace: &RefCell<Namespace>,
    path: &str,
    channels: usize,
    mark: Option<Mark>,
) -> Result<Opened, AccessError> {
    let deadline = Deadline::after_ms(TIMEOUT_MS);
    loop {
        match try_open_all(namespace, path, channels, mark).await {
            Err(error) if error.may_pass() && !deadline.has_passed() => {
                executor::sleep_until(Deadline::after_ms(AGAIN_AFTER_MS)).await;
            }
            other => return other,
        }
    }
}

async fn try_open_all(
    namespace: &RefCell<Namespace>,
    path: &str,
    channels: usize,
    mark: Option<Mark>,
) -> Result<Opened, AccessError> {
    let first = open_channel(namespace, path).await?;
    let (first, size_bytes, sector_bytes, is_read_only) = match wait_async(first.get_info(), DISK_LIMIT).await? {
        disk::ImpReadyAfterGetInfo::Info { size_bytes, sector_bytes, read_only, next } => {
            (next, size_bytes, sector_bytes, read_only)
        }
        disk::ImpReadyAfterGetInfo::ChannelClosed(_) => return Err(AccessError::ServerEnded),
    };
    if !sector_bytes.is_power_of_two() || !(SMALLEST_SECTOR..=LARGEST_SECTOR).contains(&sector_bytes) {
        return Err(AccessError::Name(NameError::DeviceError));
    }
    let (events, exporter) = disk_events::new_channel()?;
    let first = match wait_async(first.notify(exporter), DISK_LIMIT).await? {
        disk::ImpReadyAfterNotify::Notifying { next } => next,
        disk::ImpReadyAfterNotify::ChannelClosed(_) => return Err(AccessError::ServerEnded),
    };
    let (first, mark) = match mark {
        Some(mark) => read_mark(first, sector_bytes, mark).await?,
        None => (first, None),
    };
    let mut idle = alloc::vec![first];
    while idle.len() < channels {
        idle.push(open_channel(namespace, path).await?);
    }
    let shape = Shape { size_bytes, sector_bytes, is_read_only, mark };
    Ok(Opened { idle, events, shape })
}

async fn read_mark(channel: Channel, sector_bytes: u32, mark: Mark) -> Result<(Channel, Option<Vec<u8>>), AccessError> {
    let Some(length) = mark.parts.iter().map(|part| part.end).max() else { return Ok((channel, None)) };
    // Transfers begin and end with sectors.
    let before = mark.offset % u64::from(sector_bytes);
    let bytes = (before as usize + length).next_multiple_of(sector_bytes as usize);
    let block = ExVec::<u8>::new(bytes)?;
    match wait_async(channel.read(block, mark.offset - before, bytes as u32), DISK_LIMIT).await? {
        disk::ImpReadyAfterRead::ReadDone { data, next } => {
            let marked = data.get(before as usize..).unwrap_or(&[]);
            let parts = mark.parts.iter().flat_map(|part| marked.get(part.clone()).unwrap_or(&[]));
            Ok((next, Some(parts.copied().collect())))
        }
        // What is wrong with the disk shows when it is used.
        disk::ImpReadyAfterRead::ReadFailed { next, .. } => Ok((next, None)),
        disk::ImpReadyAfterRead::ChannelClosed(_) => Err(AccessError::ServerEnded),
    }
}

async fn open_channel(namespace: &RefCell<Namespace>, path: &str) -> Result<Channel, AccessError> {
    let (importer, exporter) = disk::new_channel()?;
    namespace.borrow_mut().bind(path, exporter)?;
    match wait_async(importer, DISK_LIMIT).await? {
        disk::ImpStart::Success { next } => Ok(next),
        disk::ImpStart::Refused { .. } => Err(AccessError::Name(NameError::DeviceError)),
        disk::ImpStart::ChannelClosed(_) => Err(AccessError::ServerEnded),
    }
}
