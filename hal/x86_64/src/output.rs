//! The kernel's own output: to QEMU's debug port if there is one, else to the first serial port.
//!
//! Polled, so that it works in any state of the machine. The console belongs to the serial driver, a SIP.

use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};

use x86_64::instructions::port::{Port, PortReadOnly};

/// QEMU's and Bochs's debug port; if present, reading it returns its own number.
const DEBUG_PORT: u16 = 0xe9;
const SERIAL_DATA: u16 = 0x3f8;
const SERIAL_STATUS: u16 = 0x3fd;
const TRANSMITTER_EMPTY: u8 = 1 << 5;
/// Reads of the status after which the serial port is considered dead.
const TIMEOUT: u32 = 100_000;

static HAS_DEBUG_PORT: AtomicBool = AtomicBool::new(false);

/// First byte on QEMU's debug port: from now on the serial port accepts input without losing any.
const READY: u8 = 1;

/// Detects the debug port, and sets up the first serial port: 115,200 baud, 8 bits, no parity, one stop
/// bit, FIFOs on. They stay on: switching them discards received bytes.
pub(crate) fn start() {
    for (register, value) in [(1, 0), (3, 0x80), (0, 1), (1, 0), (3, 0x03), (2, 0x01), (4, 0x03)] {
        // SAFETY: these are the registers of a 16550 at their usual place; no driver runs yet.
        unsafe { Port::<u8>::new(SERIAL_DATA + register).write(value) };
    }
    // SAFETY: reading the port has no effect if there is no such device.
    let answer = unsafe { PortReadOnly::<u8>::new(DEBUG_PORT).read() };
    HAS_DEBUG_PORT.store(answer == DEBUG_PORT as u8, Ordering::Relaxed);
    if has_debug_port() {
        debug_byte(READY);
    }
}

/// Returns whether there is a debug port.
pub(crate) fn has_debug_port() -> bool {
    HAS_DEBUG_PORT.load(Ordering::Relaxed)
}

/// Writes bytes.
pub(crate) fn write(bytes: &[u8]) {
    for &byte in bytes {
        if has_debug_port() {
            debug_byte(byte);
        } else {
            if byte == b'\n' {
                serial_byte(b'\r');
            }
            serial_byte(byte);
        }
    }
}

/// Writes a byte to the debug port.
pub(crate) fn debug_byte(byte: u8) {
    // SAFETY: the debug port only takes bytes.
    unsafe { Port::<u8>::new(DEBUG_PORT).write(byte) };
}

fn serial_byte(byte: u8) {
    for _ in 0..TIMEOUT {
        // SAFETY: reading the line status changes nothing that the driver relies on.
        if unsafe { PortReadOnly::<u8>::new(SERIAL_STATUS).read() } & TRANSMITTER_EMPTY != 0 {
            break;
        }
    }
    // SAFETY: a byte for transmission; at worst it is interleaved with the driver's.
    unsafe { Port::<u8>::new(SERIAL_DATA).write(byte) };
}

/// The output as a `fmt::Write`.
pub(crate) struct Output;

impl fmt::Write for Output {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        write(text.as_bytes());
        Ok(())
    }
}
