//! Driver of a virtio disk, served by crate `disk-server`.
//!
//! Key type: [`blk::Blk`] (the requests, without channels). Neighbours: `sip-virtio` (the device), `disk-server` (the
//! clients). The device does DMA directly on a client's block. Deliberately not here: caching, and any
//! knowledge of the disk's contents.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod blk;

use alloc::string::String;
use alloc::sync::Arc;

use contracts::disk::DiskError;
use disk_server::{Medium, SECTOR_BYTES, Shape, Transferred};
use sip::device::Declared;
use sip::exheap::{ExVec, Lent};
use sip::hardware::DmaBlock;
use sip_virtio::{Direction, Running, System};

use blk::{Blk, Finished};

sip::startup!();

type ClientBlock = DmaBlock<Lent<ExVec<u8>>>;
type Core = Blk<System, ClientBlock>;

/// A virtio disk and its properties.
struct VirtioDisk {
    system: System,
    running: Arc<Running<Core>>,
    shape: Shape,
    needs_flush: bool,
}

/// Serves the disk until the provider channel closes.
pub fn main(startup: Startup) -> i32 {
    disk_server::run(startup.clients, || open(&startup.disk))
}

fn open(device: &Declared<System>) -> Result<VirtioDisk, String> {
    let (system, running) = Running::start(device, Core::start)?;
    let (shape, needs_flush) = running.with(|core| {
        let (size_bytes, read_only) = (core.size_bytes(), core.is_read_only());
        (Shape { size_bytes, sector_bytes: SECTOR_BYTES, read_only }, core.needs_flush())
    });
    Ok(VirtioDisk { system, running, shape, needs_flush })
}

impl VirtioDisk {
    async fn finished(&self, key: blk::Key) -> Finished<ClientBlock> {
        self.running.until(|core| core.take(key)).await
    }
}

impl Medium for VirtioDisk {
    fn shape(&self) -> Shape {
        self.shape
    }

    async fn transfer(
        &self,
        direction: disk_server::Direction,
        offset: u64,
        data: Lent<ExVec<u8>>,
        bytes: usize,
    ) -> Transferred {
        let direction = match direction {
            disk_server::Direction::Read => Direction::FromDevice,
            disk_server::Direction::Write => Direction::ToDevice,
        };
        let mut waiting = match self.system.pin(data) {
            Ok(pinned) => Some(pinned),
            Err((data, _)) => return Transferred { data: Some(data), result: Err(DiskError::Exhausted) },
        };
        let begin = |core: &mut Core| match core.transfer(direction, offset, waiting.take()?, bytes) {
            Ok(key) => Some(key),
            Err(busy) => {
                waiting = busy.data;
                None
            }
        };
        let key = self.running.until(begin).await;
        let finished = self.finished(key).await;
        let result = if finished.done { Ok(()) } else { Err(DiskError::DeviceError) };
        Transferred { data: finished.data.map(DmaBlock::end), result }
    }

    async fn flush(&self) -> Result<(), DiskError> {
        if !self.needs_flush {
            return Ok(());
        }
        let key = self.running.until(|core| core.flush().ok()).await;
        if self.finished(key).await.done { Ok(()) } else { Err(DiskError::DeviceError) }
    }
}
