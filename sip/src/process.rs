//! Child processes, and ending the own process.
//!
//! A child is created from the manifest of an installed program, given its parameters and endpoints by
//! their index in that manifest, started, and waited for. Its end is an [`Epitaph`]. Deliberately
//! not here: the lookup of a typed command among the installed programs.

use alloc::string::String;
use core::fmt;

use abi::limits;
pub use abi::{EpitaphKind, StopReason};

use crate::channel::TypedEndpoint;
use crate::debug::Sink;
use crate::{Deadline, Status, raw, thread_block};

/// The end of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Epitaph {
    /// Kind of end.
    pub kind: EpitaphKind,
    /// The exit status if it exited; else a number whose meaning depends on the kind.
    pub status: i32,
    /// One human-readable line; empty when there is nothing to add.
    pub text: String,
}

impl Epitaph {
    /// Returns whether it exited by itself with status 0.
    pub fn is_success(&self) -> bool {
        self.kind == EpitaphKind::Exited && self.status == 0
    }
}

impl fmt::Display for Epitaph {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            EpitaphKind::Exited => write!(formatter, "exited with status {}", self.status),
            _ => formatter.write_str(&self.text),
        }
    }
}

/// Reason why a child could not be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateError {
    /// The error.
    pub status: Status,
    /// The reason, human-readable.
    pub reason: String,
}

impl fmt::Display for CreateError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.reason)
    }
}

/// A child process. Dropping it does not end the process: once started it keeps running.
#[derive(Debug)]
#[must_use = "a child that is created does nothing until it is started"]
pub struct Child {
    handle: u64,
}

/// Ends this process with an epitaph of this text, cut to [`TEXT_BYTES`](abi::limits::TEXT_BYTES), as a panic does.
pub fn fail(reason: core::fmt::Arguments<'_>) -> ! {
    crate::entry::end_as_panicked(reason)
}

/// Creates a child from an installed program's manifest. It does not run yet.
pub fn create(program: &str) -> Result<Child, CreateError> {
    match thread_block::put_bytes(program.as_bytes()).and_then(raw::value::process_create) {
        Ok(handle) => Ok(Child { handle }),
        Err(Status::Refused) => Err(CreateError { status: Status::Refused, reason: thread_block::refusal() }),
        Err(status) => Err(CreateError { status, reason: String::from(status.text()) }),
    }
}

impl Child {
    /// Makes its principal that of a program invoked by this process: this process's own, joined to the child's. To be called
    /// before it is given endpoints. [`Status::TooLarge`] if the chain of invokers is too long.
    pub fn invoke(self) -> Result<Child, Status> {
        raw::value::process_invoke(self.handle, 0)?;
        Ok(self)
    }

    /// Like [`invoke`](Child::invoke), in a role, `[a-z][a-z0-9-]*`. Needs the `assign-role` permission.
    pub fn invoke_in_role(self, role: &str) -> Result<Child, Status> {
        if role.is_empty() || role.len() > limits::ROLE_BYTES {
            return Err(Status::BadArgument);
        }
        raw::value::process_invoke(self.handle, thread_block::put_bytes(role.as_bytes())?)?;
        Ok(self)
    }

    /// Passes it the value of the parameter at `index` of its manifest, as text.
    pub fn parameter(self, index: usize, value: &str) -> Result<Child, Status> {
        self.give_bytes(index, value.as_bytes())?;
        Ok(self)
    }

    /// Passes it one more value of a repeated parameter; `BadArgument` for a value with a zero byte.
    pub fn repeated_parameter(self, index: usize, value: &str) -> Result<Child, Status> {
        if value.as_bytes().contains(&0) {
            return Err(Status::BadArgument);
        }
        self.give_bytes(index, value.as_bytes())?;
        self.give_bytes(index, &[0])?;
        Ok(self)
    }

    /// Passes it an endpoint for the slot at `slot` of its manifest; contract, side and state must be as the slot declares. On
    /// error the endpoint is closed.
    pub fn endpoint<E: TypedEndpoint>(self, slot: usize, endpoint: E) -> Result<Child, Status> {
        let endpoint = endpoint.into_raw();
        raw::value::process_give_endpoint(self.handle, slot as u64, endpoint.handle())?;
        endpoint.forget();
        Ok(self)
    }

    /// Assigns it the machine's device of this name, for the device at `index` of its manifest. The default is
    /// the device with the manifest's own name. Needs the `system-manifest` permission.
    pub fn device(self, index: usize, machine_name: &str) -> Result<Child, Status> {
        let length = thread_block::put_bytes(machine_name.as_bytes())?;
        raw::value::process_give_device(self.handle, index as u64, length)?;
        Ok(self)
    }

    /// Sends debug text of the child and its descendants to a sink of this process. The default is the sink of this
    /// process, if it has one.
    pub fn debug_sink(self, sink: &Sink) -> Result<Child, Status> {
        raw::value::debug_sink_give(self.handle, sink.handle())?;
        Ok(self)
    }

    /// Starts it.
    pub fn start(self) -> Result<Child, Status> {
        raw::value::process_start(self.handle)?;
        Ok(self)
    }

    /// Begins to end it and its children; [`wait`](Child::wait) returns when it has ended.
    pub fn stop(&self, reason: StopReason) -> Result<(), Status> {
        raw::value::process_stop(self.handle, reason as u64).map(drop)
    }

    /// Waits until it has ended.
    pub fn wait(&self) -> Result<Epitaph, Status> {
        self.wait_until(Deadline::NEVER)
    }

    /// Waits until it has ended; `TimedOut` at the deadline.
    pub fn wait_until(&self, deadline: Deadline) -> Result<Epitaph, Status> {
        let kind = raw::value::process_wait(self.handle, deadline.as_ns())?;
        let status = thread_block::message_word(0) as i32;
        let length = thread_block::message_word(1);
        let text = thread_block::text(16, length);
        Ok(Epitaph { kind: EpitaphKind::from_number(kind).ok_or(Status::Unknown)?, status, text })
    }

    /// Returns its process id, as in diagnostics.
    pub fn id(&self) -> Result<u64, Status> {
        raw::value::process_id_of(self.handle)
    }

    pub(crate) fn handle(&self) -> u64 {
        self.handle
    }

    fn give_bytes(&self, index: usize, bytes: &[u8]) -> Result<(), Status> {
        // An empty value is passed as well: it differs from no value.
        let mut rest = bytes;
        loop {
            let (piece, later) = rest.split_at(rest.len().min(limits::TEXT_BYTES));
            raw::value::process_give_parameter(self.handle, index as u64, thread_block::put_bytes(piece)?)?;
            if later.is_empty() {
                return Ok(());
            }
            rest = later;
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // This value owns the handle, so the kernel cannot refuse it.
        let _ = raw::value::process_release(self.handle);
    }
}

/// Returns the process's own id.
pub fn id() -> u64 {
    raw::value::process_id().unwrap_or(0)
}

/// Ends the process with an exit status.
pub fn exit(status: i32) -> ! {
    loop {
        // Does not return.
        let _ = raw::value::process_exit(status as u32 as u64);
    }
}

/// Ends the process with this id. Needs the manifest's `stop-any` permission.
pub fn stop_any(process_id: u64, reason: StopReason) -> Result<(), Status> {
    raw::value::process_stop_any(process_id, reason as u64).map(drop)
}
