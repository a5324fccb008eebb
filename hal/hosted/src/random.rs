//! The device `random0`: random bytes of the host, which has them at once.
//!
//! Deliberately not here: stretching, and seeds of the system's own.

use hal_api::{DeviceFailure, DeviceOperation, Submitted};

use crate::transfer::{self, Memory};

/// Bytes that one request gets at most, so that none keeps its processor for long.
const BYTES_MAX: usize = 16 * 1024;

/// Fills the memory, or its beginning.
pub(crate) fn submit(operation: DeviceOperation, memory: Memory) -> Submitted {
    Submitted::Complete(match operation {
        DeviceOperation::Read => transfer::random(memory.first(BYTES_MAX)).map_err(|_| DeviceFailure),
        DeviceOperation::Write | DeviceOperation::Flush => Err(DeviceFailure),
    })
}
