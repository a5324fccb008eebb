//! The retransmission scoreboard: unacknowledged segments with send times, SACKed and lost ranges.
//!
//! Loss detection is by time (RACK, RFC 8985): a segment sent sufficiently before one that was delivered is lost. For
//! a peer without SACK, duplicate ACKs count (RFC 6582). Deliberately not here: the congestion window.

use alloc::collections::VecDeque;

use crate::rate::Sample;
use crate::seq::Seq;

/// Maximum number of entries; no new data is sent beyond it.
pub(crate) const MAX_ENTRIES: usize = 1024;
/// Maximum number of entries after splitting; beyond it partial SACKs are ignored.
const MAX_SPLIT_ENTRIES: usize = 2 * MAX_ENTRIES;
/// DupThresh: segments above a gap that mean loss rather than reordering (RFC 5681).
const DUPLICATE_THRESHOLD: u64 = 3;
/// Maximum reordering window, in quarters of the minimum RTT.
const MAX_REORDER_STEPS: u64 = 64;
/// Minimum RTT assumed for the reordering window once a retransmission proved spurious: host queues and schedulers
/// reorder by more than the RTT of a short path.
const SHORT_WAY_NS: u64 = 1_000_000;
/// Maximum reordering window on short paths, where RFC 8985 would limit it to the smoothed RTT.
const MAX_SHORT_REORDER_NS: u64 = 5_000_000;
/// Recoveries that a wider reordering window persists for (RFC 8985, 6.2).
const REORDER_PERSIST: u8 = 16;

/// A contiguous range sent in one transmission.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) seq: Seq,
    pub(crate) len: u32,
    sent_ns: u64,
    is_sacked: bool,
    is_lost: bool,
    is_retransmitted: bool,
    at_sending: Delivered,
}

/// Delivery state at the time of a transmission, for rate samples.
#[derive(Clone, Copy, Debug, Default)]
struct Delivered {
    bytes: u64,
    /// Time of the latest known delivery.
    time_ns: u64,
    /// When the delivered data was sent.
    sent_ns: u64,
    /// The sender was application-limited.
    is_limited: bool,
}

impl Sent {
    pub(crate) fn end(&self) -> Seq {
        self.seq + self.len
    }
}

/// Effects of one ACK.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    /// Newly delivered bytes.
    pub(crate) delivered: u64,
    /// RTT sample of the last one, if it was not retransmitted (Karn).
    pub(crate) rtt_ns: Option<u64>,
    newest_sent_ns: u64,
    /// Of the most recently sent delivered entry: time and delivery state.
    newest: Option<(u64, Delivered)>,
}

/// RACK.segment: the most recently sent segment that was delivered.
#[derive(Clone, Copy, Debug)]
struct Rack {
    sent_ns: u64,
    end: Seq,
    rtt_ns: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Scoreboard {
    sent: VecDeque<Sent>,
    pipe: u64,
    sacked: u64,
    lost: u64,
    /// Duplicate ACKs of a peer without SACK.
    unsacked_delivered: u64,
    rack: Option<Rack>,
    /// Highest sequence number delivered (RACK.fack).
    highest: Option<Seq>,
    is_reordering_seen: bool,
    reorder_steps: u64,
    reorder_persist: u8,
    /// Whether a retransmission is outstanding.
    has_retransmitted: bool,
    delivered: Delivered,
    /// Rate samples are application-limited until this many bytes are delivered.
    limited_until: u64,
    /// Bytes marked lost since the last call.
    newly_lost: u64,
}

impl Scoreboard {
    pub(crate) fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.sent.len() >= MAX_ENTRIES
    }

    /// Bytes in flight ("pipe"): sent, and neither SACKed nor marked lost.
    pub(crate) fn pipe(&self) -> u64 {
        self.pipe.saturating_sub(self.unsacked_delivered)
    }

    /// SACKed bytes.
    pub(crate) fn sacked(&self) -> u64 {
        self.sacked
    }

    /// Records a transmission of new data.
    pub(crate) fn push(&mut self, seq: Seq, len: u32, now_ns: u64) {
        let entry = Sent {
            seq,
            len,
            sent_ns: now_ns,
            is_sacked: false,
            is_lost: false,
            is_retransmitted: false,
            at_sending: self.at_sending(now_ns),
        };
        self.sent.push_back(entry);
        self.pipe += u64::from(len);
    }

    /// The delivery state to record with a transmission.
    fn at_sending(&mut self, now_ns: u64) -> Delivered {
        if self.pipe == 0 {
            (self.delivered.time_ns, self.delivered.sent_ns) = (now_ns, now_ns);
        }
        Delivered { is_limited: self.limited_until > self.delivered.bytes, ..self.delivered }
    }

    /// Marks the flow application-limited.
    pub(crate) fn note_limited(&mut self) {
        self.limited_until = (self.delivered.bytes + self.pipe).max(1);
    }

    /// The delivery rate sample of an ACK.
    pub(crate) fn rate(&self, progress: &Progress, min_rtt_ns: u64) -> Option<Sample> {
        let (sent_ns, before) = progress.newest?;
        let bytes = self.delivered.bytes - before.bytes;
        let sending_ns = sent_ns.saturating_sub(before.sent_ns);
        let arriving_ns = self.delivered.time_ns.saturating_sub(before.time_ns);
        let took_ns = sending_ns.max(arriving_ns);
        // An interval below the minimum RTT is ACK compression.
        let is_plausible = took_ns >= min_rtt_ns.max(1);
        let bytes_per_s = is_plausible.then(|| bytes.saturating_mul(1_000_000_000) / took_ns)?;
        Some(Sample { bytes_per_s, is_limited: before.is_limited })
    }

    /// Bytes marked lost since the last call.
    pub(crate) fn take_newly_lost(&mut self) -> u64 {
        core::mem::take(&mut self.newly_lost)
    }

    /// The first entry marked lost.
    pub(crate) fn first_lost(&self) -> Option<Sent> {
        if self.lost == 0 {
            return None;
        }
        self.sent.iter().find(|entry| entry.is_lost).copied()
    }

    /// The first entry not SACKed.
    pub(crate) fn first_missing(&self) -> Option<Sent> {
        self.sent.iter().find(|entry| !entry.is_sacked).copied()
    }

    /// Splits off the tail of the last entry, at most `max_len` bytes, for a tail loss probe.
    pub(crate) fn split_last(&mut self, max_len: u32) -> Option<Sent> {
        let last = *self.sent.back()?;
        if last.len > max_len {
            self.split(self.sent.len() - 1, last.len - max_len);
        }
        self.sent.back().copied()
    }

    /// Records a retransmission of the entry at `seq`, of at most `max_len` bytes; returns their number.
    pub(crate) fn retransmit(&mut self, seq: Seq, max_len: u32, now_ns: u64) -> u32 {
        let Some(index) = self.index_of(seq) else { return 0 };
        if self.sent[index].len > max_len {
            self.split(index, max_len);
        }
        let at_sending = self.at_sending(now_ns);
        let entry = &mut self.sent[index];
        entry.at_sending = at_sending;
        let len = u64::from(entry.len);
        if entry.is_lost {
            self.lost -= len;
            self.pipe += len;
        }
        (entry.is_lost, entry.is_retransmitted, entry.sent_ns) = (false, true, now_ns);
        self.has_retransmitted = true;
        entry.len
    }

    fn index_of(&self, seq: Seq) -> Option<usize> {
        let index = self.sent.partition_point(|entry| entry.seq.is_before(seq));
        self.sent.get(index).filter(|entry| entry.seq == seq).map(|_| index)
    }

    /// Splits an entry.
    fn split(&mut self, index: usize, len: u32) {
        let first = &mut self.sent[index];
        let rest = Sent { seq: first.seq + len, len: first.len - len, ..*first };
        first.len = len;
        self.sent.insert(index + 1, rest);
    }

    /// Processes a cumulative ACK.
    pub(crate) fn ack(&mut self, to: Seq, min_rtt_ns: Option<u64>, now_ns: u64, progress: &mut Progress) {
        self.unsacked_delivered = 0;
        while let Some(front) = self.sent.front_mut() {
            if !front.seq.is_before(to) {
                break;
            }
            if to.is_before(front.end()) {
                // A partial ACK of the entry.
                let rest = front.end().since(to);
                let mut part = *front;
                part.len -= rest;
                (front.seq, front.len) = (to, rest);
                self.deliver(part, min_rtt_ns, now_ns, progress);
                break;
            }
            let Some(entry) = self.sent.pop_front() else { break };
            self.deliver(entry, min_rtt_ns, now_ns, progress);
        }
        if self.sent.is_empty() {
            self.has_retransmitted = false;
        }
    }

    /// Processes a SACK block. Only whole segments count.
    pub(crate) fn sack(
        &mut self,
        (start, end): (Seq, Seq),
        mss: u32,
        min_rtt_ns: Option<u64>,
        now_ns: u64,
        progress: &mut Progress,
    ) {
        let mut index = self.sent.partition_point(|entry| !entry.end().is_after(start));
        while let Some(entry) = self.sent.get(index).filter(|entry| entry.seq.is_before(end)).copied() {
            index += 1;
            if entry.is_sacked {
                continue;
            }
            let Some((skipped, covered)) = whole_segments(&entry, start, end, mss) else { continue };
            if covered < entry.len {
                if self.sent.len() >= MAX_SPLIT_ENTRIES {
                    continue;
                }
                index -= 1;
                if skipped > 0 {
                    self.split(index, skipped);
                    index += 1;
                }
                if self.sent[index].len > covered {
                    self.split(index, covered);
                }
                index += 1;
            }
            let entry = self.sent[index - 1];
            self.deliver(entry, min_rtt_ns, now_ns, progress);
            self.sent[index - 1].is_sacked = true;
            self.sent[index - 1].is_lost = false;
            self.sacked += u64::from(entry.len);
        }
    }

    /// Accounts for a delivered entry; the caller removes or marks it.
    fn deliver(&mut self, entry: Sent, min_rtt_ns: Option<u64>, now_ns: u64, progress: &mut Progress) {
        let len = u64::from(entry.len);
        match (entry.is_sacked, entry.is_lost) {
            (true, _) => {
                self.sacked -= len;
                return;
            }
            (false, true) => self.lost -= len,
            (false, false) => self.pipe -= len,
        }
        progress.delivered += len;
        self.delivered.bytes += len;
        self.delivered.time_ns = now_ns;
        if progress.newest.is_none_or(|(sent_ns, _)| entry.sent_ns >= sent_ns) {
            progress.newest = Some((entry.sent_ns, entry.at_sending));
            self.delivered.sent_ns = entry.sent_ns;
        }
        let took_ns = now_ns.saturating_sub(entry.sent_ns);
        if !entry.is_retransmitted {
            if progress.rtt_ns.is_none() || entry.sent_ns >= progress.newest_sent_ns {
                (progress.rtt_ns, progress.newest_sent_ns) = (Some(took_ns), entry.sent_ns);
            }
            self.is_reordering_seen |= self.highest.is_some_and(|highest| entry.end().is_before(highest));
        } else if min_rtt_ns.is_some_and(|min_ns| took_ns < min_ns) {
            // The original was delivered, not the retransmission (RFC 8985, 5.2 step 2).
            return;
        }
        self.highest = Some(self.highest.map_or(entry.end(), |highest| highest.max(entry.end())));
        let is_newer = |rack: Rack| {
            (entry.sent_ns, 0) > (rack.sent_ns, 0) || entry.sent_ns == rack.sent_ns && entry.end().is_after(rack.end)
        };
        if self.rack.is_none_or(is_newer) {
            self.rack = Some(Rack { sent_ns: entry.sent_ns, end: entry.end(), rtt_ns: took_ns });
        }
    }

    /// A duplicate ACK of a peer without SACK. Returns whether the first segment counts as lost.
    pub(crate) fn note_duplicate(&mut self, mss: u32) -> bool {
        self.unsacked_delivered = (self.unsacked_delivered + u64::from(mss)).min(self.pipe);
        let in_flight = self.pipe.div_ceil(u64::from(mss));
        // Early retransmit with few segments in flight (RFC 5827).
        let enough = DUPLICATE_THRESHOLD.min(in_flight.saturating_sub(1)).max(1) * u64::from(mss);
        self.unsacked_delivered >= enough.min(self.pipe)
    }

    /// Marks the first segment lost; false if it already is or was retransmitted.
    pub(crate) fn lose_first(&mut self, mss: u32) -> bool {
        let Some(front) = self.sent.front().filter(|entry| !entry.is_lost && !entry.is_sacked).copied() else {
            return false;
        };
        if front.len > mss {
            self.split(0, mss);
        }
        self.lose(0);
        true
    }

    fn lose(&mut self, index: usize) {
        let entry = &mut self.sent[index];
        entry.is_lost = true;
        self.pipe -= u64::from(entry.len);
        self.lost += u64::from(entry.len);
        self.newly_lost += u64::from(entry.len);
    }

    /// Marks everything not SACKed as lost. If the peer reneged, its SACKs are discarded as well (RFC 2018, section
    /// 8).
    pub(crate) fn lose_all(&mut self) {
        let is_reneged = self.sent.front().is_some_and(|front| front.is_sacked);
        for index in 0..self.sent.len() {
            let entry = &mut self.sent[index];
            if entry.is_sacked && is_reneged {
                entry.is_sacked = false;
                self.sacked -= u64::from(entry.len);
                self.pipe += u64::from(entry.len);
            }
            if !entry.is_sacked && !entry.is_lost {
                self.lose(index);
            }
        }
        self.unsacked_delivered = 0;
    }

    /// RACK loss detection: whether anything is newly lost, and when to run again (the reordering timer).
    pub(crate) fn find_losses(
        &mut self,
        mss: u32,
        min_rtt_ns: u64,
        smoothed_rtt_ns: u64,
        is_recovering: bool,
        now_ns: u64,
    ) -> (bool, Option<u64>) {
        let Some(rack) = self.rack.filter(|_| self.sacked > 0 || self.has_retransmitted) else { return (false, None) };
        let wait_ns = rack.rtt_ns + self.reorder_window_ns(mss, min_rtt_ns, smoothed_rtt_ns, is_recovering);
        let (mut has_lost, mut next_ns) = (false, None::<u64>);
        for index in 0..self.sent.len() {
            let entry = &self.sent[index];
            let is_earlier =
                entry.sent_ns < rack.sent_ns || entry.sent_ns == rack.sent_ns && entry.end().is_before(rack.end);
            if entry.is_sacked || entry.is_lost || !is_earlier {
                continue;
            }
            let lost_ns = entry.sent_ns.saturating_add(wait_ns);
            if lost_ns <= now_ns {
                self.lose(index);
                has_lost = true;
            } else {
                next_ns = Some(next_ns.map_or(lost_ns, |next_ns| next_ns.min(lost_ns)));
            }
        }
        (has_lost, next_ns)
    }

    /// The reordering window (RFC 8985, 6.2).
    fn reorder_window_ns(&self, mss: u32, min_rtt_ns: u64, smoothed_rtt_ns: u64, is_recovering: bool) -> u64 {
        let is_enough = self.sacked >= DUPLICATE_THRESHOLD * u64::from(mss);
        if !self.is_reordering_seen && (is_recovering || is_enough) {
            return 0;
        }
        if self.reorder_steps == 0 {
            return (min_rtt_ns / 4).min(smoothed_rtt_ns);
        }
        ((self.reorder_steps + 1) * min_rtt_ns.max(SHORT_WAY_NS) / 4).min(smoothed_rtt_ns.max(MAX_SHORT_REORDER_NS))
    }

    /// A D-SACK reported a spurious retransmission: widens the reordering window.
    pub(crate) fn widen_reorder_window(&mut self) {
        self.is_reordering_seen = true;
        self.reorder_steps = (self.reorder_steps + 1).min(MAX_REORDER_STEPS);
        self.reorder_persist = REORDER_PERSIST;
    }

    /// Ends a recovery.
    pub(crate) fn end_recovery(&mut self) {
        self.reorder_persist = self.reorder_persist.saturating_sub(1);
        if self.reorder_persist == 0 {
            self.reorder_steps = 0;
        }
    }
}

/// For an entry that a block overlaps: bytes to skip and bytes to take, so that only whole segments are taken.
fn whole_segments(entry: &Sent, start: Seq, end: Seq, mss: u32) -> Option<(u32, u32)> {
    let from = entry.seq.max(start).since(entry.seq);
    let to = entry.end().min(end).since(entry.seq);
    let skipped = from.div_ceil(mss) * mss;
    let until = if to == entry.len { to } else { to / mss * mss };
    (skipped < until).then(|| (skipped, until - skipped))
}

#[cfg(test)]
mod tests;
