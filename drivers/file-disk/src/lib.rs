//! The driver of a disk: the `Disk` contract for many clients over one device.
//!
//! Each client is a task; its transfers wait in [`transfers`], so that one client's slow read holds
//! nobody up. A client's block is what the device reads into: nothing is copied here. Deliberately
//! not here: caching, and any knowledge of what is on the disk.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod transfers;

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;

use contracts::disk::{self, DiskError, ExpReady, states};
use contracts::service_provider::{self, ConnectError, StartError};
use contracts::{disk_events, report};
use sip::device::{Device, DeviceKind, DeviceOperation};
use sip::exheap::{ExVec, Lent};

use transfers::Transfers;

sip::startup!();

/// Bytes that offsets and counts are multiples of.
const SECTOR_BYTES: u32 = 512;

/// What the clients are told of the disk.
#[derive(Clone, Copy)]
struct Shape {
    size_bytes: u64,
    read_only: bool,
}

impl Shape {
    /// Checks a transfer against the disk and the block.
    fn check(self, offset: u64, count: u32, block_bytes: usize) -> Result<(), DiskError> {
        let sector = u64::from(SECTOR_BYTES);
        if !offset.is_multiple_of(sector) || !count.is_multiple_of(SECTOR_BYTES) {
            return Err(DiskError::NotAligned);
        }
        let end = offset.checked_add(count.into()).filter(|&end| end <= self.size_bytes);
        if end.is_none() || count as usize > block_bytes { Err(DiskError::OutOfRange) } else { Ok(()) }
    }
}

/// Serves the disk until the one who hands over clients is gone.
pub fn main(startup: Startup) -> i32 {
    let (transfers, shape) = match open() {
        Ok(opened) => opened,
        Err(explanation) => {
            match ExVec::from_slice(explanation.as_bytes()) {
                // Whoever started this process tells people.
                Ok(block) => drop(startup.clients.not_ready(StartError::Missing, block)),
                Err(_) => report::error(format_args!("{explanation}")),
            }
            return 1;
        }
    };
    match sip::executor::block_on(accept(transfers, shape, startup.clients.ready())) {
        Ok(()) => 0,
        Err(status) => {
            report::error(format_args!("cannot wait for clients: {}", status.text()));
            1
        }
    }
}

fn open() -> Result<(Arc<Transfers>, Shape), String> {
    let refused = |status: sip::Status| format!("the disk cannot be opened: {}", status.text());
    let device = Device::open(devices::DISK as usize).map_err(refused)?;
    let description = device.describe().map_err(refused)?;
    if description.kind != DeviceKind::Disk {
        return Err(String::from("the device is no disk; name a disk for it in the system manifest"));
    }
    let shape = Shape { size_bytes: description.bytes, read_only: description.read_only };
    let transfers = Transfers::start(device).map_err(refused)?;
    Ok((transfers, shape))
}

async fn accept(
    transfers: Arc<Transfers>,
    shape: Shape,
    mut provider: service_provider::Exp<service_provider::states::Ready>,
) {
    while let service_provider::ExpReady::Connect { path, rest, endpoint, next } = provider.receive_async().await {
        if (rest as usize) < path.len() {
            provider = next.nack(ConnectError::NotFound, endpoint);
            continue;
        }
        provider = match endpoint.downcast::<disk::Exp<states::Start>>() {
            Ok(client) => {
                sip::executor::spawn(serve(transfers.clone(), shape, client.success()));
                next.ack()
            }
            Err(endpoint) => next.nack(ConnectError::WrongContract, endpoint),
        };
    }
}

/// Serves one client until it closes its end.
async fn serve(transfers: Arc<Transfers>, shape: Shape, mut client: disk::Exp<states::Ready>) {
    // The medium of a file never changes; holding the endpoint is what tells the client that the
    // driver lives, and letting it go with the client is what keeps the endpoints from adding up.
    let mut events: Option<disk_events::Exp<disk_events::states::Ready>> = None;
    loop {
        client = match client.receive_async().await {
            ExpReady::GetInfo { next } => next.info(shape.size_bytes, SECTOR_BYTES, shape.read_only),
            ExpReady::Read { data, offset, count, next } => match shape.check(offset, count, data.len()) {
                Err(error) => next.read_failed(data, error),
                Ok(()) => match transfer(&transfers, DeviceOperation::Read, offset, data, count).await {
                    Some((data, Ok(()))) => next.read_done(data),
                    Some((data, Err(error))) => next.read_failed(data, error),
                    None => return,
                },
            },
            ExpReady::Write { data, next, .. } if shape.read_only => next.write_failed(data, DiskError::ReadOnly),
            ExpReady::Write { data, offset, count, next } => match shape.check(offset, count, data.len()) {
                Err(error) => next.write_failed(data, error),
                Ok(()) => match transfer(&transfers, DeviceOperation::Write, offset, data, count).await {
                    Some((data, Ok(()))) => next.write_done(data),
                    Some((data, Err(error))) => next.write_failed(data, error),
                    None => return,
                },
            },
            ExpReady::Flush { next } => match flush(&transfers, shape).await {
                Ok(()) => next.flushed(),
                Err(error) => next.flush_failed(error),
            },
            ExpReady::Notify { events: added, next } => {
                events = Some(added);
                next.notifying()
            }
            ExpReady::ChannelClosed(_) => {
                drop(events);
                return;
            }
        };
    }
}

/// Moves `count` bytes between the disk and the start of a client's block. Nothing comes back where the
/// block is no longer the client's: then the client is gone.
async fn transfer(
    transfers: &Transfers,
    operation: DeviceOperation,
    offset: u64,
    data: Lent<ExVec<u8>>,
    count: u32,
) -> Option<(Lent<ExVec<u8>>, Result<(), DiskError>)> {
    if count == 0 {
        return Some((data, Ok(())));
    }
    let address = data.as_ptr() as usize;
    let (block, result) = match transfers.perform(operation, offset, data, address, count as usize).await {
        Ok(completion) if completion.result.is_ok() && completion.bytes == count as usize => (completion.block, Ok(())),
        Ok(completion) => (completion.block, Err(DiskError::DeviceError)),
        Err(error) => (error.block, Err(DiskError::Exhausted)),
    };
    Lent::claim(block).ok().map(|data| (data, result))
}

async fn flush(transfers: &Transfers, shape: Shape) -> Result<(), DiskError> {
    if shape.read_only {
        return Ok(());
    }
    // The device takes a block with each operation, also with one that moves no bytes.
    let block = ExVec::<u8>::new(1).map_err(|_| DiskError::Exhausted)?;
    let address = block.as_ptr() as usize;
    match transfers.perform(DeviceOperation::Flush, 0, block, address, 0).await {
        Ok(completion) => completion.result.map_err(|_| DiskError::DeviceError),
        Err(_) => Err(DiskError::Exhausted),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfers_stay_within_the_disk_and_the_block() {
        let shape = Shape { size_bytes: 4096, read_only: true };
        assert_eq!(shape.check(512, 1024, 1024), Ok(()));
        assert_eq!(shape.check(0, 0, 0), Ok(()));
        assert_eq!(shape.check(3584, 1024, 1024), Err(DiskError::OutOfRange));
        assert_eq!(shape.check(u64::MAX - 511, 512, 1024), Err(DiskError::OutOfRange));
        assert_eq!(shape.check(0, 1024, 1023), Err(DiskError::OutOfRange));
        assert_eq!(shape.check(100, 512, 1024), Err(DiskError::NotAligned));
        assert_eq!(shape.check(0, 100, 1024), Err(DiskError::NotAligned));
    }
}
