//! The disk's requests, and the validation of the device's answers.
//!
//! Key type: [`Blk`]. Neighbours: `sip-virtio` (the queue). Deliberately not here: clients, and waiting.

use alloc::collections::BTreeMap;

use sip_virtio::{
    Completion, Core, Data, Device, DeviceError, DeviceMemory, Direction, Kind, Platform, Queue, Refused, Reply,
    Request, TIME_LIMIT_MS,
};

/// Sector size in bytes, regardless of the device's preferred block size (virtio 1.2, section 5.2).
pub const SECTOR_BYTES: u64 = 512;
/// Descriptors of the queue: 21 transfers in flight, three descriptors each.
const QUEUE_SIZE: usize = 64;
const QUEUE: u16 = 0;

/// `VIRTIO_BLK_F_RO`.
const READ_ONLY: u64 = 1 << 5;
/// `VIRTIO_BLK_F_FLUSH`.
const FLUSH: u64 = 1 << 9;

/// The configuration space.
#[layout::registers(bytes = 8)]
struct Configuration {
    /// Capacity in sectors.
    #[at(0)]
    sectors: ReadOnly<u64>,
}

/// Header of each request.
#[derive(layout::Record)]
#[record(bytes = 16, order = "little")]
struct Header {
    /// One of [`request`].
    kind: u32,
    /// The first sector.
    #[at(8)]
    sector: u64,
}

/// Kinds of requests.
mod request {
    pub const READ: u32 = 0;
    pub const WRITE: u32 = 1;
    pub const FLUSH: u32 = 4;
}

/// Status byte at the end of each answer.
mod status {
    pub const DONE: u8 = 0;
    pub const FAILED: u8 = 1;
    pub const NOT_SUPPORTED: u8 = 2;
}

const STATUS_BYTES: usize = 1;

/// Number of a request.
pub type Key = u64;

/// A request that the device has completed.
#[derive(Debug)]
pub struct Finished<M> {
    /// The data of a transfer.
    pub data: Option<M>,
    /// Whether it succeeded, completely.
    pub done: bool,
}

/// A request that was not accepted because too many are in flight.
#[derive(Debug)]
pub struct Busy<M> {
    /// The data of a transfer.
    pub data: Option<M>,
}

/// A virtio disk. `M` is the memory of its clients' data.
pub struct Blk<P: Platform, M: DeviceMemory> {
    device: Device<P>,
    queue: Queue<P, QUEUE_SIZE, M, (Key, usize)>,
    finished: BTreeMap<Key, Finished<M>>,
    last_key: Key,
    size_bytes: u64,
}

impl<P: Platform, M: DeviceMemory> Blk<P, M> {
    /// Resets and starts the device.
    ///
    /// # Errors
    /// The device is not a disk that this driver supports.
    pub fn start(platform: P) -> Result<Blk<P, M>, DeviceError> {
        let mut device = Device::start(platform, Kind::Block, &[], READ_ONLY | FLUSH)?;
        let sectors = device.configuration(|from| Configuration::over(from).sectors().read())?;
        let size_bytes = sectors
            .checked_mul(SECTOR_BYTES)
            .ok_or(DeviceError::Nonsense { what: "the number of its sectors", value: sectors })?;
        let queue = device.queue(QUEUE)?;
        device.ready()?;
        Ok(Blk { device, queue, finished: BTreeMap::new(), last_key: 0, size_bytes })
    }

    /// Returns the size of the disk in bytes.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Returns whether the disk refuses writes.
    pub fn is_read_only(&self) -> bool {
        self.device.has(READ_ONLY)
    }

    /// Returns whether the device has a write cache, so that writes must be [flushed](Blk::flush).
    pub fn needs_flush(&self) -> bool {
        self.device.has(FLUSH)
    }

    /// Returns the number of requests in flight.
    pub fn in_flight(&self) -> usize {
        self.queue.in_flight()
    }

    /// Submits a transfer of the first `bytes` bytes of `data` (not 0, and a multiple of [`SECTOR_BYTES`]), from or to
    /// the disk's byte `offset`, a multiple as well.
    ///
    /// # Errors
    /// Too many are in flight, or the device has failed: then [`Core::serve`] returns the error.
    pub fn transfer(&mut self, direction: Direction, offset: u64, data: M, bytes: usize) -> Result<Key, Busy<M>> {
        let kind = match direction {
            Direction::FromDevice => request::READ,
            Direction::ToDevice => request::WRITE,
        };
        let data = Data { memory: data, offset: 0, bytes, direction };
        self.submit(kind, offset / SECTOR_BYTES, Some(data))
    }

    /// Submits a flush.
    ///
    /// # Errors
    /// As [`Blk::transfer`].
    pub fn flush(&mut self) -> Result<Key, Busy<M>> {
        self.submit(request::FLUSH, 0, None)
    }

    /// Takes a finished request, once.
    pub fn take(&mut self, key: Key) -> Option<Finished<M>> {
        self.finished.remove(&key)
    }

    fn submit(&mut self, kind: u32, sector: u64, data: Option<Data<M>>) -> Result<Key, Busy<M>> {
        let header = Header { kind, sector }.to_bytes();
        let key = self.last_key + 1;
        let written = data.as_ref().filter(|data| data.direction == Direction::FromDevice);
        let expected = written.map_or(0, |data| data.bytes) + STATUS_BYTES;
        let request = Request { header: &header, data, reply: Reply::AfterData(STATUS_BYTES) };
        match self.queue.submit(request, (key, expected)) {
            Ok(()) => {
                self.last_key = key;
                Ok(key)
            }
            Err(Refused { data, .. }) => Err(Busy { data: data.map(|data| data.memory) }),
        }
    }
}

/// Returns whether the request succeeded; an error if the answer is invalid.
fn check<M, T>(completion: &Completion<M, T>, expected: usize) -> Result<bool, DeviceError> {
    match completion.reply[0] {
        status::DONE if (completion.written as usize) < expected => Err(DeviceError::TooLittleWritten {
            needed: u32::try_from(expected).unwrap_or(u32::MAX),
            written: completion.written,
        }),
        status::DONE => Ok(true),
        status::FAILED | status::NOT_SUPPORTED => Ok(false),
        other => Err(DeviceError::Nonsense { what: "the status of a request", value: other.into() }),
    }
}

impl<P: Platform, M: DeviceMemory + 'static> Core for Blk<P, M> {
    fn serve(&mut self) -> Result<(), DeviceError> {
        self.device.interrupted()?;
        while let Some(completion) = self.queue.complete()? {
            let (key, expected) = completion.tag;
            let done = check(&completion, expected)?;
            self.finished.insert(key, Finished { data: completion.data.map(|data| data.memory), done });
        }
        self.queue.check_time(TIME_LIMIT_MS)
    }
}
