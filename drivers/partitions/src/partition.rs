//! One partition: its requests, relocated to its offset on the disk and lent on.
//!
//! Reads and writes during which the disk's driver ended are retried, in the order of arrival
//! if they overlap (crate `disk-server` ensures that): they are idempotent.

use alloc::rc::Rc;
use core::cell::Cell;

use client::answer::{DISK_LIMIT, within};
use contracts::disk::{self, DiskError};
use disk_server::{Direction, Medium, Shape, Transferred};
use partition_table::Partition;
use sip::channel::Closed;
use sip::exheap::{ExVec, Lent};

use crate::base::BaseDisk;
use crate::way::{Acquired, Channel, Info};

/// Maximum attempts per request: a driver that ends each time is broken.
const ATTEMPTS: u32 = 5;

/// A partition as a medium.
pub struct PartitionMedium {
    base: Rc<BaseDisk>,
    first_byte: u64,
    shape: Shape,
    /// Set when the partition is no longer in the disk's table.
    ended: Cell<bool>,
}

/// Outcome of one attempt.
enum Answer {
    /// The driver has answered, or the client is gone.
    Done(Transferred),
    /// The driver has ended; the block has returned.
    Again(Lent<ExVec<u8>>),
}

impl PartitionMedium {
    /// Creates the medium of a partition.
    pub fn new(base: &Rc<BaseDisk>, info: Info, partition: &Partition) -> PartitionMedium {
        let shape = Shape {
            size_bytes: partition.bytes,
            sector_bytes: info.sector_bytes,
            read_only: info.read_only || partition.read_only,
        };
        PartitionMedium { base: Rc::clone(base), first_byte: partition.first_byte, shape, ended: Cell::new(false) }
    }

    /// Ends the partition: each client loses its channel at its next request.
    pub fn end(&self) {
        self.ended.set(true);
    }

    /// Sends the request to the driver once, through a channel used by this request alone.
    async fn ask(
        &self,
        Acquired { channel, opening }: Acquired,
        direction: Direction,
        offset: u64,
        data: Lent<ExVec<u8>>,
        count: u32,
    ) -> Answer {
        use disk::{ImpReadyAfterRead as Read, ImpReadyAfterWrite as Write};
        let offset = self.first_byte + offset;
        let (data, result, next) = match direction {
            Direction::Read => match within(DISK_LIMIT, channel.read(data, offset, count).receive_async()).await {
                Some(Read::ReadDone { data, next }) => (data, Ok(()), next),
                Some(Read::ReadFailed { data, error, next }) => (data, Err(error), next),
                Some(Read::ChannelClosed(closed)) => return self.came_home(closed, opening),
                None => return self.unanswered(opening),
            },
            Direction::Write => match within(DISK_LIMIT, channel.write(data, offset, count).receive_async()).await {
                Some(Write::WriteDone { data, next }) => (data, Ok(()), next),
                Some(Write::WriteFailed { data, error, next }) => (data, Err(error), next),
                Some(Write::ChannelClosed(closed)) => return self.came_home(closed, opening),
                None => return self.unanswered(opening),
            },
        };
        self.base.release(next, opening);
        // The loan has ended if its lender is gone meanwhile.
        Answer::Done(Transferred { data: Lent::claim(data).ok(), result })
    }

    fn came_home(&self, mut closed: Closed, opening: u64) -> Answer {
        self.base.lose(opening);
        let block = closed.take_home().into_iter().next().and_then(|block| block.into_vec().ok());
        match block.map(Lent::claim) {
            Some(Ok(data)) => Answer::Again(data),
            _ => Answer::Done(Transferred { data: None, result: Err(DiskError::DeviceError) }),
        }
    }

    /// The request timed out, and the driver keeps the block; later requests use other channels.
    fn unanswered(&self, opening: u64) -> Answer {
        self.base.stalls(opening);
        Answer::Done(Transferred { data: None, result: Err(DiskError::DeviceError) })
    }

    async fn ask_flush(&self, channel: Channel, opening: u64) -> Option<Result<(), DiskError>> {
        match within(DISK_LIMIT, channel.flush().receive_async()).await {
            Some(disk::ImpReadyAfterFlush::Flushed { next }) => {
                self.base.release(next, opening);
                Some(Ok(()))
            }
            Some(disk::ImpReadyAfterFlush::FlushFailed { error, next }) => {
                self.base.release(next, opening);
                Some(Err(error))
            }
            Some(disk::ImpReadyAfterFlush::ChannelClosed(_)) => {
                self.base.lose(opening);
                None
            }
            None => {
                self.base.stalls(opening);
                Some(Err(DiskError::DeviceError))
            }
        }
    }
}

impl Medium for PartitionMedium {
    fn shape(&self) -> Shape {
        self.shape
    }

    async fn transfer(
        &self,
        direction: Direction,
        offset: u64,
        mut data: Lent<ExVec<u8>>,
        bytes: usize,
    ) -> Transferred {
        let Ok(count) = u32::try_from(bytes) else {
            return Transferred { data: Some(data), result: Err(DiskError::OutOfRange) };
        };
        for _ in 0..ATTEMPTS {
            let Some(acquired) = self.base.acquire().await else { break };
            if self.ended.get() {
                self.base.release(acquired.channel, acquired.opening);
                return Transferred { data: None, result: Err(DiskError::DeviceError) };
            }
            match self.ask(acquired, direction, offset, data, count).await {
                Answer::Done(transferred) => return transferred,
                Answer::Again(back) => data = back,
            }
        }
        Transferred { data: Some(data), result: Err(DiskError::DeviceError) }
    }

    async fn flush(&self) -> Result<(), DiskError> {
        for _ in 0..ATTEMPTS {
            let Some(Acquired { channel, opening }) = self.base.acquire().await else { break };
            if self.ended.get() {
                self.base.release(channel, opening);
                break;
            }
            if let Some(result) = self.ask_flush(channel, opening).await {
                return result;
            }
        }
        Err(DiskError::DeviceError)
    }
}
