//! Sending: the monitor, and the transfer of blocks and endpoints from the sender.

use alloc::format;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use abi::limits::{BLOCK_WORDS, MESSAGE_WORDS};
use abi::{BlockShape, EndpointShape, NO_TRANSITION, Status};

use super::close::{close_all, drop_message};
use super::{EndpointRef, Inner, NO_BLOCK, Place, SendError, Side, Waiter, adopt_endpoint, observed};
use crate::contract::{Contract, Monitored, SideIndex};
use crate::exheap::{self, BlockRef};
use crate::lock::SpinGuard;
use crate::process::ProcessRef;
use crate::thread::MessageBuffer;
use crate::unchecked::MONITORED;

/// Sends the message in `buffer`.
#[inline(always)]
pub fn send(caller: ProcessRef, endpoint: EndpointRef, word: u64, buffer: MessageBuffer) -> Result<(), SendError> {
    let mut inner = endpoint.lock_owned(caller)?;
    let tag = (word & 0xffff) as usize;
    let state = inner.sides[endpoint.side as usize].state;
    let contract = inner.contract.ok_or(Status::BadHandle)?;
    let (Some(message), Some(next)) = (contract.message(tag), contract.next(state, tag)) else {
        drop(inner);
        return Err(out_of_state(contract, state, tag));
    };
    if MONITORED && (message.word != word || message.sender != endpoint.side) {
        drop(inner);
        return Err(wrong_shape(contract, message, endpoint.side, state));
    }
    if message.plain {
        return place(inner, caller, endpoint, message, next, buffer);
    }
    check_ranges(contract, message, state, buffer)?;
    if message.shape.endpoints.is_empty() {
        take_blocks(caller, endpoint, &mut inner, message, buffer)
            .map_err(|how| violation(contract, message, state, how))?;
        return place(inner, caller, endpoint, message, next, buffer);
    }
    drop(inner);
    send_with_endpoints(caller, endpoint, message, (state, next), buffer)
}

#[cold]
fn out_of_state(contract: &Contract, state: u16, tag: usize) -> SendError {
    let name = contract.message(tag).map_or_else(|| format!("message {tag}"), |message| message.shape.name.clone());
    SendError::Violation(format!(
        "sent {name} in state {} of contract {}, which does not allow it",
        contract.state_name(state),
        contract.automaton.name
    ))
}

#[cold]
fn wrong_shape(contract: &Contract, message: &Monitored, side: SideIndex, state: u16) -> SendError {
    let how = if message.sender == side { "with the wrong number of arguments" } else { "in the wrong direction" };
    violation(contract, message, state, how)
}

#[cold]
fn violation(contract: &Contract, message: &Monitored, state: u16, how: &str) -> SendError {
    SendError::Violation(format!(
        "sent {} in state {} of contract {} {how}",
        message.shape.name,
        contract.state_name(state),
        contract.automaton.name
    ))
}

fn check_ranges(contract: &Contract, message: &Monitored, state: u16, buffer: MessageBuffer) -> Result<(), SendError> {
    for range in message.ranges().iter().filter(|_| MONITORED) {
        if buffer.get(range.word as usize) > range.max {
            return Err(violation(contract, message, state, "with a value that its type does not have"));
        }
    }
    Ok(())
}

/// Takes the message's blocks from the caller; all or none.
fn take_blocks(
    caller: ProcessRef,
    endpoint: EndpointRef,
    inner: &mut Inner,
    message: &Monitored,
    buffer: MessageBuffer,
) -> Result<(), &'static str> {
    let first = message.shape.scalar_words as usize;
    for (number, shape) in message.shape.blocks.iter().enumerate() {
        let handle = buffer.get(first + number * BLOCK_WORDS);
        if let Err(how) = take_block(caller, endpoint, inner, shape, handle) {
            for taken in 0..number {
                if let Ok(block) = exheap::block(buffer.get(first + taken * BLOCK_WORDS)) {
                    untake_block(caller, endpoint, inner, &message.shape.blocks[taken], block);
                }
            }
            return Err(how);
        }
    }
    Ok(())
}

#[inline(always)]
fn take_block(
    caller: ProcessRef,
    endpoint: EndpointRef,
    inner: &mut Inner,
    shape: &BlockShape,
    handle: u64,
) -> Result<(), &'static str> {
    const NOT_OWN: &str = "with a block that the sender does not own";
    let block = exheap::block(handle).map_err(|_| NOT_OWN)?;
    exheap::take_from(caller, block, handle).map_err(|status| match status {
        Status::Busy => "with a block that a device reaches",
        _ => NOT_OWN,
    })?;
    let refused = if MONITORED && block.type_tag.load(Ordering::Relaxed) != shape.type_tag {
        Some("with a block of another type")
    } else if shape.returned {
        if block.lender() == Some(endpoint.peer().handle()) {
            block.pop_loan();
            let lender = &mut inner.sides[endpoint.side.peer() as usize];
            // An endpoint closed meanwhile has no count of its loans.
            lender.loans_out = lender.loans_out.saturating_sub(1);
            None
        } else {
            Some("to return a block that was not lent over this channel")
        }
    } else if shape.lent {
        if block.push_loan(endpoint.handle()) {
            inner.sides[endpoint.side as usize].loans_out += 1;
            None
        } else {
            Some("with a block that is lent on too often")
        }
    } else if block.is_lent() {
        Some("with a lent block as if it were its own")
    } else {
        None
    };
    match refused {
        None => Ok(()),
        Some(how) => {
            exheap::give_back(caller, block);
            Err(how)
        }
    }
}

fn untake_block(caller: ProcessRef, endpoint: EndpointRef, inner: &mut Inner, shape: &BlockShape, block: BlockRef) {
    if shape.returned {
        block.push_loan(endpoint.peer().handle());
        inner.sides[endpoint.side.peer() as usize].loans_out += 1;
    } else if shape.lent {
        block.pop_loan();
        inner.sides[endpoint.side as usize].loans_out -= 1;
    }
    exheap::give_back(caller, block);
}

/// Enqueues a checked message, whose blocks and endpoints are taken, at the peer.
#[inline(always)]
fn place(
    mut inner: SpinGuard<'static, Inner>,
    caller: ProcessRef,
    endpoint: EndpointRef,
    message: &Monitored,
    next: u16,
    buffer: MessageBuffer,
) -> Result<(), SendError> {
    inner.sides[endpoint.side as usize].state = next;
    let peer = endpoint.peer();
    if inner.sides[peer.side as usize].place == Place::Closed {
        drop(inner);
        let mut words = [0; MESSAGE_WORDS + 1];
        words[0] = message.word;
        buffer.read_words(&mut words[1..=message.words]);
        let mut endpoints = Vec::new();
        drop_message(message, &words[1..], &mut endpoints);
        close_all(endpoints);
        caller.sent.store(caller.sent.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        return Ok(());
    }
    let Some(slot) = inner.next_slot(peer.side) else {
        // The bound was computed by the contract compiler and is part of the fingerprint; one that is too small shows
        // up here.
        return Err(SendError::Violation(format!("sent {} into a full queue", message.shape.name)));
    };
    slot[0] = message.word;
    buffer.read_words(&mut slot[1..=message.words]);
    inner.sides[peer.side as usize].waiting += 1;
    observed::count_sent(&mut inner, caller, peer, message.word);
    inner.notify(peer);
    Ok(())
}

fn send_with_endpoints(
    caller: ProcessRef,
    endpoint: EndpointRef,
    message: &'static Monitored,
    (state, next): (u16, u16),
    buffer: MessageBuffer,
) -> Result<(), SendError> {
    let contract = endpoint.channel.inner.lock().contract.ok_or(Status::BadHandle)?;
    let first = message.shape.scalar_words as usize + message.shape.blocks.len() * BLOCK_WORDS;
    let put_back = |count: usize| {
        for number in 0..count {
            if let Ok(moved) = super::endpoint(buffer.get(first + number)) {
                adopt_endpoint(caller, moved);
            }
        }
    };
    for (number, shape) in message.shape.endpoints.iter().enumerate() {
        if let Err(how) = take_endpoint(caller, endpoint, shape, buffer.get(first + number)) {
            put_back(number);
            return Err(violation(contract, message, state, how));
        }
    }
    let count = message.shape.endpoints.len();
    let mut inner = match endpoint.lock_owned(caller) {
        Ok(inner) if inner.sides[endpoint.side as usize].state == state => inner,
        _ => {
            put_back(count);
            return Err(violation(contract, message, state, "while another thread used the endpoint"));
        }
    };
    if let Err(how) = take_blocks(caller, endpoint, &mut inner, message, buffer) {
        drop(inner);
        put_back(count);
        return Err(violation(contract, message, state, how));
    }
    place(inner, caller, endpoint, message, next, buffer)
}

/// Takes an endpoint from the caller for a message that goes out through `carrier`.
fn take_endpoint(
    caller: ProcessRef,
    carrier: EndpointRef,
    shape: &EndpointShape,
    handle: u64,
) -> Result<(), &'static str> {
    const NOT_OWN: &str = "with an endpoint that the sender does not own";
    let moved = super::endpoint(handle).map_err(|_| NOT_OWN)?;
    if core::ptr::eq(moved.channel, carrier.channel) {
        return Err("with an endpoint of the very channel it goes through");
    }
    if leads_to(carrier.peer(), moved) {
        return Err("with an endpoint that the receiving end is itself on the way to");
    }
    let mut inner = moved.lock_owned(caller).map_err(|_| NOT_OWN)?;
    check_movable(&inner, moved, shape)?;
    let side = &mut inner.sides[moved.side as usize];
    assume_state(side, shape);
    side.place = Place::InMessage(carrier.peer().handle());
    side.owner = None;
    drop(inner);
    caller.endpoints.lock().remove(moved.index());
    Ok(())
}

/// Without the monitor, believes that an endpoint that is moved has the state that is declared for it.
fn assume_state(side: &mut Side, shape: &EndpointShape) {
    if !MONITORED && shape.state != NO_TRANSITION {
        side.state = shape.state;
    }
}

/// Whether an endpoint may be moved and matches `shape`.
pub fn check_movable(inner: &Inner, endpoint: EndpointRef, shape: &EndpointShape) -> Result<(), &'static str> {
    let contract = inner.contract.ok_or("with an endpoint without a contract")?;
    if !MONITORED {
        return Ok(());
    }
    let side = &inner.sides[endpoint.side as usize];
    if shape.contract != 0
        && (shape.contract != contract.tag || shape.importer != (endpoint.side == SideIndex::Importer))
    {
        return Err("with an endpoint of another contract or side");
    }
    if shape.contract == 0 && shape.importer != (endpoint.side == SideIndex::Importer) {
        return Err("with the wrong end of a channel");
    }
    if shape.state != NO_TRANSITION && shape.state != side.state {
        return Err("with an endpoint in another state");
    }
    if contract.sender(side.state) != Some(endpoint.side) || side.waiting > 0 {
        return Err("with an endpoint whose turn it is not to send");
    }
    if side.loans_out > 0 || side.home != NO_BLOCK {
        return Err("with an endpoint that still has lent blocks out");
    }
    if !side.waiter.is_over() {
        return Err("with an endpoint that is waited at");
    }
    Ok(())
}

/// Takes an endpoint from a parent for a child's start-up slot with this `shape`. No message is sent through a slot, so
/// either end may be in its sending state.
pub fn take_givable(parent: ProcessRef, endpoint: EndpointRef, shape: &EndpointShape) -> Result<(), Status> {
    let mut inner = endpoint.lock_owned(parent)?;
    let contract = inner.contract.ok_or(Status::BadHandle)?;
    let side = &mut inner.sides[endpoint.side as usize];
    let importer = endpoint.side == SideIndex::Importer;
    assume_state(side, shape);
    if contract.tag != shape.contract || importer != shape.importer || side.state != shape.state {
        return Err(Status::ContractMismatch);
    }
    if side.loans_out > 0 || side.home != NO_BLOCK || !side.waiter.is_over() {
        return Err(Status::Busy);
    }
    side.waiter = Waiter::Nobody;
    side.place = Place::InMessage(0);
    side.owner = None;
    parent.endpoints.lock().remove(endpoint.index());
    Ok(())
}

/// Whether `from` is in a message, on its way (perhaps over others) to `target`. An endpoint moves only in its sending
/// state, so its peer cannot send and no message is in flight to it: the path is one step long. A path longer than any
/// contract allows counts as leading to `target`.
fn leads_to(from: EndpointRef, target: EndpointRef) -> bool {
    const STEPS: usize = 4;
    let mut at = from;
    for _ in 0..STEPS {
        if at.handle() == target.handle() {
            return true;
        }
        let place = at.channel.inner.lock().sides[at.side as usize].place;
        match place {
            Place::InMessage(towards) => match super::endpoint(towards) {
                Ok(next) => at = next,
                Err(_) => return false,
            },
            _ => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests;
