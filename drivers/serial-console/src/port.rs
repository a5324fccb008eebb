//! The serial port as the console's device.
//!
//! A thread waits for the interrupt and receives, so that input is handled during output. The thread that serves
//! clients transmits: it does not block while the line accepts bytes at once, as a virtual one does; else it waits for
//! the interrupt.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::task::{Context, Poll, Waker};

use sip::device::Declared;
use sip::hardware::{Interrupt, IoPortRange};
use sip::sync::{Event, Mutex};
use sip::{Deadline, Status};
use terminal::serial::Unquote;
use uart_16550::{NoDevice, Uart};

use crate::devices;

/// Maximum input buffered for the server; more stays in the device's FIFO, and then with the sender.
const INPUT_BYTES: usize = 4096;
/// Maximum polls of the transmitter before waiting for its interrupt.
const MAX_POLLS: usize = 64;
/// Polling interval, which bounds the delay caused by a lost interrupt.
const POLL_MS: u64 = 100;
/// Maximum rounds of service per interrupt before the device is considered broken.
const MAX_ROUNDS: usize = 1_000;

struct Line {
    uart: Uart<IoPortRange>,
    input: Vec<u8>,
    reader: Option<Waker>,
    /// Whether the device is gone.
    lost: bool,
}

struct Shared {
    line: Mutex<Line>,
    /// Set when the transmitter is empty.
    room: Event,
}

/// The serial port.
pub struct Port {
    shared: Arc<Shared>,
    /// Columns and rows of the terminal, if there is one.
    screen: Option<(u32, u32)>,
    /// Decodes the line as a stream if there is no terminal.
    stream: Unquote,
    /// Whether a client waits for input.
    wanted: bool,
}

impl Port {
    /// Opens the device and starts the thread that waits for its interrupt.
    pub fn open(device: &Declared<devices::Port>, screen: Option<(u32, u32)>) -> Result<Port, Status> {
        let devices::Port { registers, line: interrupt } = device.open()?;
        let mut input = Vec::with_capacity(INPUT_BYTES);
        let uart = Uart::start(registers, &mut input).map_err(|NoDevice| Status::DeviceError)?;
        let line = Line { uart, input, reader: None, lost: false };
        let shared = Arc::new(Shared { line: Mutex::new(line), room: Event::auto()? });
        let waiting = Arc::clone(&shared);
        // The thread runs until the process ends.
        drop(sip::thread::spawn(move || wait_for_interrupts(&waiting, &interrupt))?);
        Ok(Port { shared, screen, stream: Unquote::new(), wanted: false })
    }
}

/// Takes received input, or registers the waker. An empty result is the end of the line.
fn take_input(shared: &Shared, context: &Context<'_>) -> Option<Vec<u8>> {
    let mut line = shared.line.lock();
    if line.input.is_empty() && !line.lost {
        line.reader = Some(context.waker().clone());
        return None;
    }
    if !line.lost && !line.uart.is_receiving() {
        line.uart.start_receiving();
    }
    // The interrupt's thread appends to it, and does not allocate.
    Some(core::mem::replace(&mut line.input, Vec::with_capacity(INPUT_BYTES)))
}

impl console_server::Port for Port {
    fn is_terminal(&self) -> bool {
        self.screen.is_some()
    }

    fn columns_and_rows(&self) -> (u32, u32) {
        self.screen.unwrap_or_default()
    }

    fn want_input(&mut self) -> Result<(), Status> {
        self.wanted = true;
        Ok(())
    }

    fn poll_input(&mut self, context: &mut Context<'_>) -> Poll<Vec<u8>> {
        if !self.wanted {
            // Input is buffered meanwhile; flow control holds back the rest at the sender.
            return Poll::Pending;
        }
        let shared = &self.shared;
        let arrived = || take_input(shared, context);
        let input = if self.screen.is_some() { arrived() } else { self.stream.next(arrived) };
        self.wanted = input.is_none();
        input.map_or(Poll::Pending, Poll::Ready)
    }

    fn write(&self, bytes: &[u8]) -> Result<(), Status> {
        let mut rest = bytes;
        let mut polls = 0;
        while !rest.is_empty() {
            let mut line = self.shared.line.lock();
            let count = line.uart.transmit(rest).map_err(|NoDevice| Status::DeviceError)?;
            if count == 0 && polls == MAX_POLLS {
                line.uart.announce_room();
                drop(line);
                let _ = self.shared.room.wait_until(Deadline::after_ms(POLL_MS));
                polls = 0;
            } else {
                polls = if count == 0 { polls + 1 } else { 0 };
                rest = &rest[count..];
            }
        }
        Ok(())
    }
}

/// Serves the device after each interrupt, as long as it works.
fn wait_for_interrupts(shared: &Shared, interrupt: &Interrupt) {
    // The first wait unmasks the line; only then may the device interrupt, or its first interrupt would be lost.
    let _ = interrupt.wait(Deadline::PASSED);
    shared.line.lock().uart.start_receiving();
    while serve(shared) {
        // The kernel masks the line of an interrupt storm.
        if let Err(status) = interrupt.wait(Deadline::NEVER) {
            stdio::report::error(format_args!("the serial port cannot be waited for: {}", status.text()));
            break;
        }
    }
    let mut line = shared.line.lock();
    line.lost = true;
    line.reader.take().into_iter().for_each(Waker::wake);
    shared.room.set();
}

/// Handles everything that the device has pending. Returns whether it still works.
fn serve(shared: &Shared) -> bool {
    for _ in 0..MAX_ROUNDS {
        let mut guard = shared.line.lock();
        let line = &mut *guard;
        let Ok(served) = line.uart.serve(&mut line.input) else {
            stdio::report::error(format_args!("the serial port has stopped responding"));
            return false;
        };
        if !line.input.is_empty() {
            line.reader.take().into_iter().for_each(Waker::wake);
        }
        if served.room {
            shared.room.set();
        }
        if !served.more {
            return true;
        }
    }
    stdio::report::error(format_args!("the serial port's interrupt storm does not end"));
    false
}
