//! Child processes.

use core::sync::atomic::Ordering;

use abi::limits::{MESSAGE_WORDS, TEXT_BYTES};
use abi::{EpitaphKind, Printable, Status, StopReason};
use alloc::format;
use alloc::string::ToString;
use manifest_model::Permission;

use super::{Caller, caller};
use crate::lifecycle::{self, CreateError};
use crate::process::{Epitaph, PROCESSES, ProcessRef};
use crate::sync::debug_sink;
use crate::wait::{self, Woken};
use crate::{claims, installed, preempt, principal, thread};

pub fn process_create(length: u64) -> Result<u64, Status> {
    let caller = caller()?;
    let name = caller.text(length)?;
    let program = installed::find(&name).ok_or(Status::NotFound)?;
    match lifecycle::create(program, Some(caller.process)) {
        Ok(child) => Ok(child.handle()),
        Err(CreateError::Status(status)) => Err(status),
        Err(CreateError::Refused(why)) => {
            caller.process.audit_refusal("start", &name, &why);
            Err(refused(caller, &why))
        }
    }
}

/// Writes the reason of a refusal to the caller's buffer.
pub(super) fn refused(caller: Caller, why: &str) -> Status {
    let cut = why.floor_char_boundary(TEXT_BYTES - 8);
    caller.buffer.put_bytes(0, &why.as_bytes()[..cut]);
    caller.buffer.set(MESSAGE_WORDS - 1, cut as u64);
    Status::Refused
}

pub fn process_invoke(child: u64, role_length: u64) -> Result<u64, Status> {
    let caller = caller()?;
    let child = claims::child(child)?;
    let role = match role_length {
        0 => None,
        length => Some(caller.text(length)?),
    };
    if let Some(role) = &role {
        caller.needs(Permission::AssignRole)?;
        if !principal::is_role(role) {
            caller.process.audit_refusal("a role", child.name(caller.process), "it is no name of a role");
            return Err(Status::BadArgument);
        }
    }
    let invoked = child.invoke(caller.process, role.as_deref());
    if let Err(Status::TooLarge) = invoked {
        caller.process.audit_refusal("invocation", child.name(caller.process), "its principal would be too long");
    }
    invoked.map(|()| 0)
}

pub fn process_give_parameter(child: u64, index: u64, length: u64) -> Result<u64, Status> {
    let caller = caller()?;
    let child = claims::child(child)?;
    let length = usize::try_from(length).map_err(|_| Status::TooLarge)?;
    let bytes = caller.buffer.bytes(length).ok_or(Status::TooLarge)?;
    let given = child.give_parameter(Some(caller.process), index as usize, &bytes);
    note_beyond_manifest(caller, &given, "parameter", index, || child.name(caller.process));
    given.map(|()| 0)
}

pub fn process_give_endpoint(child: u64, slot: u64, endpoint: u64) -> Result<u64, Status> {
    let caller = caller()?;
    let child = claims::child(child)?;
    let given = child.give_endpoint(caller.process, slot as usize, endpoint);
    note_beyond_manifest(caller, &given, "endpoint", slot, || child.name(caller.process));
    given.map(|()| 0)
}

/// Records a refusal in the audit when an index lies beyond the caller's manifest.
pub(super) fn note_beyond_manifest<T>(
    caller: Caller,
    result: &Result<T, Status>,
    what: &str,
    place: u64,
    program: impl FnOnce() -> &'static str,
) {
    if let Err(Status::NotFound) = result {
        let object = format!("{}, place {place}", program());
        caller.process.audit_refusal(what, &object, "its manifest has no such place");
    }
}

pub fn process_give_device(child: u64, index: u64, length: u64) -> Result<u64, Status> {
    let caller = caller()?;
    caller.needs(Permission::SystemManifest)?;
    let child = claims::child(child)?;
    let name = caller.text(length)?;
    let given = child.give_device(caller.process, index as usize, name);
    note_beyond_manifest(caller, &given, "device", index, || child.name(caller.process));
    given.map(|()| 0)
}

pub fn process_start(child: u64) -> Result<u64, Status> {
    let caller = caller()?;
    claims::child(child)?.start(Some(caller.process)).map(|()| 0)
}

pub fn process_stop(child: u64, reason: u64) -> Result<u64, Status> {
    let caller = caller()?;
    claims::child(child)?.stop(caller.process, stop_reason(reason)?).map(|()| 0)
}

fn stop_reason(number: u64) -> Result<StopReason, Status> {
    Ok(match number {
        0 => StopReason::Requested,
        1 => StopReason::Interrupted,
        2 => StopReason::Shutdown,
        _ => return Err(Status::BadArgument),
    })
}

pub fn process_wait(child: u64, deadline: u64) -> Result<u64, Status> {
    let caller = caller()?;
    let child = claims::child(child)?;
    loop {
        let ticket = wait::begin();
        match child.wait_at(caller.process, ticket) {
            Ok(None) => {}
            ended => {
                wait::drop_wait(ticket);
                let epitaph = ended?.unwrap_or_else(|| Epitaph::exited(0));
                return Ok(put_epitaph(caller.buffer, &epitaph));
            }
        }
        match wait::block(ticket, deadline) {
            Woken::Signalled => {}
            Woken::Killed => return Err(Status::Closed),
            Woken::TimedOut => {
                child.stop_waiting_at(caller.thread);
                return Err(Status::TimedOut);
            }
        }
    }
}

fn put_epitaph(buffer: thread::MessageBuffer, epitaph: &Epitaph) -> u64 {
    let cut = epitaph.text.floor_char_boundary(TEXT_BYTES - 16);
    let length = buffer.put_bytes(2, &epitaph.text.as_bytes()[..cut]);
    buffer.set(0, epitaph.status);
    buffer.set(1, length as u64);
    epitaph.kind as u64
}

pub fn process_release(child: u64) -> Result<u64, Status> {
    let caller = caller()?;
    claims::child(child)?.release(caller.process).map(|()| 0)
}

pub fn process_id_of(child: u64) -> Result<u64, Status> {
    let caller = caller()?;
    claims::child(child)?.id(caller.process)
}

pub fn process_exit(code: u64) -> Result<u64, Status> {
    lifecycle::end(caller()?.process, Epitaph::exited(code));
    lifecycle::end_current_thread()
}

pub fn process_panic(length: u64) -> Result<u64, Status> {
    let caller = caller()?;
    let mut bytes = caller.buffer.bytes(length.min(TEXT_BYTES as u64) as usize).unwrap_or_default();
    let text = abi::audit::beginning(&Printable(&bytes).to_string(), TEXT_BYTES);
    bytes.push(b'\n');
    debug_sink::write(caller.process, &bytes);
    lifecycle::end(caller.process, Epitaph::new(EpitaphKind::Panicked, text));
    // `end` owns and frees the text; nothing is left on this stack.
    drop(bytes);
    lifecycle::end_current_thread()
}

pub fn process_id() -> Result<u64, Status> {
    Ok(caller()?.process.id.load(Ordering::Relaxed))
}

pub fn process_stop_any(process_id: u64, reason: u64) -> Result<u64, Status> {
    let caller = caller()?;
    caller.needs(Permission::StopAny)?;
    let reason = stop_reason(reason)?;
    let by_id = |process: &ProcessRef| process.id.load(Ordering::Relaxed) == process_id;
    let process = preempt::pausing(PROCESSES.iter()).find(by_id).ok_or(Status::NotFound)?;
    lifecycle::stop(caller.process, process, process_id, reason);
    Ok(0)
}
