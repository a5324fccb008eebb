//! The serial port of a PC: a 16550 with FIFOs, over whatever reaches its eight registers.
//!
//! Key types: [`Uart`], [`Ports`] (the access to registers). Everything here ends after a bounded number of
//! accesses, whatever the device answers. (The crate `uart_16550` waits for the device without a bound, and its
//! accesses are unsafe functions, which a driver may not implement.) Register names and bits: National
//! Semiconductor, *PC16550D*, 1995, section 8. Deliberately not here: waiting, and what the bytes mean.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod registers;

use alloc::vec::Vec;

use registers::{fifo, identification, interrupts, line, line_control, modem_control, offset};

/// Bytes that the transmitter takes at once when it is empty.
pub const FIFO_BYTES: usize = 16;
/// How many interrupt causes [`Uart::serve`] looks at before it gives up.
const CAUSES: usize = 32;
/// How many bytes are read from the receiver in a row: more than any FIFO holds.
const RECEIVED_IN_A_ROW: usize = 256;

/// Access to the registers, by their offset (0 to 7).
pub trait Ports {
    /// Reads one; what cannot be read is 0xff, as where no device answers.
    fn read(&mut self, offset: u8) -> u8;
    /// Writes one.
    fn write(&mut self, offset: u8, value: u8);
}

/// No serial port answers at these registers, or not any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoDevice;

/// What [`Uart::serve`] found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// The transmitter is empty; asked for by [`Uart::announce_room`].
    pub room: bool,
    /// Bytes came faster than they were taken, and some are lost.
    pub overrun: bool,
    /// More causes of interrupts are left: serve again.
    pub more: bool,
}

/// A serial port.
#[derive(Debug)]
pub struct Uart<P> {
    ports: P,
    /// The interrupt enable register as it was written.
    interrupts: u8,
    receiving: bool,
}

impl<P: Ports> Uart<P> {
    /// Takes over a port and sets it up: 115,200 baud, 8 bits, no parity, FIFOs, interrupts off. Bytes that had
    /// been received are appended to `input`.
    pub fn start(mut ports: P, input: &mut Vec<u8>) -> Result<Uart<P>, NoDevice> {
        ports.write(offset::LINE_CONTROL, line_control::BITS_8);
        // Nothing hangs on the scratch register, so a device that keeps its bytes is there.
        for pattern in [0x5a, 0xa5] {
            ports.write(offset::SCRATCH, pattern);
            if ports.read(offset::SCRATCH) != pattern {
                return Err(NoDevice);
            }
        }
        ports.write(offset::INTERRUPTS, 0);
        ports.write(offset::LINE_CONTROL, line_control::DIVISOR | line_control::BITS_8);
        ports.write(offset::DIVISOR_LOW, 1);
        ports.write(offset::DIVISOR_HIGH, 0);
        ports.write(offset::LINE_CONTROL, line_control::BITS_8);
        let had_fifos = ports.read(offset::IDENTIFICATION) & identification::FIFOS == identification::FIFOS;
        let mut uart = Uart { ports, interrupts: 0, receiving: false };
        if !had_fifos {
            // Switching the FIFOs on empties them, so what has been received is read just before.
            uart.receive(input, usize::MAX)?;
            uart.ports.write(offset::FIFO, fifo::ENABLE | fifo::CLEAR_RECEIVER | fifo::CLEAR_TRANSMITTER);
        }
        uart.ports.write(offset::FIFO, fifo::ENABLE | fifo::TRIGGER_8);
        uart.ports.write(offset::MODEM_CONTROL, modem_control::TERMINAL_READY | modem_control::INTERRUPT_LINE);
        uart.ports.read(offset::MODEM_STATUS);
        Ok(uart)
    }

    /// Takes care of everything that interrupts: appends what was received to `input`, as long as that is shorter
    /// than `limit`, and then stops receiving. To be called after an interrupt, before waiting for the next.
    pub fn serve(&mut self, input: &mut Vec<u8>, limit: usize) -> Result<Served, NoDevice> {
        let mut served = Served::default();
        for _ in 0..CAUSES {
            let cause = self.ports.read(offset::IDENTIFICATION);
            if cause & identification::NONE_PENDING != 0 {
                return if cause == u8::MAX { Err(NoDevice) } else { Ok(served) };
            }
            match cause & identification::CAUSE {
                identification::LINE_STATUS | identification::RECEIVED | identification::RECEIVED_SOME => {
                    served.overrun |= self.receive(input, limit)?;
                }
                identification::TRANSMITTER_EMPTY => {
                    served.room = true;
                    self.set_interrupts(self.interrupts & !interrupts::TRANSMITTER_EMPTY);
                }
                // Reading it takes the cause away.
                _ => drop(self.ports.read(offset::MODEM_STATUS)),
            }
        }
        Ok(Served { more: true, ..served })
    }

    /// Lets bytes come in and interrupt.
    pub fn start_receiving(&mut self) {
        self.receiving = true;
        self.set_interrupts(self.interrupts | interrupts::RECEIVED | interrupts::LINE_STATUS);
        let ready = modem_control::TERMINAL_READY | modem_control::REQUEST_TO_SEND;
        self.ports.write(offset::MODEM_CONTROL, ready | modem_control::INTERRUPT_LINE);
    }

    /// Whether bytes may come in.
    pub fn is_receiving(&self) -> bool {
        self.receiving
    }

    /// Asks the other side to send nothing, and leaves what comes in the device.
    fn stop_receiving(&mut self) {
        self.receiving = false;
        self.set_interrupts(self.interrupts & !(interrupts::RECEIVED | interrupts::LINE_STATUS));
        self.ports.write(offset::MODEM_CONTROL, modem_control::TERMINAL_READY | modem_control::INTERRUPT_LINE);
    }

    /// Hands over the first of these bytes, at most [`FIFO_BYTES`]: how many. None if the transmitter is not
    /// empty.
    pub fn transmit(&mut self, bytes: &[u8]) -> Result<usize, NoDevice> {
        if self.line_status()? & line::TRANSMITTER_EMPTY == 0 {
            return Ok(0);
        }
        let count = bytes.len().min(FIFO_BYTES);
        for &byte in &bytes[..count] {
            self.ports.write(offset::DATA, byte);
        }
        Ok(count)
    }

    /// Interrupts once the transmitter is empty, also if it is already: [`Served::room`].
    pub fn announce_room(&mut self) {
        self.set_interrupts(self.interrupts | interrupts::TRANSMITTER_EMPTY);
    }

    fn set_interrupts(&mut self, enabled: u8) {
        self.interrupts = enabled;
        self.ports.write(offset::INTERRUPTS, enabled);
    }

    fn line_status(&mut self) -> Result<u8, NoDevice> {
        match self.ports.read(offset::LINE_STATUS) {
            u8::MAX => Err(NoDevice),
            status => Ok(status),
        }
    }

    /// Reads what was received. Whether bytes were lost.
    fn receive(&mut self, input: &mut Vec<u8>, limit: usize) -> Result<bool, NoDevice> {
        let mut overrun = false;
        for _ in 0..RECEIVED_IN_A_ROW {
            if input.len() >= limit {
                self.stop_receiving();
                break;
            }
            let status = self.line_status()?;
            overrun |= status & line::OVERRUN != 0;
            if status & line::RECEIVED == 0 {
                break;
            }
            let byte = self.ports.read(offset::DATA);
            // A break is a line held low, which looks like a zero byte.
            if status & line::BREAK == 0 {
                input.push(byte);
            }
        }
        Ok(overrun)
    }
}
