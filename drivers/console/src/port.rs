//! The device: a thread of its own waits for completions, so that the thread that serves clients never blocks on
//! input.
//!
//! Deliberately not here: the meaning of the bytes.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::task::{Context, Poll, Waker};

use sip::device::{Completion, Declared, Device, DeviceOperation};
use sip::exheap::ExVec;
use sip::sync::{Event, Mutex};
use sip::{Deadline, Status};

const READ_BYTES: usize = 4096;

/// Results of the waiting thread.
#[derive(Default)]
struct Arrived {
    /// Input; an empty piece is the end of input.
    input: Option<Vec<u8>>,
    /// Result of the last write.
    written: Option<Result<usize, Status>>,
    reader: Option<Waker>,
    /// Address of the block of the read in flight, which identifies its completion.
    read_address: usize,
}

impl Arrived {
    /// Takes what a read has got.
    fn read(&mut self, completion: &Completion) {
        self.read_address = 0;
        let bytes = if completion.result.is_ok() { completion.bytes } else { 0 };
        self.input = Some(completion.block[..bytes].to_vec());
        self.reader.take().into_iter().for_each(Waker::wake);
    }
}

struct Shared {
    device: Device,
    arrived: Mutex<Arrived>,
    written: Event,
}

/// The console device.
pub struct Port {
    shared: Arc<Shared>,
    reading: bool,
}

impl Port {
    /// Opens the device and starts the thread that waits for completions.
    pub fn open(device: &Declared<Device>) -> Result<Port, Status> {
        let device = device.open()?;
        let shared = Arc::new(Shared { device, arrived: Mutex::new(Arrived::default()), written: Event::auto()? });
        let waiting = Arc::clone(&shared);
        // The thread runs until the process ends.
        drop(sip::thread::spawn(move || wait_for_completions(&waiting))?);
        Ok(Port { shared, reading: false })
    }
}

impl console_server::Port for Port {
    fn is_terminal(&self) -> bool {
        self.shared.device.describe().is_ok_and(|description| description.terminal)
    }

    fn columns_and_rows(&self) -> (u32, u32) {
        match self.shared.device.describe() {
            Ok(description) if description.terminal => (u32::from(description.columns), u32::from(description.rows)),
            _ => (0, 0),
        }
    }

    fn want_input(&mut self) -> Result<(), Status> {
        if self.reading {
            return Ok(());
        }
        let block = ExVec::<u8>::new(READ_BYTES)?;
        self.shared.arrived.lock().read_address = address(&block);
        let submitted = self.shared.device.submit(DeviceOperation::Read, 0, block, READ_BYTES);
        if let Some(completion) = submitted.map_err(|error| error.status)? {
            self.shared.arrived.lock().read(&completion);
        }
        self.reading = true;
        Ok(())
    }

    fn poll_input(&mut self, context: &mut Context<'_>) -> Poll<Vec<u8>> {
        let mut arrived = self.shared.arrived.lock();
        match arrived.input.take() {
            Some(input) => {
                self.reading = false;
                Poll::Ready(input)
            }
            None => {
                arrived.reader = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }

    fn write(&self, bytes: &[u8]) -> Result<(), Status> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.write_block(ExVec::from_slice(bytes)?)
    }

    fn write_block(&self, block: ExVec<u8>) -> Result<(), Status> {
        let length = block.len();
        if length == 0 {
            return Ok(());
        }
        let submitted = self.shared.device.submit(DeviceOperation::Write, 0, block, length);
        if let Some(completion) = submitted.map_err(|error| error.status)? {
            return completion.result;
        }
        loop {
            self.shared.written.wait();
            if let Some(outcome) = self.shared.arrived.lock().written.take() {
                return outcome.map(drop);
            }
        }
    }
}

fn address(block: &ExVec<u8>) -> usize {
    block.as_slice().as_ptr() as usize
}

fn wait_for_completions(shared: &Shared) {
    loop {
        let Ok(completion) = shared.device.complete(Deadline::NEVER) else {
            // The device is gone: report the end of input, and fail a pending write.
            let mut arrived = shared.arrived.lock();
            arrived.input = Some(Vec::new());
            arrived.written = Some(Err(Status::DeviceError));
            arrived.reader.take().into_iter().for_each(Waker::wake);
            shared.written.set();
            return;
        };
        let mut arrived = shared.arrived.lock();
        if arrived.read_address == address(&completion.block) {
            arrived.read(&completion);
        } else {
            arrived.written = Some(completion.result.map(|()| completion.bytes));
            shared.written.set();
        }
    }
}
