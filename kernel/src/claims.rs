//! The single entry point for handles: a handle passed by a SIP is a claim, checked here.
//!
//! A handle is good if its slot is in use with its generation *and* the object belongs to the SIP that claims it, so a
//! forged handle reaches nothing, and a stale one at most another object of the same SIP. Endpoints and blocks also
//! travel in messages, so their modules look them up; their owner is checked there, under the lock.

use abi::Status;

use crate::device::{self, OpenDevice};
use crate::handle::{Kind, decode};
use crate::hardware::{self, OpenHardware};
use crate::lifecycle::ChildRef;
use crate::process::{PROCESSES, ProcessRef};
use crate::sync::{SYNCS, SyncRef};
use crate::thread::{THREADS, ThreadRef};

pub use crate::channel::endpoint;
pub use crate::exheap::block;

/// Resolves a thread of the caller.
pub fn thread(handle: u64, caller: ProcessRef) -> Result<ThreadRef, Status> {
    let (index, generation) = decode(handle, Kind::Thread)?;
    let thread = THREADS.get(index, generation).ok_or(Status::BadHandle)?;
    let own = thread.owner().is_some_and(|owner| core::ptr::eq(owner, caller));
    if own && !thread.end.lock().released { Ok(thread) } else { Err(Status::BadHandle) }
}

/// Resolves a child; its parent is checked with its life locked.
pub fn child(handle: u64) -> Result<ChildRef, Status> {
    let (index, generation) = decode(handle, Kind::Process)?;
    let process = PROCESSES.get(index, generation).ok_or(Status::BadHandle)?;
    Ok(ChildRef::new(process, generation))
}

/// Resolves a mutex, event or wait set of the caller.
#[inline(always)]
pub fn sync(handle: u64, caller: ProcessRef) -> Result<SyncRef, Status> {
    let (index, generation) = decode(handle, Kind::Sync)?;
    let slot = SYNCS.get(index, generation).ok_or(Status::BadHandle)?;
    let own = slot.process.get().is_some_and(|owner| core::ptr::eq(owner, caller));
    if own { Ok(SyncRef { slot, generation }) } else { Err(Status::BadHandle) }
}

/// Resolves hardware that the caller has open.
#[inline(always)]
pub fn hardware(handle: u64, caller: ProcessRef) -> Result<OpenHardware, Status> {
    let (index, generation) = decode(handle, Kind::Device)?;
    hardware::opened(index, generation, caller).ok_or(Status::BadHandle)
}

/// Whether a handle claims hardware rather than a console or disk of the machine.
pub fn is_hardware(handle: u64) -> bool {
    handle >> 56 == Kind::Device as u64 && hardware::is_hardware(handle as u32)
}

/// Resolves a console or disk that the caller has open.
pub fn device(handle: u64, caller: ProcessRef) -> Result<OpenDevice, Status> {
    let (index, generation) = decode(handle, Kind::Device)?;
    device::opened(index, generation, caller).ok_or(Status::BadHandle)
}
