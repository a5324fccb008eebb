//! TIME-WAIT: remainder of an actively closed connection, its two ends, until a timeout.
//!
//! The peer may have missed the acknowledgment of its FIN and retransmit it; it is acknowledged without any stored
//! sequence numbers, from those in the segment itself. A new connection between the same ends may begin meanwhile:
//! its initial sequence number is unpredictable (RFC 6528), and old segments fall outside its window.

use alloc::collections::{BTreeSet, VecDeque};

use crate::ends::End;
use crate::output::{Buffer, Output};
use crate::packet::Segment;

use super::emit;

/// Duration in nanoseconds: shorter than the 2 MSL of RFC 9293, but still long for any network today.
const TIME_WAIT_NS: u64 = 30_000_000_000;
/// Maximum entries; at the limit the oldest is dropped.
const MAX_ENTRIES: usize = 32_768;

#[derive(Default)]
pub(crate) struct TimeWait {
    ends: BTreeSet<(End, End)>,
    order: VecDeque<(u64, (End, End))>,
}

impl TimeWait {
    pub(crate) fn insert(&mut self, ends: (End, End), now_ns: u64) {
        if self.ends.len() >= MAX_ENTRIES
            && let Some((_, oldest)) = self.order.pop_front()
        {
            self.ends.remove(&oldest);
        }
        self.ends.insert(ends);
        self.order.push_back((now_ns + TIME_WAIT_NS, ends));
    }

    pub(crate) fn count(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn has(&self, local: End, remote: End) -> bool {
        self.ends.contains(&(local, remote))
    }

    /// Drops expired entries.
    pub(crate) fn serve(&mut self, now_ns: u64) {
        while self.order.front().is_some_and(|(time_ns, _)| *time_ns <= now_ns) {
            if let Some((_, ends)) = self.order.pop_front() {
                self.ends.remove(&ends);
            }
        }
    }

    pub(crate) fn next_time_ns(&self) -> Option<u64> {
        self.order.front().map(|(time_ns, _)| *time_ns)
    }

    /// Processes a segment that matches no connection; returns `false` if it matches no entry here either.
    pub(crate) fn receive<B: Buffer>(
        &mut self,
        output: &mut Output<B>,
        segment: &Segment,
        local: End,
        remote: End,
    ) -> bool {
        if !self.has(local, remote) {
            return false;
        }
        if segment.is_fin && segment.is_ack && !segment.is_reset {
            let expected = segment.sequence.wrapping_add(segment.sequence_bytes());
            emit::send_bare(output, (local, remote), segment.acknowledged, expected);
        }
        true
    }
}
