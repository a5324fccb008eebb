//! Closing, and what becomes of what was under way.

use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use abi::Status;
use abi::limits::BLOCK_WORDS;

use super::{CHANNELS, EndpointRef, Inner, Place, Waiter};
use crate::claims;
use crate::contract::Monitored;
use crate::exheap::{self, BLOCKS, BlockRef};
use crate::lock::SpinGuard;
use crate::memory;
use crate::process::ProcessRef;
use crate::sync::Membership;

/// Closes an endpoint of the caller's.
pub fn close(caller: ProcessRef, endpoint: EndpointRef) -> Result<(), Status> {
    let inner = endpoint.lock_owned(caller)?;
    caller.endpoints.lock().remove(endpoint.index());
    let mut more = Vec::new();
    close_locked(endpoint, inner, &mut more);
    close_all(more);
    Ok(())
}

/// Closes endpoints that are in nobody's list, and those in messages that wait for them. A work list
/// rather than recursion: a SIP may nest endpoints in messages deeper than a stack.
pub fn close_all(mut endpoints: Vec<EndpointRef>) {
    while let Some(endpoint) = endpoints.pop() {
        let inner = endpoint.channel.inner.lock();
        if endpoint.channel.generation() == endpoint.generation
            && inner.sides[endpoint.side as usize].place != Place::Closed
        {
            close_locked(endpoint, inner, &mut endpoints);
        }
    }
}

fn close_locked(endpoint: EndpointRef, mut inner: SpinGuard<'static, Inner>, more: &mut Vec<EndpointRef>) {
    let Some(contract) = inner.contract else { return };
    let mut waiting: Vec<Vec<u64>> = Vec::new();
    let bound = contract.bounds[endpoint.side as usize];
    for number in 0..inner.sides[endpoint.side as usize].waiting {
        let position = (inner.sides[endpoint.side as usize].head + number) % bound.max(1);
        if let Some(slot) = inner.slot(endpoint.side, position) {
            waiting.push(slot.to_vec());
        }
    }
    let side = &mut inner.sides[endpoint.side as usize];
    let set = match side.waiter {
        Waiter::Set { set, .. } => Some(set),
        _ => None,
    };
    let home = side.close();
    let both_closed = inner.sides[endpoint.side.peer() as usize].place == Place::Closed;
    // Nobody can ask any more, and the text is memory. It is freed when the lock is free.
    let _speakers = both_closed.then(|| inner.sides.each_mut().map(|side| side.speaker.take()));
    if both_closed && memory::is_low() {
        // Kept for the slot's next channel otherwise.
        inner.storage = Vec::new();
    }
    let creator = inner.creator;
    if !both_closed {
        inner.notify(endpoint.peer());
    }
    drop(inner);
    if let Some(set) = set {
        // A set that is gone has nothing to forget.
        let _ = crate::sync::leave(set, endpoint.handle(), Membership::Waiting);
    }
    for words in &waiting {
        if let Some(message) = contract.message((words[0] & 0xffff) as usize) {
            drop_message(message, &words[1..], more);
        }
    }
    let mut next = BLOCKS.slot(home);
    while let Some(block) = next {
        next = BLOCKS.slot(block.next.load(Ordering::Relaxed));
        exheap::dispose(block);
    }
    if both_closed {
        CHANNELS.release(endpoint.channel);
        if let Some((creator, id)) = creator {
            creator.refund_channel(id);
        }
    }
}

/// Ends the blocks of a message that nobody will receive, and collects its endpoints to be closed.
pub(super) fn drop_message(message: &Monitored, words: &[u64], endpoints: &mut Vec<EndpointRef>) {
    let mut at = message.shape.scalar_words as usize;
    for _ in &message.shape.blocks {
        if let Ok(block) = claims::block(words[at]) {
            exheap::dispose(block);
        }
        at += BLOCK_WORDS;
    }
    for _ in &message.shape.endpoints {
        if let Ok(moved) = claims::endpoint(words[at]) {
            endpoints.push(moved);
        }
        at += 1;
    }
}

/// Leaves a lent block at the endpoint that lent it; false if that is closed.
pub fn bring_home(lender: u64, block: BlockRef) -> bool {
    let Ok(endpoint) = claims::endpoint(lender) else { return false };
    let mut inner = endpoint.channel.inner.lock();
    let open = endpoint.channel.generation() == endpoint.generation
        && inner.sides[endpoint.side as usize].place != Place::Closed;
    if !open {
        return false;
    }
    let side = &mut inner.sides[endpoint.side as usize];
    block.next.store(side.home, Ordering::Relaxed);
    side.home = block.index();
    side.loans_out = side.loans_out.saturating_sub(1);
    if inner.is_ready(endpoint.side) {
        inner.notify(endpoint);
    }
    true
}
