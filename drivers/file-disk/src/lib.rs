//! The driver of a disk of the hosted machine: one device, served by crate `disk-server`.
//!
//! Key type: `transfers::Transfers`, the operations under way. Neighbours: `disk-server` (the clients).
//! Deliberately not here: caching, and any knowledge of what is on the disk.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod transfers;

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;

use contracts::disk::DiskError;
use disk_server::{Direction, Medium, SECTOR_BYTES, Shape, Transferred};
use sip::device::{Device, DeviceKind, DeviceOperation};
use sip::exheap::{ExVec, Lent};
use sip::{Deadline, Status};

use transfers::Transfers;

sip::startup!();

/// When a device that is at work is tried again.
const AGAIN_AFTER_MS: u64 = 1;

/// A disk of the machine.
struct FileDisk {
    transfers: Arc<Transfers>,
    shape: Shape,
}

/// Serves the disk until the one who hands over clients is gone.
pub fn main(startup: Startup) -> i32 {
    disk_server::run(startup.clients, open)
}

fn open() -> Result<FileDisk, String> {
    let refused = |status: Status| format!("the disk cannot be opened: {}", status.text());
    let device = open_settled().map_err(refused)?;
    let description = device.describe().map_err(refused)?;
    if description.kind != DeviceKind::Disk {
        return Err(String::from("the device is no disk; name a disk for it in the system manifest"));
    }
    let shape = Shape { size_bytes: description.bytes, sector_bytes: SECTOR_BYTES, read_only: description.read_only };
    let transfers = Transfers::start(device).map_err(refused)?;
    Ok(FileDisk { transfers, shape })
}

/// Opens the device once the machine has done what a driver that was killed had asked of it. Whoever started this
/// process watches how long that takes.
fn open_settled() -> Result<Device, Status> {
    loop {
        match Device::open(devices::DISK as usize) {
            Err(Status::Busy) => sip::thread::sleep(Deadline::after_ms(AGAIN_AFTER_MS)),
            other => return other,
        }
    }
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
        let (block, result) = match self.transfers.perform(operation, offset, data, address, bytes).await {
            Ok(completion) if completion.result.is_ok() && completion.bytes == bytes => (completion.block, Ok(())),
            Ok(completion) => (completion.block, Err(DiskError::DeviceError)),
            Err(error) => (error.block, Err(DiskError::Exhausted)),
        };
        Transferred { data: Lent::claim(block).ok(), result }
    }

    async fn flush(&self) -> Result<(), DiskError> {
        // The device takes a block with each operation, also with one that moves no bytes.
        let block = ExVec::<u8>::new(1).map_err(|_| DiskError::Exhausted)?;
        let address = block.as_ptr() as usize;
        match self.transfers.perform(DeviceOperation::Flush, 0, block, address, 0).await {
            Ok(completion) => completion.result.map_err(|_| DiskError::DeviceError),
            Err(_) => Err(DiskError::Exhausted),
        }
    }
}
