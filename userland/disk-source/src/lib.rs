//! The way to a disk's driver: several channels, so that several transfers are under way at once.
//!
//! When the driver ends, transfers under way are asked for once more: that opens the disk again, which waits for the
//! driver's restart, so nobody above notices. What caches hold stays good, because the disk must prove to be the
//! same. A block comes home only when the device is done with it, so nothing that was to be written is lost, and a
//! transfer that is asked for again cannot be overtaken by itself. Who formats or mends a disk does not go on with
//! another driver: by then the disk may hold something else.
//!
//! A request that the driver has not answered after a while ends with [`DiskError::NoAnswer`], and the log says so. Its
//! channel is given up, and with it the block that was lent, which the kernel frees when the driver gives it back; the
//! disk is opened again for the next request, which fails as well while the driver takes no new clients.
//!
//! Key types: [`DiskSource`], [`Mark`]. [`channels`] hands out the channels, [`opening`] opens them. Deliberately not
//! here: what is on the disk.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod channels;
mod opening;

use alloc::rc::Rc;
use core::future::Future;
use core::ops::Range;

use block_source::{BlockSource, DiskError};
use client::access::AccessError;
use client::answer::{DISK_LIMIT, within};
use client::namespace::Namespace;
use contracts::disk::{self, states};
use contracts::disk_events;
use sip::channel::Closed;
use sip::executor;
use sip::exheap::ExVec;

use channels::Channels;

type Channel = disk::Imp<states::Ready>;
type Events = disk_events::Imp<disk_events::states::Ready>;
type Transferred = (Option<ExVec<u8>>, Result<(), DiskError>);

/// How often one transfer is asked for: a driver that ends at each is broken.
const ATTEMPTS: u32 = 5;
const NS_PER_S: u64 = 1_000_000_000;

/// By which bytes a disk is known again after its driver was started again.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    /// Where on the disk they are.
    pub offset: u64,
    /// Which of the bytes from there on stay as they are while the disk is written to; none where any disk of the
    /// same size will do.
    pub parts: &'static [Range<usize>],
}

/// A disk behind its driver. To be used in `sip::executor::block_on`.
pub struct DiskSource {
    channels: Rc<Channels>,
}

impl DiskSource {
    /// Opens the disk at this path `channels` times. With a mark, the end of the driver goes unnoticed if it is
    /// started again and has a disk of the same mark; without one, everything fails from then on. A disk of another
    /// mark, or another medium, ends the process.
    ///
    /// # Errors
    /// There is no such disk, or this program may not have it.
    pub async fn open(
        namespace: Namespace,
        path: &str,
        channels: usize,
        mark: Option<Mark>,
    ) -> Result<DiskSource, AccessError> {
        Ok(DiskSource { channels: Channels::open(namespace, path, channels, mark).await? })
    }

    /// Moves bytes between the disk and a block, with as many drivers as it takes.
    async fn transfer(&self, direction: Direction, offset: u64, block: ExVec<u8>, bytes: usize) -> Transferred {
        let Ok(count) = u32::try_from(bytes) else { return (Some(block), Err(DiskError::Short)) };
        let mut block = block;
        for _ in 0..ATTEMPTS {
            let Some((channel, opened)) = self.channels.acquire().await else { break };
            let answer = match direction {
                Direction::Read => read(&self.channels, channel, opened, block, offset, count).await,
                Direction::Write => write(&self.channels, channel, opened, block, offset, count).await,
            };
            block = match answer {
                Answer::Done(block, result) => return (Some(block), result),
                Answer::Again(Some(block)) => block,
                Answer::Again(None) => return (None, Err(DiskError::Gone)),
                Answer::None => return (None, Err(DiskError::NoAnswer)),
            };
        }
        (Some(block), Err(DiskError::Gone))
    }
}

#[derive(Clone, Copy)]
enum Direction {
    Read,
    Write,
}

/// What came of a transfer on one channel.
enum Answer {
    /// The driver answered.
    Done(ExVec<u8>, Result<(), DiskError>),
    /// The driver ended; the block came home.
    Again(Option<ExVec<u8>>),
    /// Nothing came within the limit; the driver still has the block.
    None,
}

async fn read(own: &Channels, channel: Channel, opened: u64, block: ExVec<u8>, offset: u64, count: u32) -> Answer {
    let Some(answer) = within(DISK_LIMIT, channel.read(block, offset, count).receive_async()).await else {
        own.stalls(opened);
        return Answer::None;
    };
    match answer {
        disk::ImpReadyAfterRead::ReadDone { data, next } => {
            own.release(next, opened);
            Answer::Done(data, Ok(()))
        }
        disk::ImpReadyAfterRead::ReadFailed { data, error, next } => {
            own.release(next, opened);
            Answer::Done(data, Err(failed(error)))
        }
        disk::ImpReadyAfterRead::ChannelClosed(closed) => {
            own.lose(opened);
            Answer::Again(home(closed))
        }
    }
}

async fn write(own: &Channels, channel: Channel, opened: u64, block: ExVec<u8>, offset: u64, count: u32) -> Answer {
    let Some(answer) = within(DISK_LIMIT, channel.write(block, offset, count).receive_async()).await else {
        own.stalls(opened);
        return Answer::None;
    };
    match answer {
        disk::ImpReadyAfterWrite::WriteDone { data, next } => {
            own.release(next, opened);
            Answer::Done(data, Ok(()))
        }
        disk::ImpReadyAfterWrite::WriteFailed { data, error, next } => {
            own.release(next, opened);
            Answer::Done(data, Err(failed(error)))
        }
        disk::ImpReadyAfterWrite::ChannelClosed(closed) => {
            own.lose(opened);
            Answer::Again(home(closed))
        }
    }
}

/// The block that was lent to the driver that ended.
fn home(mut closed: Closed) -> Option<ExVec<u8>> {
    closed.take_home().into_iter().find_map(|block| block.into_vec::<u8>().ok())
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
        self.channels.shape().size_bytes
    }

    fn sector_bytes(&self) -> usize {
        self.channels.shape().sector_bytes as usize
    }

    fn is_read_only(&self) -> bool {
        self.channels.shape().is_read_only
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
            let Some((channel, opened)) = self.channels.acquire().await else { break };
            let Some(answer) = within(DISK_LIMIT, channel.flush().receive_async()).await else {
                self.channels.stalls(opened);
                return Err(DiskError::NoAnswer);
            };
            match answer {
                disk::ImpReadyAfterFlush::Flushed { next } => {
                    self.channels.release(next, opened);
                    return Ok(());
                }
                disk::ImpReadyAfterFlush::FlushFailed { error, next } => {
                    self.channels.release(next, opened);
                    return Err(failed(error));
                }
                disk::ImpReadyAfterFlush::ChannelClosed(_) => self.channels.lose(opened),
            }
        }
        Err(DiskError::Gone)
    }

    fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        drop(executor::spawn(task));
    }

    fn now_s(&self) -> u32 {
        // Times on volumes end in 2106.
        u32::try_from(sip::time::wall() / NS_PER_S).unwrap_or(u32::MAX)
    }
}
