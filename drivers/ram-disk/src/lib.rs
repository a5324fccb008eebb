//! Driver of a disk in memory: an exchange-heap block for each piece that has been written, served by crate
//! `disk-server`.
//!
//! Key type: [`pieces::Pieces`] (the contents, without channels). Neighbours: `disk-server` (the clients). The contents
//! are lost when the driver ends. Deliberately not here: any knowledge of the disk's contents.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod pieces;

use alloc::format;
use core::cell::RefCell;

use contracts::disk::DiskError;
use contracts::service_provider::StartError;
use disk_server::{Direction, Medium, NotOpened, SECTOR_BYTES, Shape, Transferred};
use sip::exheap::{ExVec, Lent};

use pieces::Pieces;

sip::startup!();

/// Maximum size of a disk in MiB.
const MAX_MIB: i64 = 16 * 1024;

struct RamDisk {
    shape: Shape,
    pieces: RefCell<Pieces<ExVec<u8>>>,
}

/// Serves the disk until the provider channel closes.
pub fn main(startup: Startup) -> i32 {
    disk_server::run(startup.clients, || open(startup.size_mib))
}

fn open(size_mib: i64) -> Result<RamDisk, NotOpened> {
    let size_bytes = match size_mib {
        1..=MAX_MIB => size_mib.unsigned_abs() << 20,
        _ => {
            let explanation = format!("the disk cannot have {size_mib} MiB; give it 1 to {MAX_MIB}");
            return Err(NotOpened { error: StartError::BadParameter, explanation });
        }
    };
    let pieces = Pieces::new(size_bytes).ok_or_else(|| {
        let explanation = format!("there is no memory for the index of {size_mib} MiB");
        NotOpened { error: StartError::Exhausted, explanation }
    })?;
    let shape = Shape { size_bytes, sector_bytes: SECTOR_BYTES, read_only: false };
    Ok(RamDisk { shape, pieces: RefCell::new(pieces) })
}

impl Medium for RamDisk {
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
        let mut pieces = self.pieces.borrow_mut();
        let done = match direction {
            Direction::Read => pieces.read(offset, &mut data[..bytes]),
            Direction::Write => pieces.write(offset, &data[..bytes], |length| ExVec::new(length).ok()),
        };
        Transferred { data: Some(data), result: done.ok_or(DiskError::Exhausted) }
    }

    async fn flush(&self) -> Result<(), DiskError> {
        Ok(())
    }
}
