//! The disk's driver alone: reads over a channel to it, without a file system.
//!
//! Deliberately not here: writes, which would destroy what is on the disk.

use alloc::vec::Vec;

use client::access::AccessError;
use client::answer::{DISK_LIMIT, wait};
use client::namespace::Namespace;
use contracts::directory::NameError;
use contracts::disk::{self, states};
use sip::exheap::ExVec;
use sip::time::monotonic;

use crate::tasks::Random;

const FAILED: AccessError = AccessError::Name(NameError::DeviceError);

/// An open disk, and a block that each read is lent.
pub struct Device {
    channel: disk::Imp<states::Ready>,
    block: ExVec<u8>,
    size_bytes: u64,
}

impl Device {
    /// Opens the disk at the path, for reads of this many bytes.
    pub fn open(namespace: &mut Namespace, path: &str, bytes: usize) -> Result<Device, AccessError> {
        let (importer, exporter) = disk::new_channel()?;
        namespace.bind(path, exporter)?;
        let channel = match wait(importer, DISK_LIMIT)? {
            disk::ImpStart::Success { next } => next,
            disk::ImpStart::Refused { .. } => return Err(FAILED),
            disk::ImpStart::ChannelClosed(_) => return Err(AccessError::ServerEnded),
        };
        match wait(channel.get_info(), DISK_LIMIT)? {
            disk::ImpReadyAfterGetInfo::Info { size_bytes, next, .. } => {
                Ok(Device { channel: next, block: ExVec::new(bytes)?, size_bytes })
            }
            disk::ImpReadyAfterGetInfo::ChannelClosed(_) => Err(AccessError::ServerEnded),
        }
    }

    fn read(self, offset: u64) -> Result<Device, AccessError> {
        let Device { channel, block, size_bytes } = self;
        let bytes = u32::try_from(block.len()).map_err(|_| FAILED)?;
        match wait(channel.read(block, offset, bytes), DISK_LIMIT)? {
            disk::ImpReadyAfterRead::ReadDone { data, next } => Ok(Device { channel: next, block: data, size_bytes }),
            disk::ImpReadyAfterRead::ReadFailed { .. } => Err(FAILED),
            disk::ImpReadyAfterRead::ChannelClosed(_) => Err(AccessError::ServerEnded),
        }
    }

    /// Reads at each place; returns the nanoseconds that it took.
    fn read_all(mut self, places: &[u64]) -> Result<(Device, u64), AccessError> {
        let begin = monotonic();
        for place in places {
            self = self.read(*place)?;
        }
        Ok((self, monotonic() - begin))
    }

    /// Reads the first `size_bytes` in order, then as many blocks of them at random. Returns the number of blocks, and
    /// the nanoseconds of either.
    pub fn measure(self, size_bytes: u64) -> Result<(u64, [u64; 2]), AccessError> {
        let bytes = self.block.len() as u64;
        let blocks = size_bytes.min(self.size_bytes) / bytes;
        let mut random = Random(0x2007);
        let in_order: Vec<u64> = (0..blocks).map(|block| block * bytes).collect();
        let at_random: Vec<u64> = (0..blocks).map(|_| random.below(blocks) * bytes).collect();
        let (device, in_order) = self.read_all(&in_order)?;
        let (_, at_random) = device.read_all(&at_random)?;
        Ok((blocks, [in_order, at_random]))
    }
}
