//! The device as the console's port.
//!
//! Input stays in the device's buffers until it is read, so that backpressure reaches the machine. The
//! device does DMA directly from the clients' blocks.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::task::{Context, Poll};

use sip::Status;
use sip::device::Declared;
use sip::exheap::ExVec;
use sip::hardware::DmaBlock;
use sip_virtio::{Running, System};
use terminal::serial::Unquote;

use crate::line::Line;

const INPUT_BUFFERS: usize = 4;
const INPUT_BYTES: usize = 1024;

type Core = Line<System, DmaBlock<ExVec<u8>>>;

/// The console device.
pub struct Port {
    system: System,
    running: Arc<Running<Core>>,
    /// Columns and rows of the terminal, if there is one.
    screen: Option<(u32, u32)>,
    /// Decodes the line as a stream if there is no terminal.
    stream: Unquote,
    /// Whether a client waits for input.
    wanted: bool,
}

impl Port {
    /// Opens the device and starts the thread that waits for its interrupt. `screen` is the configured size of the
    /// terminal, if there is one.
    pub fn open(device: &Declared<System>, screen: Option<(u32, u32)>) -> Result<Port, Status> {
        let started = Running::start(device, Core::start);
        let (system, running) = started.map_err(|explanation| {
            stdio::report::error(format_args!("{explanation}"));
            Status::DeviceError
        })?;
        let port = Port { system, running, screen, stream: Unquote::new(), wanted: false };
        for _ in 0..INPUT_BUFFERS {
            port.add_buffer(ExVec::new(INPUT_BYTES)?)?;
        }
        Ok(port)
    }

    fn add_buffer(&self, buffer: ExVec<u8>) -> Result<(), Status> {
        let buffer = self.system.pin(buffer).map_err(|(_, status)| status)?;
        // The queue has room for all buffers; a device error surfaces when it is served.
        self.running.with(|line| line.add_buffer(buffer, INPUT_BYTES)).map_err(|_| Status::DeviceError)
    }

    /// Takes a piece of raw input, if there is one.
    fn take_input(&self, context: &Context<'_>) -> Poll<Result<Vec<u8>, Status>> {
        self.running.poll(context, Core::take_received).map(|(buffer, count)| {
            let buffer = buffer.end();
            let input = buffer.get(..count).unwrap_or_default().to_vec();
            self.add_buffer(buffer)?;
            Ok(input)
        })
    }
}

impl Port {
    /// Returns the next piece of input, an empty one at its end; `None` if a buffer decoded to no bytes.
    fn next_piece(&mut self, context: &Context<'_>) -> Poll<Option<Vec<u8>>> {
        // The end may have come with the last bytes.
        if self.stream.has_ended() {
            return Poll::Ready(Some(Vec::new()));
        }
        self.take_input(context).map(|input| {
            let mut bytes = Vec::new();
            match (input, self.screen) {
                // Without buffers there can be no more input.
                (Err(_), _) => return Some(bytes),
                (Ok(input), Some(_)) => bytes = input,
                (Ok(input), None) => self.stream.feed(&input, &mut bytes),
            }
            if bytes.is_empty() && !self.stream.has_ended() { None } else { Some(bytes) }
        })
    }
}

impl console_server::Port for Port {
    fn is_terminal(&self) -> bool {
        self.screen.is_some()
    }

    fn columns_and_rows(&self) -> (u32, u32) {
        let Some(configured) = self.screen else { return (0, 0) };
        match self.running.with(|line| line.columns_and_rows()) {
            Ok(Some((columns, rows))) => (columns.into(), rows.into()),
            _ => configured,
        }
    }

    fn want_input(&mut self) -> Result<(), Status> {
        self.wanted = true;
        Ok(())
    }

    fn poll_input(&mut self, context: &mut Context<'_>) -> Poll<Vec<u8>> {
        while self.wanted {
            let Poll::Ready(bytes) = self.next_piece(context) else { break };
            if let Some(bytes) = bytes {
                self.wanted = false;
                return Poll::Ready(bytes);
            }
        }
        Poll::Pending
    }

    fn write(&self, bytes: &[u8]) -> Result<(), Status> {
        if bytes.is_empty() { Ok(()) } else { self.write_block(ExVec::from_slice(bytes)?) }
    }

    fn write_block(&self, block: ExVec<u8>) -> Result<(), Status> {
        let bytes = block.len();
        if bytes == 0 {
            return Ok(());
        }
        let mut waiting = Some(self.system.pin(block).map_err(|(_, status)| status)?);
        let key = self.running.wait_until(|line| match line.write(waiting.take()?, bytes) {
            Ok(key) => Some(key),
            Err(block) => {
                waiting = Some(block);
                None
            }
        });
        self.running.wait_until(|line| line.is_written(key).then_some(()));
        Ok(())
    }
}
