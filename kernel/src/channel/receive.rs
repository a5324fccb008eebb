//! Receiving, and waiting for a message.

use core::sync::atomic::Ordering;

use abi::limits::{BLOCK_WORDS, MESSAGE_WORDS};
use abi::{Status, TraceKind};

use super::loans::receive_block;
use super::{EndpointRef, Inner, NO_BLOCK, Received, Waiter, adopt_endpoint, observed};
use crate::contract::Monitored;
use crate::exheap::{self, BLOCKS};
use crate::lock::SpinGuard;
use crate::process::ProcessRef;
use crate::sync::{Membership, SyncRef};
use crate::thread::MessageBuffer;
use crate::wait::{self, Ticket, Woken};

/// Dequeues the next message into the buffer.
#[inline(always)]
pub fn try_receive(caller: ProcessRef, endpoint: EndpointRef, buffer: MessageBuffer) -> Result<Received, Status> {
    let inner = endpoint.lock_owned(caller)?;
    if inner.is_ready(endpoint.side) { take(caller, endpoint, inner, buffer) } else { Ok(Received::Nothing) }
}

/// The same, but joins the endpoint to a wait set if the queue is empty; later messages are announced there.
#[inline(always)]
pub fn receive_or_join(
    caller: ProcessRef,
    endpoint: EndpointRef,
    set: impl FnOnce() -> Result<SyncRef, Status>,
    key: u64,
    buffer: MessageBuffer,
) -> Result<Received, Status> {
    let mut inner = endpoint.lock_owned(caller)?;
    if inner.is_ready(endpoint.side) {
        return take(caller, endpoint, inner, buffer);
    }
    let side = &mut inner.sides[endpoint.side as usize];
    if !side.waiter.is_over() {
        return Err(Status::Busy);
    }
    let set = set()?;
    crate::sync::reserve(set, caller)?;
    side.waiter = Waiter::Set { set, key };
    Ok(Received::Nothing)
}

/// Takes the first message, or the end of the channel.
#[inline(always)]
fn take(
    caller: ProcessRef,
    endpoint: EndpointRef,
    mut inner: SpinGuard<'static, Inner>,
    buffer: MessageBuffer,
) -> Result<Received, Status> {
    if inner.sides[endpoint.side as usize].waiting == 0 {
        hand_home(caller, endpoint, inner, buffer);
        return Ok(Received::Closed);
    }
    let contract = inner.contract.ok_or(Status::BadHandle)?;
    let side = &mut inner.sides[endpoint.side as usize];
    let head = side.head;
    side.head = if head + 1 == contract.bounds[endpoint.side as usize] { 0 } else { head + 1 };
    side.waiting -= 1;
    let state = side.state;
    let slot = inner.slot(endpoint.side, head).ok_or(Status::BadHandle)?;
    let word = slot[0];
    let tag = (word & 0xffff) as usize;
    let message = contract.message(tag).ok_or(Status::BadHandle)?;
    buffer.write_words(&slot[1..=message.words]);
    // The sender's state allowed it, and both sides follow the same path, so there is a next state.
    let side = &mut inner.sides[endpoint.side as usize];
    side.state = contract.next(state, tag).unwrap_or(state);
    if side.observed.is_on() {
        observed::received(&mut inner, caller, endpoint.channel, endpoint.side, word);
    }
    drop(inner);
    if !message.plain {
        adopt(caller, message, buffer);
    }
    Ok(Received::Message(word))
}

/// Makes the receiver the owner of the blocks and endpoints of a message.
#[inline(always)]
fn adopt(caller: ProcessRef, message: &Monitored, buffer: MessageBuffer) {
    let mut at = message.shape.scalar_words as usize;
    for _ in &message.shape.blocks {
        match exheap::block(buffer.get(at)) {
            Ok(block) => {
                receive_block(caller, block);
                buffer.set(at + 1, block.address.load(Ordering::Relaxed) as u64);
                buffer.set(at + 2, block.size() as u64);
            }
            // Not the sender's words, which the receiver's runtime would trust.
            Err(_) => (at..at + BLOCK_WORDS).for_each(|word| buffer.set(word, 0)),
        }
        at += BLOCK_WORDS;
    }
    for _ in &message.shape.endpoints {
        match super::endpoint(buffer.get(at)) {
            Ok(moved) => adopt_endpoint(caller, moved),
            Err(_) => buffer.set(at, 0),
        }
        at += 1;
    }
}

/// Delivers returned loans to their lender, as many as the buffer holds.
#[inline(never)]
fn hand_home(caller: ProcessRef, endpoint: EndpointRef, mut inner: SpinGuard<'static, Inner>, buffer: MessageBuffer) {
    let mut home = [NO_BLOCK; (MESSAGE_WORDS - 1) / BLOCK_WORDS];
    let side = &mut inner.sides[endpoint.side as usize];
    for place in &mut home {
        let Some(block) = BLOCKS.slot(side.home) else { break };
        *place = side.home;
        side.home = block.next.load(Ordering::Relaxed);
        block.next.store(NO_BLOCK, Ordering::Relaxed);
    }
    drop(inner);
    let mut count = 0;
    for block in home.iter().map_while(|&index| BLOCKS.slot(index)) {
        exheap::cross(caller, block);
        exheap::give_to(caller, block);
        let at = 1 + count * BLOCK_WORDS;
        buffer.set(at, block.handle());
        buffer.set(at + 1, block.address.load(Ordering::Relaxed) as u64);
        buffer.set(at + 2, block.size() as u64);
        caller.trace.add(TraceKind::CameHome, block.handle(), 0);
        count += 1;
    }
    buffer.set(0, count as u64);
}

/// Waits for the next message.
#[inline(always)]
pub fn receive(
    caller: ProcessRef,
    endpoint: EndpointRef,
    deadline: u64,
    buffer: MessageBuffer,
) -> Result<Received, Status> {
    loop {
        let mut inner = endpoint.lock_owned(caller)?;
        if inner.is_ready(endpoint.side) {
            return take(caller, endpoint, inner, buffer);
        }
        let side = &mut inner.sides[endpoint.side as usize];
        if !side.waiter.is_over() {
            return Err(Status::Busy);
        }
        // Begun with the lock held: the next sender sees the ticket, or has sent already.
        let ticket = wait::begin();
        side.waiter = Waiter::Thread(ticket);
        drop(inner);
        match wait::block(ticket, deadline) {
            Woken::Signalled => {}
            Woken::TimedOut => {
                unregister(endpoint, ticket);
                return Err(Status::TimedOut);
            }
            Woken::Killed => {
                // No loans returned.
                buffer.set(0, 0);
                return Err(Status::Closed);
            }
        }
    }
}

/// Registers a waiter at an endpoint; false if it is readable already.
#[inline(always)]
fn register(caller: ProcessRef, endpoint: EndpointRef, waiter: Waiter) -> Result<bool, Status> {
    let mut inner = endpoint.lock_owned(caller)?;
    if inner.is_ready(endpoint.side) {
        return Ok(false);
    }
    let side = &mut inner.sides[endpoint.side as usize];
    match side.waiter {
        Waiter::Nobody => {}
        old if old.is_over() => {}
        _ => return Err(Status::Busy),
    }
    side.waiter = waiter;
    Ok(true)
}

fn unregister(endpoint: EndpointRef, ticket: Ticket) {
    let mut inner = endpoint.channel.inner.lock();
    let side = &mut inner.sides[endpoint.side as usize];
    if let Waiter::Thread(waiting) = side.waiter
        && core::ptr::eq(waiting.thread, ticket.thread)
    {
        side.waiter = Waiter::Nobody;
    }
}

/// Registers a thread's ticket at an endpoint, for a wait for several objects; true if it is ready.
pub fn wait_at(caller: ProcessRef, endpoint: EndpointRef, ticket: Ticket) -> Result<bool, Status> {
    register(caller, endpoint, Waiter::Thread(ticket)).map(|registered| !registered)
}

/// Withdraws a thread's ticket.
pub fn stop_waiting_at(endpoint: EndpointRef, ticket: Ticket) {
    unregister(endpoint, ticket);
}

/// Adds an endpoint to a wait set.
pub fn join_set(caller: ProcessRef, endpoint: EndpointRef, set: SyncRef, key: u64) -> Result<(), Status> {
    crate::sync::reserve(set, caller)?;
    match register(caller, endpoint, Waiter::Set { set, key }) {
        Ok(true) => Ok(()),
        Ok(false) => {
            crate::sync::announce(set, key, endpoint.handle());
            Ok(())
        }
        Err(status) => {
            crate::sync::leave(set, endpoint.handle(), Membership::Waiting)?;
            Err(status)
        }
    }
}

/// Removes an endpoint from a wait set.
pub fn leave_set(caller: ProcessRef, endpoint: EndpointRef, set: SyncRef) -> Result<(), Status> {
    let mut inner = endpoint.lock_owned(caller)?;
    let side = &mut inner.sides[endpoint.side as usize];
    let mut was = Membership::AnnouncedOrNone;
    if let Waiter::Set { set: joined, .. } = side.waiter
        && core::ptr::eq(joined.slot, set.slot)
    {
        side.waiter = Waiter::Nobody;
        was = Membership::Waiting;
    }
    drop(inner);
    crate::sync::leave(set, endpoint.handle(), was)
}

#[cfg(test)]
mod tests;
