//! Channels.

use core::sync::atomic::Ordering;

use abi::limits::{TEXT_BYTES, WAIT_KEYS};
use abi::{EpitaphKind, Status, TraceKind};

use super::{Caller, caller};
use crate::channel::{self, EndpointRef, Received, SendError};
use crate::contract::SideIndex;
use crate::machine::machine;
use crate::process::Epitaph;
use crate::sync::SyncKind;
use crate::{claims, lifecycle, sync};

pub fn channel_create(contract: u64) -> Result<u64, Status> {
    let caller = caller()?;
    let loaded = caller.process.loaded.get().ok_or(Status::WrongState)?;
    let contract = loaded.contract(contract).ok_or(Status::NotFound)?;
    let (importer, exporter) = channel::create(caller.process, contract)?;
    let (importer, exporter) = (importer.handle(), exporter.handle());
    caller.buffer.set(0, exporter);
    caller.process.trace.add(TraceKind::ChannelCreated, importer, exporter);
    Ok(importer)
}

#[inline(always)]
pub fn channel_send(endpoint: u64, message: u64) -> Result<u64, Status> {
    let caller = caller()?;
    let target = claims::endpoint(endpoint)?;
    match channel::send(caller.process, target, message, caller.buffer) {
        Ok(()) => {
            let process = caller.process;
            process.trace.keep(TraceKind::Sent, endpoint, message & 0xffff);
            Ok(0)
        }
        Err(SendError::Status(status)) => Err(status),
        Err(SendError::Violation(text)) => {
            lifecycle::end(caller.process, Epitaph::new(EpitaphKind::ContractViolation, text));
            Err(Status::Closed)
        }
    }
}

#[inline(always)]
pub fn channel_receive(endpoint: u64, deadline: u64) -> Result<u64, Status> {
    let caller = caller()?;
    let source = claims::endpoint(endpoint)?;
    let received = channel::receive(caller.process, source, deadline, caller.buffer)?;
    answer(caller, endpoint, received)
}

#[inline(always)]
pub fn channel_try_receive(endpoint: u64) -> Result<u64, Status> {
    let caller = caller()?;
    let source = claims::endpoint(endpoint)?;
    let received = channel::try_receive(caller.process, source, caller.buffer)?;
    answer(caller, endpoint, received)
}

pub fn channel_receive_or_add(endpoint: u64, set: u64, key: u64) -> Result<u64, Status> {
    let caller = caller()?;
    let source = claims::endpoint(endpoint)?;
    let set = || claims::sync(set, caller.process);
    let received = channel::receive_or_join(caller.process, source, set, key, caller.buffer)?;
    answer(caller, endpoint, received)
}

#[inline(always)]
fn answer(caller: Caller, endpoint: u64, received: Received) -> Result<u64, Status> {
    if caller.process.has_no_room() {
        return Err(no_room_in_domain(caller));
    }
    match received {
        Received::Message(word) => {
            let process = caller.process;
            process.trace.keep(TraceKind::Received, endpoint, word & 0xffff);
            process.received.store(process.received.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            Ok(word)
        }
        Received::Closed => Err(Status::Closed),
        Received::Nothing => Err(Status::WouldBlock),
    }
}

/// Ends a SIP that has been given a block for which no memory was left in its domain.
#[cold]
fn no_room_in_domain(caller: Caller) -> Status {
    const WHY: &str = "ended because no memory was left in its domain for a message";
    lifecycle::end(caller.process, Epitaph::new(EpitaphKind::MemoryRanOut, WHY));
    Status::Closed
}

pub fn channel_close(endpoint: u64) -> Result<u64, Status> {
    let caller = caller()?;
    let closed = channel::close(caller.process, claims::endpoint(endpoint)?)?;
    caller.process.trace.add(TraceKind::EndpointClosed, endpoint, closed);
    Ok(0)
}

pub fn channel_describe(endpoint: u64) -> Result<u64, Status> {
    let caller = caller()?;
    let endpoint = claims::endpoint(endpoint)?;
    let inner = endpoint.lock_owned(caller.process)?;
    let contract = inner.contract.ok_or(Status::BadHandle)?;
    let state = inner.sides[endpoint.side as usize].state;
    drop(inner);
    let contracts = caller.process.loaded.get().map_or(&[][..], |loaded| &loaded.contracts);
    let index =
        contracts.iter().position(|known| core::ptr::eq(*known, contract)).map_or(u64::MAX, |index| index as u64);
    let importer = u64::from(endpoint.side == SideIndex::Importer);
    caller.buffer.write_words(&[contract.tag, importer, u64::from(state), index]);
    Ok(0)
}

/// Returns the principal of the peer; shared with `principal_of_peer`.
pub(super) fn peer_principal(caller: Caller, endpoint: EndpointRef) -> Result<u64, Status> {
    let inner = endpoint.lock_owned(caller.process)?;
    let speaker = inner.sides[endpoint.side.peer() as usize].speaker.clone().ok_or(Status::NotFound)?;
    drop(inner);
    let bytes = speaker.text().as_bytes();
    if bytes.len() > TEXT_BYTES {
        return Err(Status::TooLarge);
    }
    Ok(caller.buffer.put_bytes(0, bytes) as u64)
}

pub fn wait_set_create() -> Result<u64, Status> {
    sync::create(caller()?.process, sync::Make::WaitSet)
}

pub fn wait_set_add(set: u64, endpoint: u64, key: u64) -> Result<u64, Status> {
    let caller = caller()?;
    let set = claims::sync(set, caller.process)?;
    channel::join_set(caller.process, claims::endpoint(endpoint)?, set, key).map(|()| 0)
}

pub fn wait_set_remove(set: u64, endpoint: u64) -> Result<u64, Status> {
    let caller = caller()?;
    let set = claims::sync(set, caller.process)?;
    channel::leave_set(caller.process, claims::endpoint(endpoint)?, set).map(|()| 0)
}

#[inline(always)]
pub fn wait_set_wait(set: u64, deadline: u64, max: u64, clock: u64) -> Result<u64, Status> {
    let caller = caller()?;
    // One for the clock.
    let mut words = [0; WAIT_KEYS + 1];
    // None if there is no such room, which is refused.
    let room = usize::try_from(max).ok().filter(|max| *max <= WAIT_KEYS && clock <= 1);
    let room = room.and_then(|max| words.get_mut(..max)).unwrap_or_default();
    let mut count = sync::wait_set(claims::sync(set, caller.process)?, caller.thread, deadline, room)?;
    if clock == 1 {
        words[count] = machine().monotonic_ns();
        count += 1;
    }
    caller.buffer.write_words(&words[..count]);
    Ok(count as u64)
}

pub fn wait_set_alert(set: u64) -> Result<u64, Status> {
    let caller = caller()?;
    sync::alert(claims::sync(set, caller.process)?).map(|()| 0)
}

pub fn wait_set_close(set: u64) -> Result<u64, Status> {
    close_sync(set, SyncKind::WaitSet)
}

/// Closes a mutex, event or wait set, which share one kind of handle.
pub(super) fn close_sync(handle: u64, kind: SyncKind) -> Result<u64, Status> {
    let caller = caller()?;
    sync::close(caller.process, claims::sync(handle, caller.process)?, kind).map(|()| 0)
}
