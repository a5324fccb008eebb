//! Shared server code of disk drivers: the `Disk` contract for many clients over one medium.
//!
//! Key types: [`Medium`] (implemented by the driver), [`Shape`] (the disk's properties), [`Disk`] (a
//! medium with its clients), [`Pending`] (operations in flight, for a driver that waits for completions on another
//! thread). Each client is a task, so that one client's slow read does not block others; only requests for the same
//! bytes keep their order, also those of clients that are gone. The device transfers directly to and from
//! the client's block: there is no copy. Deliberately not here: devices, caching, and any knowledge of the disk's
//! contents.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod order;
mod pending;

pub use pending::Pending;

use alloc::rc::Rc;
use alloc::string::String;
use core::future::Future;

use contracts::disk::{self, DiskError, ExpReady, states};
use contracts::disk_events;
use contracts::service_provider::{self, StartError};
use sip::exheap::{ExVec, Lent};
use stdio::report;

use order::{Order, Request};

/// Default sector size in bytes.
pub const SECTOR_BYTES: u32 = 512;

/// A disk's properties.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Size of the disk in bytes.
    pub size_bytes: u64,
    /// Alignment of offsets and counts, in bytes. Not 0.
    pub sector_bytes: u32,
    /// Whether writes are refused.
    pub read_only: bool,
}

/// Direction of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the medium into the client's block.
    Read,
    /// From the client's block onto the medium.
    Write,
}

/// A finished transfer.
#[derive(Debug)]
pub struct Transferred {
    /// The client's block; `None` if the client is gone and has it back.
    pub data: Option<Lent<ExVec<u8>>>,
    /// Whether all bytes were transferred.
    pub result: Result<(), DiskError>,
}

/// A block device.
pub trait Medium: 'static {
    /// Returns its properties, which do not change.
    fn shape(&self) -> Shape;

    /// Transfers `bytes` bytes between the medium, from byte `offset` on, and the start of `data`. Both numbers
    /// are multiples of the sector size and within the disk and the block; `bytes` is not 0, and a
    /// read-only disk gets only reads. Several transfers may be in flight at once, but none that
    /// overlap, unless all of them read.
    fn transfer(
        &self,
        direction: Direction,
        offset: u64,
        data: Lent<ExVec<u8>>,
        bytes: usize,
    ) -> impl Future<Output = Transferred>;

    /// Completes when all previous writes are on the medium. Not called on a read-only disk, and only after
    /// the writes requested before have completed.
    fn flush(&self) -> impl Future<Output = Result<(), DiskError>>;
}

/// Why a device is not served.
#[derive(Debug)]
pub struct NotOpened {
    /// Its kind: after [`StartError::Exhausted`] the driver is started again.
    pub error: StartError,
    /// A sentence for people.
    pub explanation: String,
}

impl From<String> for NotOpened {
    fn from(explanation: String) -> NotOpened {
        NotOpened { error: StartError::Missing, explanation }
    }
}

/// The whole `main` of a driver: `open` opens the device or returns an error, a sentence if the device is missing; then
/// clients are served until the provider channel closes. Returns the exit status.
pub fn run<M: Medium, E: Into<NotOpened>>(
    clients: service_provider::Exp<service_provider::states::Start>,
    open: impl FnOnce() -> Result<M, E>,
) -> i32 {
    let disk = match open() {
        Ok(medium) => Disk::new(medium),
        Err(error) => {
            let NotOpened { error, explanation } = error.into();
            match ExVec::from_slice(explanation.as_bytes()) {
                // The parent process reports it.
                Ok(block) => drop(clients.not_ready(error, block)),
                Err(_) => report::error(format_args!("{explanation}")),
            }
            return 1;
        }
    };
    let serving = provider::accept(clients.ready(), move |client| disk.serve(client));
    match sip::executor::block_on(serving) {
        Ok(()) => 0,
        Err(status) => {
            report::error(format_args!("cannot wait for clients: {}", status.text()));
            1
        }
    }
}

/// A medium and the requests of its clients. Clones refer to the same disk.
pub struct Disk<M> {
    shared: Rc<Shared<M>>,
}

struct Shared<M> {
    medium: M,
    order: Order,
}

impl<M> Clone for Disk<M> {
    fn clone(&self) -> Disk<M> {
        Disk { shared: Rc::clone(&self.shared) }
    }
}

impl<M: Medium> Disk<M> {
    /// Creates a disk without clients.
    pub fn new(medium: M) -> Disk<M> {
        Disk { shared: Rc::new(Shared { medium, order: Order::default() }) }
    }

    /// Returns the medium.
    pub fn medium(&self) -> &M {
        &self.shared.medium
    }

    /// Serves one client until it closes its end; must be spawned as a task.
    pub fn serve(&self, client: disk::Exp<states::Start>) -> impl Future<Output = ()> + use<M> {
        serve(Rc::clone(&self.shared), client.success())
    }
}

async fn serve<M: Medium>(shared: Rc<Shared<M>>, mut client: disk::Exp<states::Ready>) {
    let shape = shared.medium.shape();
    // The medium never changes; the open endpoint shows the client that the driver is alive. It is dropped with the
    // client, so that endpoints do not accumulate.
    let mut events: Option<disk_events::Exp<disk_events::states::Ready>> = None;
    loop {
        client = match client.receive_async().await {
            ExpReady::GetInfo { next } => next.info(shape.size_bytes, shape.sector_bytes, shape.read_only),
            ExpReady::Read { data, offset, count, next } => {
                match shared.transfer(Direction::Read, offset, data, count).await {
                    Transferred { data: Some(data), result: Ok(()) } => next.read_done(data),
                    Transferred { data: Some(data), result: Err(error) } => next.read_failed(data, error),
                    Transferred { data: None, .. } => return,
                }
            }
            ExpReady::Write { data, offset, count, next } => {
                match shared.transfer(Direction::Write, offset, data, count).await {
                    Transferred { data: Some(data), result: Ok(()) } => next.write_done(data),
                    Transferred { data: Some(data), result: Err(error) } => next.write_failed(data, error),
                    Transferred { data: None, .. } => return,
                }
            }
            ExpReady::Flush { next } if shape.read_only => next.flushed(),
            ExpReady::Flush { next } => match shared.flush().await {
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

impl<M: Medium> Shared<M> {
    /// Checks a client's transfer, and performs it after the conflicting ones before it.
    async fn transfer(&self, direction: Direction, offset: u64, data: Lent<ExVec<u8>>, count: u32) -> Transferred {
        match self.medium.shape().check(direction, offset, count, data.len()) {
            Err(error) => return Transferred { data: Some(data), result: Err(error) },
            Ok(()) if count == 0 => return Transferred { data: Some(data), result: Ok(()) },
            Ok(()) => {}
        }
        let range = offset..offset + u64::from(count);
        let request = match direction {
            Direction::Read => Request::Read(range),
            Direction::Write => Request::Write(range),
        };
        let _place = self.order.acquire(request).await;
        self.medium.transfer(direction, offset, data, count as usize).await
    }

    async fn flush(&self) -> Result<(), DiskError> {
        let _place = self.order.acquire(Request::Flush).await;
        self.medium.flush().await
    }
}

impl Shape {
    /// Checks a transfer against the bounds of the disk and of the block.
    fn check(self, direction: Direction, offset: u64, count: u32, block_bytes: usize) -> Result<(), DiskError> {
        if self.read_only && direction == Direction::Write {
            return Err(DiskError::ReadOnly);
        }
        if !offset.is_multiple_of(self.sector_bytes.into()) || !count.is_multiple_of(self.sector_bytes) {
            return Err(DiskError::NotAligned);
        }
        let end = offset.checked_add(count.into()).filter(|&end| end <= self.size_bytes);
        if end.is_none() || count as usize > block_bytes { Err(DiskError::OutOfRange) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfers_stay_within_the_disk_and_the_block() {
        let shape = Shape { size_bytes: 4096, sector_bytes: SECTOR_BYTES, read_only: true };
        let check = |offset, count, block_bytes| shape.check(Direction::Read, offset, count, block_bytes);
        assert_eq!(check(512, 1024, 1024), Ok(()));
        assert_eq!(check(0, 0, 0), Ok(()));
        assert_eq!(check(3584, 1024, 1024), Err(DiskError::OutOfRange));
        assert_eq!(check(u64::MAX - 511, 512, 1024), Err(DiskError::OutOfRange));
        assert_eq!(check(0, 1024, 1023), Err(DiskError::OutOfRange));
        assert_eq!(check(100, 512, 1024), Err(DiskError::NotAligned));
        assert_eq!(check(0, 100, 1024), Err(DiskError::NotAligned));
        assert_eq!(shape.check(Direction::Write, 0, 512, 512), Err(DiskError::ReadOnly));
    }
}
