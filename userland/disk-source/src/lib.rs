//! Client of a disk driver: several channels, so that several transfers are in flight at once.
//!
//! When the driver ends, transfers in flight are retried: that reopens the disk, which waits for the driver's
//! restart, so that the caller does not notice. Caches stay valid, because the disk must prove to be the same. A
//! block comes back only when the device is done with it, so no write is lost, and a retried transfer cannot be
//! overtaken by its first attempt. Formatting and repair do not continue with a restarted driver: by then the disk
//! may hold something else.
//!
//! A request that the driver does not answer in time ends with [`DiskError::NoAnswer`], and is logged. Its channel is
//! abandoned, and with it the lent block, which the kernel frees when the driver returns it; the disk is opened again
//! for the next request, which fails as well while the driver accepts no new clients.
//!
//! Key types: [`DiskSource`], [`Mark`]; and, shared with `drivers/partitions`: [`Channels`], which hands out channels
//! and reopens the disk by its [`Open`], with attempts at requests. Deliberately not here: the content of the disk.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod channels;
mod opening;
mod request;

use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::future::Future;
use core::ops::Range;

use block_source::{BlockSource, DiskError};
use client::access::AccessError;
use client::answer::{DISK_LIMIT, within};
use client::namespace::{Namespace, TIMEOUT_MS};
use contracts::disk::{self, states};
use contracts::disk_events;
use sip::exheap::ExVec;
use sip::{Deadline, executor};
use stdio::report;

pub use channels::{Acquired, Channels, Open};
pub use opening::{Info, get_info, open_channel, until_open};
use opening::{Opened, Shape, open_all};
pub use request::{Answer, Direction, Flushed};

/// An open disk.
pub type Channel = disk::Imp<states::Ready>;

type Events = disk_events::Imp<disk_events::states::Ready>;
type Transferred = (Option<ExVec<u8>>, Result<(), DiskError>);

/// Maximum attempts per request: a driver that ends at each of them is broken.
pub const ATTEMPTS: u32 = 5;
/// Maximum channels of a [`DiskSource`].
const MAX_CHANNELS: usize = 64;
const NS_PER_S: u64 = 1_000_000_000;

/// Bytes that identify a disk after its driver was restarted.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    /// Offset on the disk.
    pub offset: u64,
    /// Ranges, relative to the offset, that never change while the disk is written to; empty if any disk of the same
    /// size will do.
    pub parts: &'static [Range<usize>],
}

/// A disk behind its driver. For use in `sip::executor::block_on`.
pub struct DiskSource {
    disk: Rc<Disk>,
}

struct Disk {
    namespace: RefCell<Namespace>,
    channels: Channels,
    count: usize,
    mark: Option<Mark>,
    shape: Shape,
}

impl DiskSource {
    /// Opens the disk at this path with this many channels. With a mark, an end of the driver goes unnoticed if it is
    /// restarted and has a disk of the same mark; without one, everything fails from then on. A disk of another mark,
    /// or another medium, ends the process.
    ///
    /// # Errors
    ///
    /// There is no such disk, or this program may not open it.
    pub async fn open(
        namespace: Namespace,
        path: &str,
        channels: usize,
        mark: Option<Mark>,
    ) -> Result<DiskSource, AccessError> {
        let namespace = RefCell::new(namespace);
        let count = channels.clamp(1, MAX_CHANNELS);
        let deadline = Deadline::after_ms(TIMEOUT_MS);
        let Opened { channels, events, shape } =
            until_open(deadline, || open_all(&namespace, path, count, mark)).await?;
        let disk = Rc::new(Disk { namespace, channels: Channels::new(path, count), count, mark, shape });
        if let Some(opening) = disk.channels.offer(channels) {
            disk.watch(events, opening);
        }
        Ok(DiskSource { disk })
    }

    /// Transfers bytes between the disk and a block, across restarts of the driver.
    async fn transfer(&self, direction: Direction, offset: u64, block: ExVec<u8>, bytes: usize) -> Transferred {
        let Ok(count) = u32::try_from(bytes) else { return (Some(block), Err(DiskError::Short)) };
        let channels = &self.disk.channels;
        let mut block = block;
        for _ in 0..ATTEMPTS {
            let Some(acquired) = channels.acquire(&self.disk).await else { break };
            block = match channels.transfer(acquired, direction, offset, block, count).await {
                Answer::Done(block, result) => return (Some(block), result.map_err(failed)),
                Answer::Ended(Some(block)) => block,
                Answer::Ended(None) => return (None, Err(DiskError::Gone)),
                Answer::NoAnswer => return (None, Err(DiskError::NoAnswer)),
            };
        }
        (Some(block), Err(DiskError::Gone))
    }
}

impl Disk {
    /// Spawns a task that handles the end of this opening's driver, and ends the process when the medium changes: the
    /// caches are invalid then. A disk without a mark only fails.
    fn watch(self: &Rc<Disk>, events: Events, opening: u64) {
        let disk = Rc::clone(self);
        drop(executor::spawn(async move {
            match events.receive_async().await {
                disk_events::ImpReady::Changed { .. } if disk.mark.is_some() => disk.is_another(),
                disk_events::ImpReady::Changed { .. } | disk_events::ImpReady::ChannelClosed(_) => {
                    disk.channels.lose(opening);
                }
            }
        }));
    }

    /// Ends the process, so that the disk is mounted again.
    fn is_another(&self) -> ! {
        report::error(format_args!("{}: the disk was replaced; remounting", self.channels.path()));
        sip::process::exit(1)
    }
}

impl Open for Rc<Disk> {
    async fn open(&self, opening: u64) -> Option<Vec<Channel>> {
        self.mark?;
        let deadline = Deadline::after_ms(TIMEOUT_MS);
        let path = self.channels.path();
        let again = until_open(deadline, || open_all(&self.namespace, path, self.count, self.mark));
        let Opened { channels, events, shape } = within(DISK_LIMIT, again).await?.ok()?;
        if shape != self.shape {
            self.is_another();
        }
        self.watch(events, opening);
        Some(channels)
    }

    async fn open_one(&self) -> Option<Channel> {
        open_channel(&self.namespace, self.channels.path()).await.ok()
    }
}

fn failed(error: disk::DiskError) -> DiskError {
    match error {
        disk::DiskError::ReadOnly => DiskError::ReadOnly,
        disk::DiskError::Exhausted => DiskError::NoMemory,
        disk::DiskError::NotAligned | disk::DiskError::OutOfRange => DiskError::Short,
        other => DiskError::Failed(other as u32),
    }
}

impl BlockSource for DiskSource {
    type Buffer = ExVec<u8>;

    fn size_bytes(&self) -> u64 {
        self.disk.shape.info.size_bytes
    }

    fn sector_bytes(&self) -> usize {
        self.disk.shape.info.sector_bytes as usize
    }

    fn is_read_only(&self) -> bool {
        self.disk.shape.info.read_only
    }

    fn allocate(&self, bytes: usize) -> Result<ExVec<u8>, DiskError> {
        ExVec::new(bytes).map_err(|_| DiskError::NoMemory)
    }

    async fn read(&self, offset: u64, buffer: ExVec<u8>, bytes: usize) -> Transferred {
        self.transfer(Direction::Read, offset, buffer, bytes).await
    }

    async fn write(&self, offset: u64, buffer: ExVec<u8>, bytes: usize) -> Transferred {
        self.transfer(Direction::Write, offset, buffer, bytes).await
    }

    async fn flush(&self) -> Result<(), DiskError> {
        for _ in 0..ATTEMPTS {
            let Some(acquired) = self.disk.channels.acquire(&self.disk).await else { break };
            match self.disk.channels.flush(acquired).await {
                Flushed::Done(result) => return result.map_err(failed),
                Flushed::Ended => {}
                Flushed::NoAnswer => return Err(DiskError::NoAnswer),
            }
        }
        Err(DiskError::Gone)
    }

    fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        drop(executor::spawn(task));
    }

    fn now_s(&self) -> u32 {
        // Timestamps on volumes end in 2106.
        u32::try_from(sip::time::wall() / NS_PER_S).unwrap_or(u32::MAX)
    }
}
