//! ABI functions, one handler each: decode the claims, check them, act, return.

mod channels;
mod configuration;
mod debugging;
mod exchange;
mod hardware;
mod memory;
mod processes;
mod threads;

pub use channels::*;
pub use configuration::*;
pub use debugging::*;
pub use exchange::*;
pub use hardware::*;
pub use memory::*;
pub use processes::*;
pub use threads::*;

use abi::Status;
use alloc::string::String;

use crate::cpu;
use crate::process::ProcessRef;
use crate::thread::{MessageBuffer, ThreadRef};

/// Caller of an ABI function.
#[derive(Clone, Copy)]
struct Caller {
    thread: ThreadRef,
    process: ProcessRef,
    buffer: MessageBuffer,
}

/// The calling thread, its SIP and its message buffer.
#[inline(always)]
fn caller() -> Result<Caller, Status> {
    let thread = cpu::current();
    let process = thread.owner().ok_or(Status::BadHandle)?;
    Ok(Caller { thread, process, buffer: thread.message() })
}

impl Caller {
    /// Reads text from the buffer.
    fn text(&self, length: u64) -> Result<String, Status> {
        let length = usize::try_from(length).map_err(|_| Status::TooLarge)?;
        let bytes = self.buffer.bytes(length).ok_or(Status::TooLarge)?;
        String::from_utf8(bytes).map_err(|_| Status::BadArgument)
    }

    /// Fails unless the caller's manifest has the permission.
    fn needs(&self, permission: manifest_model::Permission) -> Result<(), Status> {
        let permitted = self.process.program.get().is_some_and(|program| program.manifest.permits(permission));
        if permitted {
            return Ok(());
        }
        self.process.audit_refusal(permission.word(), "the kernel", "its manifest has no such permission");
        Err(Status::NotPermitted)
    }
}
