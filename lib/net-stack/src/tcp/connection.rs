//! One connection: its state machine, its two ends, its wakers and its timeouts.
//!
//! Deliberately not here: ownership, and scheduling.

use core::task::Waker;

use ::tcp::{Memory, Reaction, Seq, State};

use crate::ends::{End, Failure};
use crate::output::{Buffer, Output};
use crate::packet::Segment;

use super::{Holder, emit};

/// Timeout for the peer's FIN on an orphaned connection, in nanoseconds.
const ORPHAN_NS: u64 = 60_000_000_000;
/// Silence after which a retransmission probes the neighbour, in nanoseconds: that of the third SYN.
const SILENCE_NS: u64 = 3_000_000_000;

pub(super) struct Connection {
    pub(super) machine: ::tcp::Connection,
    pub(super) local: End,
    pub(super) remote: End,
    pub(super) holder: Holder,
    pub(super) is_dirty: bool,
    /// The earliest time of this connection in the heap.
    pub(super) scheduled_ns: Option<u64>,
    /// Cause of the failure.
    pub(super) failure: Option<Failure>,
    /// A possible reason for the peer's silence.
    pub(super) hint: Option<Failure>,
    /// Whether it is in the connection table.
    pub(super) is_listed: bool,
    /// Time of the last segment received.
    pub(super) received_ns: u64,
    /// Since when data has been unacknowledged.
    pub(super) unanswered_since_ns: Option<u64>,
    /// Maximum time for that, in nanoseconds (user timeout).
    pub(super) timeout_ns: u64,
    /// Waker of the reader.
    pub(super) reader: Option<Waker>,
    /// Waker of the writer, or of the client waiting for the connection to be established.
    pub(super) writer: Option<Waker>,
}

impl Connection {
    pub(super) fn state(&self) -> State {
        self.machine.state()
    }

    /// Returns when an orphaned connection stops waiting for the peer's FIN.
    pub(super) fn orphaned_at_ns(&self) -> Option<u64> {
        match self.holder {
            Holder::Nobody { since_ns } if self.state() == State::FinWait2 => Some(since_ns.saturating_add(ORPHAN_NS)),
            _ => None,
        }
    }

    /// Returns when the peer is considered dead unless it answers.
    pub(super) fn given_up_at_ns(&self) -> Option<u64> {
        match (self.unanswered_since_ns, self.machine.keep_alive_ns()) {
            (Some(since_ns), _) => Some(since_ns.max(self.received_ns).saturating_add(self.timeout_ns)),
            (None, Some(silence_ns)) => {
                Some(self.received_ns.saturating_add(silence_ns).saturating_add(self.timeout_ns))
            }
            (None, None) => None,
        }
    }

    /// Whether the peer has not answered for so long that its neighbour may have another address. One that repeats its SYN
    /// has not seen the answer.
    fn is_silent(&self, now_ns: u64) -> bool {
        let received_ns = if self.state() == State::SynReceived { 0 } else { self.received_ns };
        self.unanswered_since_ns.is_some_and(|since_ns| now_ns >= since_ns.max(received_ns).saturating_add(SILENCE_NS))
    }

    /// Processes a segment; `bytes` are its bytes including the header.
    pub(super) fn receive(&mut self, memory: &mut Memory, segment: &Segment, bytes: &[u8], now_ns: u64) -> Reaction {
        let taken = ::tcp::Segment {
            seq: Seq(segment.sequence),
            ack: segment.is_ack.then_some(Seq(segment.acknowledged)),
            window: segment.window,
            is_syn: segment.is_syn,
            is_fin: segment.is_fin,
            is_reset: segment.is_reset,
            options: emit::options(bytes),
            payload: bytes.get(bytes.len() - segment.data_bytes..).unwrap_or(&[]),
        };
        let reaction = self.machine.receive(memory, &taken, now_ns);
        if reaction == Reaction::None {
            self.received_ns = now_ns;
        }
        self.wake(memory);
        reaction
    }

    /// Wakes the tasks whose condition holds.
    pub(super) fn wake(&mut self, memory: &Memory) {
        let state = self.state();
        let is_beginning = matches!(state, State::SynSent | State::SynReceived);
        let has_ended = state == State::Closed;
        if (self.machine.readable() > 0 || self.machine.is_peer_finished() || has_ended)
            && let Some(reader) = self.reader.take()
        {
            reader.wake();
        }
        let can_write = !is_beginning && (!self.machine.may_write() || self.machine.has_room(memory));
        if (can_write || has_ended)
            && let Some(writer) = self.writer.take()
        {
            writer.wake();
        }
    }

    /// Aborts the connection with a reset.
    pub(super) fn abort(&mut self, memory: &mut Memory) {
        self.machine.abort(memory);
        self.wake(memory);
    }

    /// Sends as much as permitted while there are buffers.
    pub(super) fn send_all<B: Buffer>(&mut self, output: &mut Output<B>) {
        let path = emit::path(output, &self.remote.address);
        while output.has_room() {
            let Some(transmit) = self.machine.next_transmit(&path, output.now_ns) else { return };
            if transmit.is_retransmission && self.is_silent(output.now_ns) {
                output.doubt(&self.remote.address);
            }
            emit::send(output, (self.local, self.remote), &transmit, |payload| {
                self.machine.copy_payload(&transmit, payload);
            });
        }
    }
}
