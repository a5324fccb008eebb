//! What the kernel itself says: on QEMU's debug port where there is one, else on the first serial line.
//!
//! Polled, so that it works in any state of the machine. The console is the serial driver's, a SIP's.

use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};

use x86_64::instructions::port::{Port, PortReadOnly};

/// QEMU's and Bochs's debug port; reading it where it is answers its own number.
const DEBUG_PORT: u16 = 0xe9;
const SERIAL_DATA: u16 = 0x3f8;
const SERIAL_STATUS: u16 = 0x3fd;
const TRANSMITTER_EMPTY: u8 = 1 << 5;
/// Reads of the status after which the serial line is taken for dead.
const TIMEOUT: u32 = 100_000;

static HAS_DEBUG_PORT: AtomicBool = AtomicBool::new(false);

/// First thing on QEMU's debug port: the serial line takes input from now on without losing any.
const READY: u8 = 1;

/// Finds out where to write, and sets the first serial line up: 115,200 baud, 8 bits, no parity, one stop
/// bit, buffers on. They stay on: switching them throws away what has come.
pub(crate) fn start() {
    for (register, value) in [(1, 0), (3, 0x80), (0, 1), (1, 0), (3, 0x03), (2, 0x01), (4, 0x03)] {
        // SAFETY: these are the registers of a 16550 at their usual place; no driver runs yet.
        unsafe { Port::<u8>::new(SERIAL_DATA + register).write(value) };
    }
    // SAFETY: reading the port has no effect where there is no such device.
    let answer = unsafe { PortReadOnly::<u8>::new(DEBUG_PORT).read() };
    HAS_DEBUG_PORT.store(answer == DEBUG_PORT as u8, Ordering::Relaxed);
    if has_debug_port() {
        debug_byte(READY);
    }
}

/// Whether a debug port listens.
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
    // SAFETY: a byte for transmission; at worst it goes between two of the driver's.
    unsafe { Port::<u8>::new(SERIAL_DATA).write(byte) };
}

/// The output as something to format to.
pub(crate) struct Output;

impl fmt::Write for Output {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        write(text.as_bytes());
        Ok(())
    }
}
