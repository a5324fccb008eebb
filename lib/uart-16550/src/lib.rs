//! A 16550 UART with FIFOs, over an abstract access to its eight registers.
//!
//! Key types: [`Uart`], [`Registers`] (its register map). All functions end after a bounded number of accesses,
//! regardless of the device's responses. (The crate `uart_16550` waits for the device without bound, and its accesses
//! are unsafe functions, which a driver may not implement.) Deliberately not here: waiting, and the meaning of the
//! bytes.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod registers;

use alloc::vec::Vec;

use layout::Access;

pub use registers::Registers;
use registers::{FIFOS_ON, Fifo, Interrupts, LineControl, LineStatus, ModemControl, TRIGGER_8, cause};

/// Size of the transmit FIFO, in bytes.
pub const FIFO_BYTES: usize = 16;
/// Maximum interrupt causes handled per call of [`Uart::serve`].
const CAUSES: usize = 32;
/// Maximum bytes read from the receiver per cause: more than any FIFO holds.
const RECEIVED_IN_A_ROW: usize = 256;

/// 8 bits per character.
const BITS_8: LineControl = LineControl::NONE.with_character(3);
/// DTR and OUT2, which connects the interrupt line.
const READY: ModemControl = ModemControl::NONE.with_terminal_ready(true).with_interrupt_line(true);
/// Value read where no device responds.
const NOBODY: u8 = u8::MAX;

/// There is no serial port at these registers, or no longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoDevice;

/// The result of [`Uart::serve`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// The transmitter is empty; requested by [`Uart::announce_room`].
    pub room: bool,
    /// Receiver overrun: bytes were lost.
    pub overrun: bool,
    /// More interrupt causes are pending: serve again.
    pub more: bool,
}

/// A serial port.
#[derive(Debug)]
pub struct Uart<A> {
    registers: Registers<A>,
    /// The interrupt enable register as written.
    interrupts: Interrupts,
    receiving: bool,
}

impl<A: Access<u8>> Uart<A> {
    /// Initializes the port: 115,200 baud, 8N1, FIFOs enabled, interrupts disabled. Bytes received before are appended
    /// to `input`.
    pub fn start(registers: Registers<A>, input: &mut Vec<u8>) -> Result<Uart<A>, NoDevice> {
        registers.line_control().write(BITS_8);
        // The scratch register has no function, so a device that stores its bytes is present.
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
            // Enabling the FIFOs clears them, so received bytes are read just before.
            input.reserve(RECEIVED_IN_A_ROW);
            uart.receive(input)?;
            uart.registers.fifo().write(on.with_clear_receiver(true).with_clear_transmitter(true));
        }
        uart.registers.fifo().write(on.with_trigger(TRIGGER_8));
        uart.registers.modem_control().write(READY);
        uart.registers.modem_status().read();
        Ok(uart)
    }

    /// Handles all interrupt causes: appends received bytes to `input` up to its capacity, then stops receiving. To be
    /// called after an interrupt, before waiting for the next. Neither allocates nor panics.
    ///
    /// # Errors
    /// The device is gone.
    // A function of its own, so that the manifest of a driver can make assertions about it.
    #[inline(never)]
    pub fn serve(&mut self, input: &mut Vec<u8>) -> Result<Served, NoDevice> {
        let mut served = Served::default();
        for _ in 0..CAUSES {
            let identification = self.registers.identification().read();
            if identification.none_pending() {
                return if identification.bits() == NOBODY { Err(NoDevice) } else { Ok(served) };
            }
            match identification.cause() {
                cause::LINE_STATUS | cause::RECEIVED | cause::RECEIVED_SOME => {
                    served.overrun |= self.receive(input)?;
                }
                cause::TRANSMITTER_EMPTY => {
                    served.room = true;
                    self.set_interrupts(self.interrupts.with_transmitter_empty(false));
                }
                // Reading it clears the cause.
                _ => {
                    self.registers.modem_status().read();
                }
            }
        }
        Ok(Served { more: true, ..served })
    }

    /// Enables reception and its interrupt.
    pub fn start_receiving(&mut self) {
        self.receiving = true;
        self.set_interrupts(self.interrupts.with_received(true).with_line_status(true));
        self.registers.modem_control().write(READY.with_request_to_send(true));
    }

    /// Whether reception is enabled.
    pub fn is_receiving(&self) -> bool {
        self.receiving
    }

    /// Deasserts RTS, and leaves received bytes in the device.
    fn stop_receiving(&mut self) {
        self.receiving = false;
        self.set_interrupts(self.interrupts.with_received(false).with_line_status(false));
        self.registers.modem_control().write(READY);
    }

    /// Writes the first of these bytes to the transmitter, at most [`FIFO_BYTES`]; returns their number, which is 0 if
    /// it is not empty.
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

    /// Requests an interrupt once the transmitter is empty, even if it is already: [`Served::room`].
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

    /// Reads received bytes; returns whether bytes were lost.
    fn receive(&mut self, input: &mut Vec<u8>) -> Result<bool, NoDevice> {
        let mut overrun = false;
        for _ in 0..RECEIVED_IN_A_ROW {
            if input.len() >= input.capacity() {
                self.stop_receiving();
                break;
            }
            let status = self.line_status()?;
            overrun |= status.overrun();
            if !status.received() {
                break;
            }
            let byte = self.registers.received().read();
            // The second condition always holds, and tells the compiler that the list does not grow.
            if !status.is_break() && input.len() < input.capacity() {
                input.push(byte);
            }
        }
        Ok(overrun)
    }
}
