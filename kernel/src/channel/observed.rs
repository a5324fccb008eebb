//! Latencies of sampled messages, and messages in the trace stream.
//!
//! A sender samples now and then; while the stream has a reader, it observes each message. A receiver looks at a message
//! only if its queue has been observed. All of it is done with the channel locked, so it costs other messages one branch
//! at each end.

use core::sync::atomic::{Ordering, fence};

use abi::{StreamRecord, TraceKind};

use super::{EndpointRef, Inner};
use crate::contract::Contract;
use crate::machine::machine;
use crate::process::{ProcessRef, stream};

/// Mean number of messages from one sample of a busy process to the next.
const SPARSE: u64 = 256;
/// [`Observed::stamp_ns`] if no message is timed.
const UNTIMED: u64 = 1;

/// What is known of the messages queued for one end.
#[derive(Default)]
pub(super) struct Observed {
    /// When the timed message was sent, in ns; [`UNTIMED`], or 0 if the receiver need not look.
    stamp_ns: u64,
    /// Messages queued before the timed one.
    ahead: u32,
    /// Messages that have gone to the stream.
    streamed: u32,
}

impl Observed {
    /// Whether the receiver of a message must call [`received`].
    #[inline(always)]
    pub(super) fn is_on(&self) -> bool {
        self.stamp_ns != 0
    }
}

/// Counts a message of `sender` that has just been queued for `to`.
#[inline(always)]
pub(super) fn count_sent(inner: &mut Inner, sender: ProcessRef, to: EndpointRef, word: u64) {
    let sent = sender.sent.load(Ordering::Relaxed) + 1;
    sender.sent.store(sent, Ordering::Relaxed);
    if sent >= sender.sample_at.load(Ordering::Relaxed) {
        observe(inner, sender, to, word, sent);
    }
}

#[cold]
#[inline(never)]
fn observe(inner: &mut Inner, sender: ProcessRef, to: EndpointRef, word: u64, sent: u64) {
    let Some(contract) = inner.contract else { return };
    let side = &mut inner.sides[to.side as usize];
    let observed = &mut side.observed;
    if observed.stamp_ns <= UNTIMED {
        observed.stamp_ns = machine().monotonic_ns().max(UNTIMED + 1);
        observed.ahead = side.waiting - 1;
    }
    if stream::is_on() {
        observed.streamed = observed.streamed.wrapping_add(1);
        emit(sender, TraceKind::Sent, to, observed.streamed, contract, word);
    }
    next_sample(sender, sent);
}

/// Decides on the next sample: each message of a process that has sent few, then ever fewer, at distances that follow no
/// pattern of requests.
fn next_sample(sender: ProcessRef, sent: u64) {
    let spread = (sent / 8).min(2 * SPARSE - 1) + 1;
    let scattered = sent.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    sender.sample_at.store(sent + 1 + scattered % spread, Ordering::Relaxed);
    // Either a stream that starts is seen here, or it sees this and sets it to 0; see `stream::start`.
    fence(Ordering::SeqCst);
    if stream::is_on() {
        sender.sample_at.store(0, Ordering::Relaxed);
    }
}

/// Observes the message that `receiver` has just taken out of the queue of `at`.
#[cold]
#[inline(never)]
pub(super) fn received(inner: &mut Inner, receiver: ProcessRef, at: EndpointRef, contract: &Contract, word: u64) {
    let side = &mut inner.sides[at.side as usize];
    let observed = &mut side.observed;
    if observed.stamp_ns > UNTIMED {
        if observed.ahead == 0 {
            let ns = machine().monotonic_ns().saturating_sub(observed.stamp_ns);
            contract.latencies[at.side as usize].add(ns);
            observed.stamp_ns = 0;
        } else {
            observed.ahead -= 1;
        }
    }
    if stream::is_on() {
        // Of a message that was sent before the stream started, a number that no message of the stream has.
        let number = observed.streamed.wrapping_sub(side.waiting);
        emit(receiver, TraceKind::Received, at, number, contract, word);
        observed.stamp_ns = observed.stamp_ns.max(UNTIMED);
    } else if observed.stamp_ns == UNTIMED {
        observed.stamp_ns = 0;
    }
}

fn emit(process: ProcessRef, kind: TraceKind, to: EndpointRef, number: u32, contract: &Contract, word: u64) {
    let message = StreamRecord::message_of(contract.index, word as u16);
    stream::add(process.id.load(Ordering::Relaxed), kind, [to.handle(), u64::from(number), message]);
}
