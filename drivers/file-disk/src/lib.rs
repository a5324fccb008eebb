//! Driver of a disk of the hosted machine: one device, served by crate `disk-server`.
//!
//! Key type: `transfers::Transfers`, the operations in flight. Neighbours: `disk-server` (the clients).
//! Deliberately not here: caching, and any knowledge of the disk's contents.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod transfers;

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;

use contracts::disk::DiskError;
use disk_server::{Direction, Medium, SECTOR_BYTES, Shape, Transferred};
use sip::Status;
use sip::device::{Declared, Device, DeviceKind, DeviceOperation};
use sip::exheap::{ExVec, Lent};

use transfers::Transfers;

sip::startup!();

/// A disk of the machine.
struct FileDisk {
    transfers: Arc<Transfers>,
    shape: Shape,
}

/// Serves the disk until the provider channel closes.
pub fn main(startup: Startup) -> i32 {
    disk_server::run(startup.clients, || open(&startup.disk))
}

fn open(disk: &Declared<Device>) -> Result<FileDisk, String> {
    let refused = |status: Status| format!("the disk cannot be opened: {}", status.text());
    let device = disk.open_when_free().map_err(refused)?;
    let description = device.describe().map_err(refused)?;
    if description.kind != DeviceKind::Disk {
        return Err(String::from("the device is not a disk; declare one in the system manifest"));
    }
    let shape = Shape { size_bytes: description.bytes, sector_bytes: SECTOR_BYTES, read_only: description.read_only };
    let transfers = Transfers::start(device).map_err(refused)?;
    Ok(FileDisk { transfers, shape })
}

impl Medium for FileDisk {
    fn shape(&self) -> Shape {
        self.shape
    }

    async fn transfer(&self, direction: Direction, offset: u64, data: Lent<ExVec<u8>>, bytes: usize) -> Transferred {
        let operation = match direction {
            Direction::Read => DeviceOperation::Read,
            Direction::Write => DeviceOperation::Write,
        };
        let address = data.as_ptr() as usize;
        let (data, result) = match self.transfers.perform(operation, offset, data, address, bytes).await {
            Ok(completion) if completion.result.is_ok() && completion.bytes == bytes => {
                (completion.into_loan(), Ok(()))
            }
            Ok(completion) => (completion.into_loan(), Err(DiskError::DeviceError)),
            Err(error) => (Lent::claim(error.block), Err(DiskError::Exhausted)),
        };
        Transferred { data: data.ok(), result }
    }

    async fn flush(&self) -> Result<(), DiskError> {
        // The device requires a block with each operation, even one that transfers nothing.
        let block = ExVec::<u8>::new(1).map_err(|_| DiskError::Exhausted)?;
        let address = block.as_ptr() as usize;
        match self.transfers.perform(DeviceOperation::Flush, 0, block, address, 0).await {
            Ok(completion) => completion.result.map_err(|_| DiskError::DeviceError),
            Err(_) => Err(DiskError::Exhausted),
        }
    }
}
