//! What was sent and is not acknowledged: when it was sent, what arrived out of order, what got lost.
//!
//! Losses are found by time (RACK, RFC 8985): what was sent sufficiently before something that arrived is lost. Against
//! an end without SACK, repeated acknowledgments tell (RFC 6582). Deliberately not here: how much may be sent.

use alloc::collections::VecDeque;

use crate::rate::Sample;
use crate::seq::Seq;

/// Entries from which on nothing new is sent.
pub(crate) const MAX_ENTRIES: usize = 1024;
/// Entries from which on none is split, whatever is acknowledged of it.
const MAX_SPLIT_ENTRIES: usize = 2 * MAX_ENTRIES;
/// Segments beyond a gap that tell of a loss rather than of another order (RFC 5681).
const DUPLICATE_THRESHOLD: u64 = 3;
/// Most quarters of the least round trip time that are waited for segments that come late.
const MAX_REORDER_STEPS: u64 = 64;
/// A way counts as so long at least once segments were sent again in vain: queues and schedulers of hosts disorder
/// segments by more than a short way takes.
const SHORT_WAY_NS: u64 = 1_000_000;
/// On short ways so much is waited at most, though RFC 8985 would have the smoothed round trip time.
const MAX_SHORT_REORDER_NS: u64 = 5_000_000;
/// Recoveries for which a longer wait is kept (RFC 8985, 6.2).
const REORDER_PERSIST: u8 = 16;

/// A stretch that was sent in one go.
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

/// How much had arrived when something was sent.
#[derive(Clone, Copy, Debug, Default)]
struct Delivered {
    bytes: u64,
    /// When the last of it was known to have arrived.
    time_ns: u64,
    /// When that was sent.
    sent_ns: u64,
    /// Less was in flight than might have been.
    is_limited: bool,
}

impl Sent {
    pub(crate) fn end(&self) -> Seq {
        self.seq + self.len
    }
}

/// What one acknowledgment told.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    /// Bytes that are known to have arrived, and were not known before.
    pub(crate) delivered: u64,
    /// How long the last of them took, if it was sent once.
    pub(crate) rtt_ns: Option<u64>,
    newest_sent_ns: u64,
    /// Of the one sent last: when, and how much had arrived then.
    newest: Option<(u64, Delivered)>,
}

/// The segment sent last of those that arrived.
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
    /// What repeated acknowledgments of an end without SACK stand for.
    unsacked_delivered: u64,
    rack: Option<Rack>,
    /// The highest number that is known to have arrived.
    highest: Option<Seq>,
    is_reordering_seen: bool,
    reorder_steps: u64,
    reorder_persist: u8,
    /// Whether an entry is sent a second time and not acknowledged: earlier ones may be lost without SACK telling.
    has_retransmitted: bool,
    delivered: Delivered,
    /// Until so many bytes have arrived, samples of the rate tell of less than might have been.
    limited_until: u64,
    /// Bytes that were found lost since this was asked last.
    newly_lost: u64,
}

impl Scoreboard {
    pub(crate) fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.sent.len() >= MAX_ENTRIES
    }

    /// Bytes that are in flight: sent, and neither arrived nor lost, as far as is known.
    pub(crate) fn pipe(&self) -> u64 {
        self.pipe.saturating_sub(self.unsacked_delivered)
    }

    /// Bytes that arrived out of order.
    pub(crate) fn sacked(&self) -> u64 {
        self.sacked
    }

    /// Something new was sent, behind all else.
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

    /// How much has arrived, as is noted of what is sent now.
    fn at_sending(&mut self, now_ns: u64) -> Delivered {
        if self.pipe == 0 {
            (self.delivered.time_ns, self.delivered.sent_ns) = (now_ns, now_ns);
        }
        Delivered { is_limited: self.limited_until > self.delivered.bytes, ..self.delivered }
    }

    /// There is nothing more to send though more might be in flight.
    pub(crate) fn note_limited(&mut self) {
        self.limited_until = (self.delivered.bytes + self.pipe).max(1);
    }

    /// At what rate bytes arrived between the sending of the newest one that was acknowledged and now.
    pub(crate) fn rate(&self, progress: &Progress, min_rtt_ns: u64) -> Option<Sample> {
        let (sent_ns, before) = progress.newest?;
        let bytes = self.delivered.bytes - before.bytes;
        let sending_ns = sent_ns.saturating_sub(before.sent_ns);
        let arriving_ns = self.delivered.time_ns.saturating_sub(before.time_ns);
        let took_ns = sending_ns.max(arriving_ns);
        // What took less than a round trip is a burst of acknowledgments.
        let is_plausible = took_ns >= min_rtt_ns.max(1);
        let bytes_per_s = is_plausible.then(|| bytes.saturating_mul(1_000_000_000) / took_ns)?;
        Some(Sample { bytes_per_s, is_limited: before.is_limited })
    }

    /// Bytes that were found lost since this was asked last.
    pub(crate) fn take_newly_lost(&mut self) -> u64 {
        core::mem::take(&mut self.newly_lost)
    }

    /// The first entry that is lost.
    pub(crate) fn first_lost(&self) -> Option<Sent> {
        if self.lost == 0 {
            return None;
        }
        self.sent.iter().find(|entry| entry.is_lost).copied()
    }

    /// The first entry that is not known to have arrived.
    pub(crate) fn first_missing(&self) -> Option<Sent> {
        self.sent.iter().find(|entry| !entry.is_sacked).copied()
    }

    /// The end of the last entry, of so many bytes at most, as an entry of its own.
    pub(crate) fn split_last(&mut self, max_len: u32) -> Option<Sent> {
        let last = *self.sent.back()?;
        if last.len > max_len {
            self.split(self.sent.len() - 1, last.len - max_len);
        }
        self.sent.back().copied()
    }

    /// The start of the entry at `seq`, of so many bytes at most, is sent again: how many bytes.
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

    /// Makes two entries of one.
    fn split(&mut self, index: usize, len: u32) {
        let first = &mut self.sent[index];
        let rest = Sent { seq: first.seq + len, len: first.len - len, ..*first };
        first.len = len;
        self.sent.insert(index + 1, rest);
    }

    /// All before a number arrived.
    pub(crate) fn ack(&mut self, to: Seq, min_rtt_ns: Option<u64>, now_ns: u64, progress: &mut Progress) {
        self.unsacked_delivered = 0;
        while let Some(front) = self.sent.front_mut() {
            if !front.seq.is_before(to) {
                break;
            }
            if to.is_before(front.end()) {
                // Only a part of it.
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

    /// The other end has what lies between two numbers. Only whole segments count.
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

    /// Notes that an entry arrived, which is taken out or marked by the caller.
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
            // What was sent first arrived, and not what was sent again.
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

    /// An acknowledgment was repeated by an end without SACK: one segment arrived. Whether the first one is lost.
    pub(crate) fn note_duplicate(&mut self, mss: u32) -> bool {
        self.unsacked_delivered = (self.unsacked_delivered + u64::from(mss)).min(self.pipe);
        let in_flight = self.pipe.div_ceil(u64::from(mss));
        // Of few segments no more than that can be told (RFC 5827).
        let enough = DUPLICATE_THRESHOLD.min(in_flight.saturating_sub(1)).max(1) * u64::from(mss);
        self.unsacked_delivered >= enough.min(self.pipe)
    }

    /// Marks the first segment as lost; false: it is already, or was sent again.
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

    /// Marks all as lost that is not known to have arrived. An end that dropped what it had acknowledged selectively
    /// is believed nothing any more (RFC 2018, section 8).
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

    /// Marks what is lost now: whether there is any, and when to look again for what may be.
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

    /// How long a segment may come after one that was sent later (RFC 8985, 6.2).
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

    /// The other end told that it got something twice: what was waited for late segments was too little.
    pub(crate) fn widen_reorder_window(&mut self) {
        self.is_reordering_seen = true;
        self.reorder_steps = (self.reorder_steps + 1).min(MAX_REORDER_STEPS);
        self.reorder_persist = REORDER_PERSIST;
    }

    /// A recovery is over.
    pub(crate) fn end_recovery(&mut self) {
        self.reorder_persist = self.reorder_persist.saturating_sub(1);
        if self.reorder_persist == 0 {
            self.reorder_steps = 0;
        }
    }
}

/// Of an entry that a block overlaps: how many bytes to pass over and how many to take, so that only whole segments
/// are taken.
fn whole_segments(entry: &Sent, start: Seq, end: Seq, mss: u32) -> Option<(u32, u32)> {
    let from = entry.seq.max(start).since(entry.seq);
    let to = entry.end().min(end).since(entry.seq);
    let skipped = from.div_ceil(mss) * mss;
    let until = if to == entry.len { to } else { to / mss * mss };
    (skipped < until).then(|| (skipped, until - skipped))
}

#[cfg(test)]
mod tests;
