//! The serial port of a PC: a 16550 with FIFOs, over whatever reaches its eight registers.
//!
//! Key types: [`Uart`], [`Registers`] (the map of its registers). Everything here ends after a bounded number of
//! accesses, whatever the device answers. (The crate `uart_16550` waits for the device without a bound, and its
//! accesses are unsafe functions, which a driver may not implement.) Deliberately not here: waiting, and what the
//! bytes mean.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod registers;

use alloc::vec::Vec;

use layout::Access;

pub use registers::Registers;
use registers::{FIFOS_ON, Fifo, Interrupts, LineControl, LineStatus, ModemControl, TRIGGER_8, cause};

/// Bytes that the transmitter takes at once when it is empty.
pub const FIFO_BYTES: usize = 16;
/// How many interrupt causes [`Uart::serve`] looks at before it gives up.
const CAUSES: usize = 32;
/// How many bytes are read from the receiver in a row: more than any FIFO holds.
const RECEIVED_IN_A_ROW: usize = 256;

/// A character has 8 bits.
const BITS_8: LineControl = LineControl::NONE.with_character(3);
/// Somebody is here, and the interrupt line is connected.
const READY: ModemControl = ModemControl::NONE.with_terminal_ready(true).with_interrupt_line(true);
/// As a register reads where no device answers.
const NOBODY: u8 = u8::MAX;

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
pub struct Uart<A> {
    registers: Registers<A>,
    /// The interrupt enable register as it was written.
    interrupts: Interrupts,
    receiving: bool,
}

impl<A: Access<u8>> Uart<A> {
    /// Takes over a port and sets it up: 115,200 baud, 8 bits, no parity, FIFOs, interrupts off. Bytes that had
    /// been received are appended to `input`.
    pub fn start(registers: Registers<A>, input: &mut Vec<u8>) -> Result<Uart<A>, NoDevice> {
        registers.line_control().write(BITS_8);
        // Nothing hangs on the scratch register, so a device that keeps its bytes is there.
        for pattern in [0x5a, 0xa5] {
            registers.scratch().write(pattern);
            if registers.scratch().read() != pattern {
                return Err(NoDevice);
            }
        }
        registers.interrupts().write(Interrupts::NONE);
        registers.line_control().write(BITS_8.with_divisor(true));
        registers.divisor_low().write(1);
        registers.divisor_high().write(0);
        registers.line_control().write(BITS_8);
        let had_fifos = registers.identification().read().fifos() == FIFOS_ON;
        let mut uart = Uart { registers, interrupts: Interrupts::NONE, receiving: false };
        let on = Fifo::NONE.with_enable(true);
        if !had_fifos {
            // Switching the FIFOs on empties them, so what has been received is read just before.
            uart.receive(input, usize::MAX)?;
            uart.registers.fifo().write(on.with_clear_receiver(true).with_clear_transmitter(true));
        }
        uart.registers.fifo().write(on.with_trigger(TRIGGER_8));
        uart.registers.modem_control().write(READY);
        uart.registers.modem_status().read();
        Ok(uart)
    }

    /// Takes care of everything that interrupts: appends what was received to `input`, as long as that is shorter
    /// than `limit`, and then stops receiving. To be called after an interrupt, before waiting for the next.
    pub fn serve(&mut self, input: &mut Vec<u8>, limit: usize) -> Result<Served, NoDevice> {
        let mut served = Served::default();
        for _ in 0..CAUSES {
            let identification = self.registers.identification().read();
            if identification.none_pending() {
                return if identification.bits() == NOBODY { Err(NoDevice) } else { Ok(served) };
            }
            match identification.cause() {
                cause::LINE_STATUS | cause::RECEIVED | cause::RECEIVED_SOME => {
                    served.overrun |= self.receive(input, limit)?;
                }
                cause::TRANSMITTER_EMPTY => {
                    served.room = true;
                    self.set_interrupts(self.interrupts.with_transmitter_empty(false));
                }
                // Reading it takes the cause away.
                _ => {
                    self.registers.modem_status().read();
                }
            }
        }
        Ok(Served { more: true, ..served })
    }

    /// Lets bytes come in and interrupt.
    pub fn start_receiving(&mut self) {
        self.receiving = true;
        self.set_interrupts(self.interrupts.with_received(true).with_line_status(true));
        self.registers.modem_control().write(READY.with_request_to_send(true));
    }

    /// Whether bytes may come in.
    pub fn is_receiving(&self) -> bool {
        self.receiving
    }

    /// Asks the other side to send nothing, and leaves what comes in the device.
    fn stop_receiving(&mut self) {
        self.receiving = false;
        self.set_interrupts(self.interrupts.with_received(false).with_line_status(false));
        self.registers.modem_control().write(READY);
    }

    /// Hands over the first of these bytes, at most [`FIFO_BYTES`]: how many. None if the transmitter is not
    /// empty.
    pub fn transmit(&mut self, bytes: &[u8]) -> Result<usize, NoDevice> {
        if !self.line_status()?.transmitter_empty() {
            return Ok(0);
        }
        let count = bytes.len().min(FIFO_BYTES);
        for &byte in &bytes[..count] {
            self.registers.send().write(byte);
        }
        Ok(count)
    }

    /// Interrupts once the transmitter is empty, also if it is already: [`Served::room`].
    pub fn announce_room(&mut self) {
        self.set_interrupts(self.interrupts.with_transmitter_empty(true));
    }

    fn set_interrupts(&mut self, enabled: Interrupts) {
        self.interrupts = enabled;
        self.registers.interrupts().write(enabled);
    }

    fn line_status(&mut self) -> Result<LineStatus, NoDevice> {
        let status = self.registers.line_status().read();
        if status.bits() == NOBODY { Err(NoDevice) } else { Ok(status) }
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
            overrun |= status.overrun();
            if !status.received() {
                break;
            }
            let byte = self.registers.received().read();
            if !status.is_break() {
                input.push(byte);
            }
        }
        Ok(overrun)
    }
}
