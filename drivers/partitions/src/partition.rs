//! One partition: its requests, relocated to its offset on the disk and lent on.
//!
//! Reads and writes during which the disk's driver ended are retried, in the order of arrival
//! if they overlap (crate `disk-server` ensures that): they are idempotent.

use alloc::rc::Rc;
use core::cell::Cell;

use contracts::disk::DiskError;
use disk_server::{Direction, Medium, Shape, Transferred};
use disk_source::{ATTEMPTS, Answer, Flushed, Info};
use partition_table::Partition;
use sip::exheap::{ExVec, Lent};

use crate::base::BaseDisk;

/// A partition as a medium.
pub struct PartitionMedium {
    base: Rc<BaseDisk>,
    first_byte: u64,
    shape: Shape,
    /// Set when the partition is no longer in the disk's table.
    ended: Cell<bool>,
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
        let driver_direction = match direction {
            Direction::Read => disk_source::Direction::Read,
            Direction::Write => disk_source::Direction::Write,
        };
        for _ in 0..ATTEMPTS {
            let Some(acquired) = self.base.acquire().await else { break };
            if self.ended.get() {
                self.base.channels().release(acquired.channel, acquired.opening);
                return Transferred { data: None, result: Err(DiskError::DeviceError) };
            }
            let offset = self.first_byte + offset;
            let block = match self.base.channels().transfer(acquired, driver_direction, offset, data, count).await {
                // The loan has ended if its lender has closed meanwhile.
                Answer::Done(block, result) => return Transferred { data: Lent::claim(block).ok(), result },
                Answer::Ended(block) => block,
                Answer::NoAnswer => None,
            };
            match block.map(Lent::claim) {
                Some(Ok(back)) => data = back,
                _ => return Transferred { data: None, result: Err(DiskError::DeviceError) },
            }
        }
        Transferred { data: Some(data), result: Err(DiskError::DeviceError) }
    }

    async fn flush(&self) -> Result<(), DiskError> {
        for _ in 0..ATTEMPTS {
            let Some(acquired) = self.base.acquire().await else { break };
            if self.ended.get() {
                self.base.channels().release(acquired.channel, acquired.opening);
                break;
            }
            match self.base.channels().flush(acquired).await {
                Flushed::Done(result) => return result,
                Flushed::Ended => {}
                Flushed::NoAnswer => break,
            }
        }
        Err(DiskError::DeviceError)
    }
}
