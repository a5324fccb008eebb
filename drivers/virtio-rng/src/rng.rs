//! The source's requests, and the validation of the device's answers.
//!
//! Key type: [`Rng`]. Neighbours: `sip-virtio` (the queue). Deliberately not here: clients, and waiting.

use alloc::collections::BTreeMap;

use sip_virtio::{
    Core, Data, Device, DeviceError, DeviceMemory, Direction, Kind, Platform, Queue, Refused, Reply, Request,
    TIME_LIMIT_MS,
};

/// Descriptors of the queue, one per request; some machines offer no more.
const QUEUE_SIZE: usize = 8;
const QUEUE: u16 = 0;

/// Number of a request.
pub type Key = u64;

/// A virtio entropy source. `M` is the memory of its clients.
pub struct Rng<P: Platform, M: DeviceMemory> {
    device: Device<P>,
    queue: Queue<P, QUEUE_SIZE, M, Key>,
    finished: BTreeMap<Key, (M, usize)>,
    last_key: Key,
}

impl<P: Platform, M: DeviceMemory> Rng<P, M> {
    /// Resets and starts the device.
    ///
    /// # Errors
    /// The device is not an entropy source that this driver supports.
    pub fn start(platform: P) -> Result<Rng<P, M>, DeviceError> {
        let mut device = Device::start(platform, Kind::Entropy, &[], 0)?;
        let queue = device.queue(QUEUE)?;
        device.ready()?;
        Ok(Rng { device, queue, finished: BTreeMap::new(), last_key: 0 })
    }

    /// Requests random bytes in `memory`, from the byte `from` on; at most `bytes` of them, not 0.
    ///
    /// # Errors
    /// Too many requests are in flight; the memory is returned.
    pub fn fill(&mut self, memory: M, from: usize, bytes: usize) -> Result<Key, M> {
        let key = self.last_key + 1;
        let data = Data { memory, offset: from, bytes, direction: Direction::FromDevice };
        match self.queue.submit(Request { header: &[], data: Some(data), reply: Reply::None }, key) {
            Ok(()) => {
                self.last_key = key;
                Ok(key)
            }
            Err(Refused { data: Some(data), .. }) => Err(data.memory),
            Err(Refused { data: None, .. }) => unreachable!("the data was passed in"),
        }
    }

    /// Takes a finished request, once: the memory, and the number of bytes written, at least one.
    pub fn take(&mut self, key: Key) -> Option<(M, usize)> {
        self.finished.remove(&key)
    }

    /// Returns the number of requests in flight.
    pub fn in_flight(&self) -> usize {
        self.queue.in_flight()
    }
}

impl<P: Platform, M: DeviceMemory + 'static> Core for Rng<P, M> {
    fn serve(&mut self) -> Result<(), DeviceError> {
        self.device.interrupted()?;
        while let Some(completion) = self.queue.complete()? {
            if completion.written == 0 {
                return Err(DeviceError::TooLittleWritten { needed: 1, written: 0 });
            }
            if let Some(data) = completion.data {
                self.finished.insert(completion.tag, (data.memory, completion.written as usize));
            }
        }
        self.queue.check_time(TIME_LIMIT_MS)
    }
}
