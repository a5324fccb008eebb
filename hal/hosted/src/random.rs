//! The device `random0`: random bytes of the host, available without blocking.
//!
//! Deliberately not here: a generator or seed of the system's own.

use hal_api::{DeviceFailure, DeviceOperation, Submitted};

use crate::transfer::{self, Memory};

/// Maximum bytes per request, so that none keeps its processor for long.
const BYTES_MAX: usize = 16 * 1024;

/// Fills the memory, or the beginning of it.
pub(crate) fn submit(operation: DeviceOperation, memory: Memory) -> Submitted {
    Submitted::Complete(match operation {
        DeviceOperation::Read => transfer::random(memory.first(BYTES_MAX)).map_err(|_| DeviceFailure),
        DeviceOperation::Write | DeviceOperation::Flush => Err(DeviceFailure),
    })
}
