//! The device's requests, and the validation of its answers.
//!
//! Key type: [`Channel`]. The interface is that of *Virtual I/O Device (VIRTIO)*, device id 9: a mount tag, and one
//! queue of messages. Neighbours: `sip-virtio` (the queue). Deliberately not here: clients, and waiting.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use sip_virtio::{
    Core, Data, Device, DeviceError, DeviceMemory, Direction, Kind, Platform, Queue, Refused, Reply, Request,
};

/// Descriptors of the queue: two per request.
const QUEUE_SIZE: usize = 64;
const QUEUE: u16 = 0;
/// `VIRTIO_9P_MOUNT_TAG`: the configuration contains the folder's name.
const MOUNT_TAG: u64 = 1 << 0;
/// Offset of the name in the configuration, after its length.
const NAME_AT: u64 = 2;
/// Maximum length of a name in bytes.
const NAME_BYTES: u16 = 255;
/// Request timeout: the host may take long, for example to flush much data to a slow disk.
const TIME_LIMIT_MS: u64 = 120_000;

/// Number of a request.
pub type Key = u64;

/// A virtio-9p device. `M` is the memory of messages.
pub struct Channel<P: Platform, M: DeviceMemory> {
    device: Device<P>,
    queue: Queue<P, QUEUE_SIZE, M, Key>,
    name: String,
    finished: BTreeMap<Key, (M, usize)>,
    last_key: Key,
}

impl<P: Platform, M: DeviceMemory> Channel<P, M> {
    /// Resets and starts the device.
    ///
    /// # Errors
    /// The device is not one that this driver supports.
    pub fn start(platform: P) -> Result<Channel<P, M>, DeviceError> {
        let mut device = Device::start(platform, Kind::Folder, &[(MOUNT_TAG, "a mount tag")], 0)?;
        let name = device.configuration(|from| {
            use layout::Access as _;
            let length: u16 = from.read(0);
            (0..length.min(NAME_BYTES)).map(|index| from.read(NAME_AT + u64::from(index))).collect::<Vec<u8>>()
        })?;
        let queue = device.queue(QUEUE)?;
        device.ready()?;
        let name = String::from_utf8_lossy(&name).into_owned();
        Ok(Channel { device, queue, name, finished: BTreeMap::new(), last_key: 0 })
    }

    /// Returns the folder's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Sends the message in the memory's first bytes. The reply will be written after it.
    ///
    /// # Errors
    /// Too many requests are in flight; the memory is returned.
    pub fn send(&mut self, memory: M, bytes: usize) -> Result<Key, M> {
        let key = self.last_key + 1;
        let room = memory.memory().len() - bytes;
        let data = Data { memory, offset: 0, bytes, direction: Direction::ToDevice };
        match self.queue.submit(Request { header: &[], data: Some(data), reply: Reply::InBlock(room) }, key) {
            Ok(()) => {
                self.last_key = key;
                Ok(key)
            }
            Err(Refused { data: Some(data), .. }) => Err(data.memory),
            Err(Refused { data: None, .. }) => unreachable!("the data was passed in"),
        }
    }

    /// Takes a finished request, once: the memory, and the length of the reply after the message.
    pub fn take(&mut self, key: Key) -> Option<(M, usize)> {
        self.finished.remove(&key)
    }

    /// Returns the number of requests in flight.
    pub fn in_flight(&self) -> usize {
        self.queue.in_flight()
    }
}

impl<P: Platform, M: DeviceMemory + 'static> Core for Channel<P, M> {
    fn serve(&mut self) -> Result<(), DeviceError> {
        self.device.interrupted()?;
        while let Some(completion) = self.queue.complete()? {
            if let Some(data) = completion.data {
                self.finished.insert(completion.tag, (data.memory, completion.written as usize));
            }
        }
        self.queue.check_time(TIME_LIMIT_MS)
    }
}
