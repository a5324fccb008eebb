//! Input and output of the console device.
//!
//! Key type: [`Line`]. Neighbours: `sip-virtio` (the queues). Only the device's first port is used, which is open from
//! the start. Deliberately not here: clients, waiting, and the meaning of the bytes.

use alloc::collections::{BTreeSet, VecDeque};

use sip_virtio::{
    Core, Data, Device, DeviceError, DeviceMemory, Direction, Kind, Platform, Queue, Refused, Reply, Request,
    TIME_LIMIT_MS,
};

/// Descriptors of a queue; a buffer or a piece of output takes one.
const QUEUE_SIZE: usize = 16;
const RECEIVE_QUEUE: u16 = 0;
const TRANSMIT_QUEUE: u16 = 1;

/// `VIRTIO_CONSOLE_F_SIZE`.
const SIZE: u64 = 1 << 0;

/// The configuration space.
#[layout::registers(bytes = 4)]
struct Configuration {
    /// Columns of the terminal.
    #[at(0)]
    columns: ReadOnly<u16>,
    /// Rows of the terminal.
    #[at(2)]
    rows: ReadOnly<u16>,
}

/// Number of an output request.
pub type Key = u64;

/// A virtio console. `M` is the memory of input and output.
pub struct Line<P: Platform, M: DeviceMemory> {
    device: Device<P>,
    receive: Queue<P, QUEUE_SIZE, M, ()>,
    transmit: Queue<P, QUEUE_SIZE, M, Key>,
    received: VecDeque<(M, usize)>,
    written: BTreeSet<Key>,
    last_key: Key,
}

impl<P: Platform, M: DeviceMemory> Line<P, M> {
    /// Resets and starts the device.
    ///
    /// # Errors
    /// The device is not a console that this driver supports.
    pub fn start(platform: P) -> Result<Line<P, M>, DeviceError> {
        let mut device = Device::start(platform, Kind::Console, &[], SIZE)?;
        let (receive, transmit) = (device.queue(RECEIVE_QUEUE)?, device.queue(TRANSMIT_QUEUE)?);
        device.ready()?;
        Ok(Line { device, receive, transmit, received: VecDeque::new(), written: BTreeSet::new(), last_key: 0 })
    }

    /// Returns columns and rows, if the device reports them.
    ///
    /// # Errors
    /// The configuration cannot be read consistently.
    pub fn columns_and_rows(&self) -> Result<Option<(u16, u16)>, DeviceError> {
        if !self.device.has(SIZE) {
            return Ok(None);
        }
        let size = self.device.configuration(|from| {
            let from = Configuration::over(from);
            (from.columns().read(), from.rows().read())
        })?;
        Ok(Some(size).filter(|&(columns, rows)| columns != 0 && rows != 0))
    }

    /// Adds a receive buffer, of which the device may fill `bytes` bytes, not 0.
    ///
    /// # Errors
    /// The queue is full; the buffer is returned.
    pub fn add_buffer(&mut self, memory: M, bytes: usize) -> Result<(), M> {
        let data = Data { memory, offset: 0, bytes, direction: Direction::FromDevice };
        let request = Request { header: &[], data: Some(data), reply: Reply::None };
        self.receive.submit(request, ()).map_err(memory_of)
    }

    /// Takes the oldest input: a buffer, and the length of the input in it.
    pub fn take_received(&mut self) -> Option<(M, usize)> {
        self.received.pop_front()
    }

    /// Writes the first `bytes` bytes of a buffer, not 0.
    ///
    /// # Errors
    /// The queue is full; the buffer is returned.
    pub fn write(&mut self, memory: M, bytes: usize) -> Result<Key, M> {
        let key = self.last_key + 1;
        let data = Data { memory, offset: 0, bytes, direction: Direction::ToDevice };
        self.transmit.submit(Request { header: &[], data: Some(data), reply: Reply::None }, key).map_err(memory_of)?;
        self.last_key = key;
        Ok(key)
    }

    /// Returns whether an output request has completed; true once.
    pub fn is_written(&mut self, key: Key) -> bool {
        self.written.remove(&key)
    }

    /// Returns the number of output requests in flight.
    pub fn in_flight(&self) -> usize {
        self.transmit.in_flight()
    }
}

fn memory_of<M, T>(refused: Refused<M, T>) -> M {
    match refused.data {
        Some(data) => data.memory,
        None => unreachable!("the data was passed in"),
    }
}

impl<P: Platform, M: DeviceMemory + 'static> Core for Line<P, M> {
    fn serve(&mut self) -> Result<(), DeviceError> {
        self.device.interrupted()?;
        while let Some(completion) = self.receive.complete()? {
            if let Some(data) = completion.data {
                self.received.push_back((data.memory, completion.written as usize));
            }
        }
        while let Some(completion) = self.transmit.complete()? {
            self.written.insert(completion.tag);
        }
        // No timeout for input; output must complete in time.
        self.transmit.check_time(TIME_LIMIT_MS)
    }
}
