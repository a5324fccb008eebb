//! Life of a SIP: from its creation from a manifest to the release of its last resource.
//!
//! Ending a SIP marks it as dying and makes all its threads leave the kernel, where they end. The last one releases
//! everything (`end`) without running any code of the SIP, wakes its waiters, and ends the SIP's children. What is kept
//! of it is in `graveyard` and `cores`. Neighbours:
//! `process` below has the record; the modules of all that a SIP owns are below, too.

mod child;
mod cores;
mod end;
mod graveyard;
mod reclaim;

pub use child::ChildRef;
pub use cores::Place;
pub use end::{end, end_at, end_current_thread, stop};
pub use graveyard::{epitaph_lines, trace_of};
pub use reclaim::reclaim;

use alloc::string::String;
use core::sync::atomic::{AtomicU64, Ordering};

use abi::{ProcessState, Status, TraceKind};

use crate::domain::{self, NoDomain};
use crate::installed;
use crate::principal::{Principal, TooLong};
use crate::process::{PROCESSES, ProcessRef, kernel_quota};
use crate::program::Program;
use crate::shortage::{Scarce, no_slot};

static NEXT_ID: AtomicU64 = AtomicU64::new(1);
/// SIPs created since boot.
pub static CREATED: AtomicU64 = AtomicU64::new(0);
/// SIPs ended since boot.
pub static ENDED: AtomicU64 = AtomicU64::new(0);

/// Creates a SIP of a program for a parent; without one, the first SIP.
pub fn create(program: &'static Program, parent: Option<ProcessRef>) -> Result<ChildRef, CreateError> {
    let Some(parent) = parent else { return make(program, None) };
    // Charged first, so that threads that create children concurrently are counted one by one.
    parent.charge_child().map_err(CreateError::Status)?;
    let made = make(program, Some(parent));
    if made.is_err() {
        parent.refund_child(parent.id.load(Ordering::Relaxed));
    }
    made
}

fn make(program: &'static Program, parent: Option<ProcessRef>) -> Result<ChildRef, CreateError> {
    let loaded = program.loaded.get().map_or_else(|| installed::load(program), Ok).map_err(CreateError::Refused)?;
    let invoker = parent.map(|parent| invoker(parent, program)).transpose()?.flatten();
    let process = PROCESSES.allocate().map_err(|full| CreateError::Status(no_slot(full, Scarce::Processes)))?;
    let space = domain::join(program, loaded).map_err(|error| {
        PROCESSES.release(process);
        match error {
            NoDomain::Status(status) => CreateError::Status(status),
            NoDomain::Refused(why) => CreateError::Refused(why),
        }
    })?;
    process.space.set(space);
    if let Err(status) = process.copy_image_data(&loaded.data, &program.manifest.quota) {
        if let Some(space) = process.space.take() {
            space.leave();
        }
        PROCESSES.release(process);
        return Err(CreateError::Status(status));
    }
    let child = ChildRef::new(process, process.generation());
    let manifest = &program.manifest;
    let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
    process.id.store(id, Ordering::Relaxed);
    process.place_below(parent);
    process.reclaimed.store(false, Ordering::Relaxed);
    process.own_principal.clear();
    if let Some(invoker) = invoker {
        process.own_principal.set_invoker(invoker);
    }
    process.program.set(Some(program));
    process.loaded.set(Some(loaded));
    process.state.store(ProcessState::Created as u64, Ordering::Release);
    process.dying.store(false, Ordering::SeqCst);
    process.has_no_room.store(false, Ordering::Relaxed);
    process.live_threads.store(0, Ordering::Relaxed);
    process.channels.store(0, Ordering::Relaxed);
    process.kernel_bytes.store(0, Ordering::Relaxed);
    process.kernel_quota.store(kernel_quota(&manifest.quota), Ordering::Relaxed);
    process.charged_children.store(0, Ordering::Relaxed);
    process.block_bytes.store(0, Ordering::Relaxed);
    for counter in [&process.sent, &process.sample_at, &process.received, &process.cycles, &process.started_ns] {
        counter.store(0, Ordering::Relaxed);
    }
    process.debug_text.set(parent.and_then(|parent| parent.debug_text.get()));
    process.turn.reset();
    let parent_id = parent.map_or(0, |parent| parent.id.load(Ordering::Relaxed));
    process.trace.restart(id, parent_id);
    {
        let mut life = process.life.lock();
        life.parent = parent.map(|parent| (parent, parent_id));
        life.released_by = None;
        life.held = parent.is_some();
        life.is_invoked = false;
        life.epitaph = None;
        life.waiters.clear();
        life.parameters.reset(manifest.parameters.len());
        life.slots.clear();
        life.slots.resize(manifest.endpoints.len(), None);
        life.devices.clear();
        life.devices.resize(manifest.devices.len(), None);
        if let Some(parent) = parent {
            // Before anyone can release the child, which removes it from the list.
            parent.children.lock().insert(process.index());
        }
    }
    CREATED.fetch_add(1, Ordering::Relaxed);
    if let Some(parent) = parent {
        parent.trace.add(TraceKind::ChildCreated, id, 0);
    }
    Ok(child)
}

/// Why a SIP was not created.
pub enum CreateError {
    /// A quota or a shortage of the machine.
    Status(Status),
    /// The program's package was refused, with the reason.
    Refused(String),
}

/// The invoker that a child's principal names implicitly: an invoked program cannot drop the names of its invokers by
/// starting others, or itself, without them.
fn invoker(parent: ProcessRef, program: &'static Program) -> Result<Option<Principal>, CreateError> {
    if !parent.own_principal.is_compound() {
        return Ok(None);
    }
    let Some(invoker) = parent.principal() else { return Ok(None) };
    match invoker.may_invoke(program) {
        Ok(()) => Ok(Some(invoker)),
        Err(TooLong) => Err(CreateError::Refused(String::from(
            "too many programs have invoked each other; start it from one that fewer have",
        ))),
    }
}
