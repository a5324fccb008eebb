//! Reading a partition table through a channel to the disk's driver.

use alloc::vec::Vec;
use core::cell::Cell;

use client::access::AccessError;
use client::answer::{DISK_LIMIT, wait_async};
use contracts::directory::NameError;
use contracts::disk;
use disk_source::{Channel, Info, get_info};
use partition_table::{Source, Unreadable};
use sip::exheap::ExVec;

/// A channel for reading a partition table.
pub struct TableSource {
    channel: Cell<Option<Channel>>,
    info: Info,
    /// First error that makes the result meaningless.
    error: Cell<Option<AccessError>>,
}

impl TableSource {
    /// Queries the disk's properties.
    pub async fn new(channel: Channel) -> Result<TableSource, AccessError> {
        let (channel, info) = get_info(channel).await?;
        Ok(TableSource { channel: Cell::new(Some(channel)), info, error: Cell::new(None) })
    }

    /// Returns the disk's properties.
    pub fn info(&self) -> Info {
        self.info
    }

    /// Returns the channel, if the table read is that of the disk.
    pub fn finish(self) -> Result<Channel, AccessError> {
        match (self.error.get(), self.channel.take()) {
            (None, Some(channel)) => Ok(channel),
            (error, _) => Err(error.unwrap_or(AccessError::ServerEnded)),
        }
    }
}

impl Source for TableSource {
    fn size_bytes(&self) -> u64 {
        self.info.size_bytes
    }

    fn sector_bytes(&self) -> u32 {
        self.info.sector_bytes
    }

    async fn read(&self, offset: u64, bytes: usize) -> Result<Vec<u8>, Unreadable> {
        let Some(channel) = self.channel.take() else { return Err(Unreadable) };
        // A table has at most 1 MiB.
        let (block, count) = match (ExVec::<u8>::new(bytes), u32::try_from(bytes)) {
            (Ok(block), Ok(count)) => (block, count),
            _ => {
                self.error.set(Some(AccessError::Name(NameError::Exhausted)));
                return Err(Unreadable);
            }
        };
        let answer = wait_async(channel.read(block, offset, count), DISK_LIMIT).await.map_err(|error| {
            self.error.set(Some(error));
            Unreadable
        })?;
        match answer {
            disk::ImpReadyAfterRead::ReadDone { data, next } => {
                self.channel.set(Some(next));
                Ok(data.to_vec())
            }
            disk::ImpReadyAfterRead::ReadFailed { next, .. } => {
                self.channel.set(Some(next));
                Err(Unreadable)
            }
            disk::ImpReadyAfterRead::ChannelClosed(_) => {
                self.error.set(Some(AccessError::ServerEnded));
                Err(Unreadable)
            }
        }
    }
}
