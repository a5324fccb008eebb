//! Closing channels, with messages in flight.

use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use abi::Status;
use abi::limits::BLOCK_WORDS;

use super::loans::{dispose, settle_loans};
use super::{CHANNELS, EndpointRef, Inner, KEPT_WORDS, Place, Side, Waiter};
use crate::contract::Monitored;
use crate::exheap::{self, BLOCKS, BlockRef};
use crate::lock::SpinGuard;
use crate::process::ProcessRef;
use crate::{memory, preempt};

/// Closes an endpoint of the caller; returns what it was, as the word of an [`abi::HeldEndpoint`].
pub fn close(caller: ProcessRef, endpoint: EndpointRef) -> Result<u64, Status> {
    let inner = endpoint.lock_owned(caller)?;
    let closed = inner.contract.map_or(0, |contract| inner.held(contract, endpoint.side).word());
    caller.endpoints.lock().remove(endpoint.index());
    let has_loans = inner.sides[endpoint.side as usize].loans_out > 0;
    let mut more = Vec::new();
    close_locked(endpoint, inner, &mut more);
    close_all(more);
    if has_loans {
        settle_loans(caller);
    }
    Ok(closed)
}

/// Closes endpoints that are in no list, and those in messages queued for them. A work list rather than recursion: a
/// SIP may nest endpoints in messages deeper than a stack.
pub fn close_all(mut endpoints: Vec<EndpointRef>) {
    while let Some(endpoint) = endpoints.pop() {
        preempt::pause();
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
    let side = &mut inner.sides[endpoint.side as usize];
    let (first, count) = (side.head, side.waiting);
    // The queued messages are dropped after the lock is released.
    let waiting = if count > 0 { core::mem::take(&mut side.queue) } else { Vec::new() };
    let set = match side.waiter {
        Waiter::Set { set, .. } => Some(set),
        _ => None,
    };
    let home = side.close();
    let both_closed = inner.sides[endpoint.side.peer() as usize].place == Place::Closed;
    // No caller can query it any more, and the text is memory. Freed after the lock is released, as are large queues.
    let _speakers = both_closed.then(|| inner.sides.each_mut().map(|side| side.speaker.take()));
    let _queues = both_closed.then(|| {
        let kept_words = if memory::is_low() { 0 } else { KEPT_WORDS };
        inner.sides.each_mut().map(|side| side.take_queue(kept_words))
    });
    if both_closed {
        for side in &mut inner.sides {
            side.speaker_bytes = 0;
        }
        inner.refund();
    }
    if !both_closed {
        inner.notify(endpoint.peer());
    }
    drop(inner);
    if let Some(set) = set {
        // A set that is gone needs no update.
        let _ = crate::sync::forget(set);
    }
    if both_closed {
        CHANNELS.release(endpoint.channel);
    }
    let bound = contract.bounds[endpoint.side as usize];
    for number in 0..count {
        let start = ((first + number) % bound.max(1)) as usize * contract.slot_words;
        let Some(words) = waiting.get(start..start + contract.slot_words) else { break };
        if let Some(message) = contract.message((words[0] & 0xffff) as usize) {
            drop_message(message, &words[1..], more);
        }
    }
    let mut next = BLOCKS.slot(home);
    while let Some(block) = next {
        next = BLOCKS.slot(block.next.load(Ordering::Relaxed));
        dispose(block);
        preempt::pause();
    }
}

impl Side {
    /// Takes the queue, unless it is small enough to stay with the slot.
    fn take_queue(&mut self, kept_words: usize) -> Vec<u64> {
        if self.queue.len() <= kept_words { Vec::new() } else { core::mem::take(&mut self.queue) }
    }
}

/// Frees the queues kept by free slots.
pub fn trim() {
    for channel in preempt::pausing(CHANNELS.all()).filter(|channel| !channel.is_live()) {
        let mut inner = channel.inner.lock();
        // Checked again under the lock: a channel being created gets its queues with it held.
        if !channel.is_live() {
            let _queues = inner.sides.each_mut().map(|side| core::mem::take(&mut side.queue));
            drop(inner);
        }
    }
}

/// Frees the blocks of an undeliverable message, and collects its endpoints for closing.
pub(super) fn drop_message(message: &Monitored, words: &[u64], endpoints: &mut Vec<EndpointRef>) {
    let mut at = message.shape.scalar_words as usize;
    for _ in &message.shape.blocks {
        if let Ok(block) = exheap::block(words[at]) {
            dispose(block);
        }
        at += BLOCK_WORDS;
    }
    for _ in &message.shape.endpoints {
        if let Ok(moved) = super::endpoint(words[at]) {
            endpoints.push(moved);
        }
        at += 1;
    }
}

/// Returns a lent block to the endpoint that lent it; false if that is closed.
pub(super) fn bring_home(lender: u64, block: BlockRef) -> bool {
    let Ok(endpoint) = super::endpoint(lender) else { return false };
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
    if let Some(owner) = side.owner {
        exheap::pass(owner, block);
    }
    if inner.is_ready(endpoint.side) {
        inner.notify(endpoint);
    }
    true
}
