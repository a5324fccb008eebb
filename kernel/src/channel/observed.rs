//! Latencies of sampled messages, and messages in the trace stream.
//!
//! A sender samples now and then; while the stream has a reader, it observes each message. A receiver looks at a message
//! only if its queue has been observed. All of it is done with the channel locked, so it costs other messages one branch
//! at each end.

use core::sync::atomic::{Ordering, fence};

use abi::{StreamRecord, TraceKind};

use super::{Channel, EndpointRef, Inner};
use crate::contract::{Contract, SideIndex};
use crate::machine::machine;
use crate::process::{ProcessRef, stream};
use crate::slab::Slot;

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
        observe(inner, sender, to.channel, to.side, word);
    }
}

#[cold]
#[inline(never)]
fn observe(inner: &mut Inner, sender: ProcessRef, channel: &'static Slot<Channel>, to: SideIndex, word: u64) {
    let Some(contract) = inner.contract else { return };
    let side = &mut inner.sides[to as usize];
    let observed = &mut side.observed;
    if observed.stamp_ns <= UNTIMED {
        observed.stamp_ns = machine().monotonic_ns().max(UNTIMED + 1);
        observed.ahead = side.waiting - 1;
    }
    if stream::is_on() {
        observed.streamed = observed.streamed.wrapping_add(1);
        emit(sender, TraceKind::Sent, endpoint(channel, to), observed.streamed, contract, word);
    }
    next_sample(sender, sender.sent.load(Ordering::Relaxed));
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
pub(super) fn received(
    inner: &mut Inner,
    receiver: ProcessRef,
    channel: &'static Slot<Channel>,
    at: SideIndex,
    word: u64,
) {
    let Some(contract) = inner.contract else { return };
    let side = &mut inner.sides[at as usize];
    let observed = &mut side.observed;
    if observed.stamp_ns > UNTIMED {
        if observed.ahead == 0 {
            let ns = machine().monotonic_ns().saturating_sub(observed.stamp_ns);
            contract.latencies[at as usize].add(ns);
            observed.stamp_ns = 0;
        } else {
            observed.ahead -= 1;
        }
    }
    if stream::is_on() {
        // Of a message that was sent before the stream started, a number that no message of the stream has.
        let number = observed.streamed.wrapping_sub(side.waiting);
        emit(receiver, TraceKind::Received, endpoint(channel, at), number, contract, word);
        observed.stamp_ns = observed.stamp_ns.max(UNTIMED);
    } else if observed.stamp_ns == UNTIMED {
        observed.stamp_ns = 0;
    }
}

/// The end of a channel that is open. Passed in its parts, because a reference to it would cost each message.
fn endpoint(channel: &'static Slot<Channel>, side: SideIndex) -> EndpointRef {
    EndpointRef { channel, side, generation: channel.generation() }
}

fn emit(process: ProcessRef, kind: TraceKind, to: EndpointRef, number: u32, contract: &Contract, word: u64) {
    let message = StreamRecord::message_of(contract.index, word as u16);
    stream::add(process.id.load(Ordering::Relaxed), kind, to.handle(), u64::from(number), message);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::test_contract::{ASK, Got, ask, between, contract, get, user};
    use crate::test_machine::{advance, alone};

    /// Counts of all latencies to the exporter, and of those in the highest bucket in use.
    fn counts() -> (u64, Option<usize>) {
        let (buckets, _) = contract().latencies[1].read();
        (buckets.iter().sum(), buckets.iter().rposition(|count| *count > 0))
    }

    #[test]
    fn first_messages_are_timed_from_send_to_receive() {
        let _alone = alone();
        let (sender, receiver) = (user(), user());
        let (importer, exporter) = between(sender, receiver);
        let before = counts().0;
        for _ in 0..5 {
            assert_eq!(ask(sender, importer, 1), Ok(()));
            advance(3_000_000_000);
            assert!(matches!(get(receiver, exporter), Got::Message(ASK, _)));
        }
        let (after, highest) = counts();
        assert_eq!(after - before, 5);
        // 3 s are at least 2^31 ns, and less than 2^32.
        assert_eq!(highest, Some(32 - abi::LATENCY_FIRST_BITS as usize));
    }

    #[test]
    fn one_message_is_timed_though_others_are_queued_around_it() {
        let _alone = alone();
        let (sender, receiver) = (user(), user());
        let (importer, exporter) = between(sender, receiver);
        let before = counts().0;
        for _ in 0..3 {
            assert_eq!(ask(sender, importer, 1), Ok(()));
        }
        for received in 0..3 {
            assert!(matches!(get(receiver, exporter), Got::Message(ASK, _)));
            assert_eq!(counts().0 - before, 1, "after {received}");
        }
    }

    #[test]
    fn a_process_that_sends_much_is_sampled_rarely_and_not_in_step() {
        let _alone = alone();
        let sender = user();
        let mut sampled = alloc::vec::Vec::new();
        for sent in 1..100_000 {
            if sent >= sender.sample_at.load(Ordering::Relaxed) {
                next_sample(sender, sent);
                sampled.push(sent);
            }
        }
        let late = sampled.iter().filter(|sent| **sent >= 50_000).count() as u64;
        assert!((50_000 / SPARSE / 2..50_000 / SPARSE * 2).contains(&late), "{late} of 50,000");
        // Of requests in a pattern of two or four messages, each is met.
        for period in [2, 4] {
            for phase in 0..period {
                let met = sampled.iter().filter(|sent| **sent % period == phase).count() as u64;
                assert!(met * period * 2 > sampled.len() as u64, "{met} of {} at {phase}", sampled.len());
            }
        }
    }
}
