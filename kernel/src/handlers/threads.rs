//! Threads and synchronization.

use abi::{Status, TraceKind};
use alloc::vec::Vec;

use super::channels::close_sync;
use super::{Caller, caller};
use crate::channel::EndpointRef;
use crate::device::OpenDevice;
use crate::handle::{self, Kind};
use crate::hardware::OpenHardware;
use crate::lifecycle::ChildRef;
use crate::machine::machine;
use crate::process::{self, ProcessRef};
use crate::sync::{self, SyncKind, SyncRef};
use crate::thread::{self, Argument, ThreadRef};
use crate::wait::{self, Ticket, Woken};
use crate::{channel, claims, device, hardware, lifecycle, sched};

/// Maximum objects of one `wait_any`.
const WAIT_ANY: usize = 32;
/// Tickets left at objects that are covered by the thread's own charge.
const FREE_TICKETS: usize = 2;
/// Bytes charged for each further ticket: its entry here, and a ticket in a queue that may be half empty.
const TICKET_BYTES: usize = size_of::<Waitable>() + 2 * size_of::<Ticket>();

pub fn thread_create(entry: u64, argument: u64) -> Result<u64, Status> {
    let caller = caller()?;
    let loaded = caller.process.loaded.get().ok_or(Status::WrongState)?;
    if !loaded.is_code(entry as usize) {
        return Err(Status::BadArgument);
    }
    process::may_create_thread(caller.process)?;
    let thread = thread::create(caller.process, entry as usize, Argument::Word(argument))?;
    let handle = thread.handle();
    caller.process.trace.add(TraceKind::ThreadCreated, handle, 0);
    sched::make_runnable(thread);
    Ok(handle)
}

pub fn thread_exit() -> Result<u64, Status> {
    lifecycle::end_current_thread()
}

pub fn thread_join(thread: u64, deadline: u64) -> Result<u64, Status> {
    let caller = caller()?;
    let joined = claims::thread(thread, caller.process)?;
    if core::ptr::eq(joined, caller.thread) {
        return Err(Status::Deadlock);
    }
    loop {
        let ticket = wait::begin();
        match wait_at_thread(joined, thread, ticket) {
            Ok(false) => {}
            ended => {
                wait::drop_wait(ticket);
                ended?;
                break;
            }
        }
        match wait::block(ticket, deadline) {
            Woken::Signalled => {}
            Woken::Killed => return Err(Status::Closed),
            Woken::TimedOut => {
                joined.end.lock().waiters.remove(caller.thread);
                return Err(Status::TimedOut);
            }
        }
    }
    release_thread(caller.process, joined, thread)
}

/// Leaves a ticket for the end of a thread, or returns true if it has ended. The handle is checked again under the
/// lock: another thread may have joined it, and the slot may belong to another SIP.
fn wait_at_thread(thread: ThreadRef, handle: u64, ticket: Ticket) -> Result<bool, Status> {
    let mut end = thread.end.lock();
    if end.released || thread.handle() != handle {
        return Err(Status::BadHandle);
    }
    if !end.ended {
        end.waiters.add(ticket);
    }
    Ok(end.ended)
}

fn release_thread(process: ProcessRef, thread: ThreadRef, handle: u64) -> Result<u64, Status> {
    let mut end = thread.end.lock();
    if end.released || thread.handle() != handle {
        return Err(Status::BadHandle);
    }
    end.released = true;
    let (left, ended) = (end.left, end.ended);
    drop(end);
    if left {
        process.unlist_thread(thread);
    }
    if ended {
        thread::THREADS.release(thread);
    }
    Ok(0)
}

pub fn thread_release(thread: u64) -> Result<u64, Status> {
    let caller = caller()?;
    release_thread(caller.process, claims::thread(thread, caller.process)?, thread)
}

#[inline(always)]
pub fn thread_yield() -> Result<u64, Status> {
    sched::yield_now();
    Ok(0)
}

pub fn thread_sleep(deadline: u64) -> Result<u64, Status> {
    if machine().monotonic_ns() < deadline {
        wait::block(wait::begin(), deadline);
    }
    Ok(0)
}

pub fn thread_self() -> Result<u64, Status> {
    Ok(caller()?.thread.handle())
}

pub fn time_monotonic() -> Result<u64, Status> {
    Ok(machine().monotonic_ns())
}

pub fn time_wall() -> Result<u64, Status> {
    Ok(machine().wall_ns())
}

pub fn processor_count() -> Result<u64, Status> {
    Ok(machine().processor_count() as u64)
}

pub fn mutex_create() -> Result<u64, Status> {
    sync::create(caller()?.process, sync::Make::Mutex)
}

pub fn mutex_acquire(mutex: u64, deadline: u64) -> Result<u64, Status> {
    let caller = caller()?;
    sync::acquire(claims::sync(mutex, caller.process)?, caller.thread, deadline).map(|()| 0)
}

pub fn mutex_try_acquire(mutex: u64) -> Result<u64, Status> {
    let caller = caller()?;
    sync::try_acquire(claims::sync(mutex, caller.process)?, caller.thread).map(|()| 0)
}

pub fn mutex_release(mutex: u64) -> Result<u64, Status> {
    let caller = caller()?;
    sync::release_mutex(claims::sync(mutex, caller.process)?, caller.thread).map(|()| 0)
}

pub fn mutex_close(mutex: u64) -> Result<u64, Status> {
    close_sync(mutex, SyncKind::Mutex)
}

pub fn event_create_manual() -> Result<u64, Status> {
    sync::create(caller()?.process, sync::Make::ManualEvent)
}

pub fn event_create_auto() -> Result<u64, Status> {
    sync::create(caller()?.process, sync::Make::AutoEvent)
}

pub fn event_set(event: u64) -> Result<u64, Status> {
    let caller = caller()?;
    sync::set_event(claims::sync(event, caller.process)?).map(|()| 0)
}

pub fn event_reset(event: u64) -> Result<u64, Status> {
    let caller = caller()?;
    sync::reset_event(claims::sync(event, caller.process)?).map(|()| 0)
}

pub fn event_wait(event: u64, deadline: u64) -> Result<u64, Status> {
    let caller = caller()?;
    sync::wait_event(claims::sync(event, caller.process)?, caller.thread, deadline).map(|()| 0)
}

pub fn event_close(event: u64) -> Result<u64, Status> {
    close_sync(event, SyncKind::Event)
}

#[derive(Clone, Copy)]
enum Waitable {
    Endpoint(EndpointRef),
    Sync(SyncRef),
    Thread(ThreadRef, u64),
    Child(ChildRef),
    Device(OpenDevice),
    Hardware(OpenHardware),
}

impl Waitable {
    fn claim(handle: u64, caller: ProcessRef) -> Result<Waitable, Status> {
        Ok(match handle::kind_of(handle) {
            Some(Kind::Endpoint) => Waitable::Endpoint(claims::endpoint(handle)?),
            Some(Kind::Sync) => Waitable::Sync(claims::sync(handle, caller)?),
            Some(Kind::Thread) => Waitable::Thread(claims::thread(handle, caller)?, handle),
            Some(Kind::Process) => Waitable::Child(claims::child(handle)?),
            Some(Kind::Device) if claims::is_hardware(handle) => Waitable::Hardware(claims::hardware(handle, caller)?),
            Some(Kind::Device) => Waitable::Device(claims::device(handle, caller)?),
            Some(Kind::Block) | None => return Err(Status::BadHandle),
        })
    }

    fn wait_at(self, caller: ProcessRef, ticket: Ticket) -> Result<bool, Status> {
        match self {
            Waitable::Endpoint(endpoint) => channel::wait_at(caller, endpoint, ticket),
            Waitable::Sync(sync) => sync::wait_at(sync, ticket),
            Waitable::Thread(thread, handle) => wait_at_thread(thread, handle, ticket),
            Waitable::Child(child) => Ok(child.wait_at(caller, ticket)?.is_some()),
            Waitable::Device(device) => device::wait_at(device, ticket),
            Waitable::Hardware(open) => hardware::wait_at(open, ticket),
        }
    }

    fn stop_waiting(self, ticket: Ticket) {
        match self {
            Waitable::Endpoint(endpoint) => channel::stop_waiting_at(endpoint, ticket),
            Waitable::Sync(sync) => sync::stop_waiting_at(sync, ticket.thread),
            Waitable::Thread(thread, _) => thread.end.lock().waiters.remove(ticket.thread),
            Waitable::Child(child) => child.stop_waiting_at(ticket.thread),
            Waitable::Device(device) => device::stop_waiting_at(device, ticket.thread),
            Waitable::Hardware(open) => hardware::stop_waiting_at(open, ticket.thread),
        }
    }
}

pub fn wait_any(count: u64, deadline: u64) -> Result<u64, Status> {
    let caller = caller()?;
    if count == 0 || count > WAIT_ANY as u64 {
        return Err(Status::BadArgument);
    }
    let objects: Vec<Waitable> = (0..count as usize)
        .map(|index| Waitable::claim(caller.buffer.get(index), caller.process))
        .collect::<Result<_, _>>()?;
    if objects.len() <= FREE_TICKETS {
        return wait_for(caller, &objects, deadline);
    }
    let bytes = objects.len() * TICKET_BYTES;
    caller.process.charge_kernel(bytes)?;
    let found = wait_for(caller, &objects, deadline);
    caller.process.refund_kernel(bytes);
    found
}

fn wait_for(caller: Caller, objects: &[Waitable], deadline: u64) -> Result<u64, Status> {
    loop {
        match wait_once(caller, objects, deadline) {
            Ok(Some(index)) => return Ok(index as u64),
            Ok(None) => {}
            Err(status) => return Err(status),
        }
    }
}

/// One round: returns a ready object, or `None` after a wake-up, which may be spurious.
fn wait_once(caller: Caller, objects: &[Waitable], deadline: u64) -> Result<Option<usize>, Status> {
    let ticket = wait::begin();
    let mut left_at = 0;
    let mut found = Ok(None);
    for (index, object) in objects.iter().enumerate() {
        match object.wait_at(caller.process, ticket) {
            Ok(false) => left_at = index + 1,
            Ok(true) => found = Ok(Some(index)),
            Err(status) => found = Err(status),
        }
        if !matches!(found, Ok(None)) {
            break;
        }
    }
    let mut woken = Woken::Signalled;
    if matches!(found, Ok(None)) {
        woken = wait::block(ticket, deadline);
    } else {
        wait::drop_wait(ticket);
    }
    for object in &objects[..left_at] {
        object.stop_waiting(ticket);
    }
    match woken {
        Woken::Signalled => found,
        Woken::TimedOut => Err(Status::TimedOut),
        Woken::Killed => Err(Status::Closed),
    }
}
