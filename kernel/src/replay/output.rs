//! What a program that is replayed shows: its writes to consoles and to the debug output.

use core::sync::atomic::{AtomicU64, Ordering};

use hal_api::{DeviceKind, DeviceOperation, DeviceRequest, Submitted};

use crate::debug_output;
use crate::machine::machine;

use super::position;

/// Writes that the machine's console has completed.
static COMPLETED: AtomicU64 = AtomicU64::new(0);
/// Nanoseconds after which the console is looked at again.
const LOOK_NS: u64 = 1_000_000;

/// Writes to the machine's console, and waits for it: the memory is the program's.
pub fn console(bytes: &[u8]) {
    if position::is_shown() {
        return;
    }
    let is_console = |device: &hal_api::Device| matches!(device.kind, DeviceKind::Console { .. });
    let Some(device) = machine().devices().iter().position(is_console) else { return };
    let before = COMPLETED.load(Ordering::Acquire);
    let (address, bytes) = (bytes.as_ptr().addr(), bytes.len());
    let operation = DeviceOperation::Write;
    let request = DeviceRequest { device, token: before, operation, offset: 0, address, bytes };
    if let Submitted::Queued = machine().device_submit(request) {
        while COMPLETED.load(Ordering::Acquire) == before {
            machine().idle(0, machine().monotonic_ns() + LOOK_NS);
        }
    }
}

/// Called by the machine when a write is complete.
pub extern "C" fn completed(_token: u64, _done: u64, _failed: bool) {
    COMPLETED.fetch_add(1, Ordering::AcqRel);
    machine().wake(0);
}

/// Writes debug text of a program.
pub fn debug(program: &str, bytes: &[u8]) {
    if !position::is_shown() {
        debug_output::lines_of(program, bytes);
    }
}

/// Writes a line of the replay's own.
pub fn line(text: core::fmt::Arguments<'_>) {
    if !position::is_shown() {
        debug_output::line(text);
    }
}
