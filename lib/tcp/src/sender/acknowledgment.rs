//! ACK processing: deliveries, losses, and the congestion window.

use crate::memory::Memory;
use crate::scoreboard::Progress;
use crate::segment::Segment;
use crate::seq::Seq;

use super::{MS, Phase, RateReduction, Sender, Undo};

/// Paths with a shorter RTT count as this long: there the peer's processing time dominates, which varies from segment
/// to segment.
const SHORT_WAY_NS: u64 = MS;

impl Sender {
    /// Processes acknowledgment number, window and SACK blocks of an acceptable segment.
    pub(crate) fn acknowledged(&mut self, memory: &mut Memory, segment: &Segment<'_>, now_ns: u64) {
        let Some(ack) = segment.ack else { return };
        let (mss, min_rtt_ns) = (self.mss as u32, self.rtt.min_ns());
        let flight_before = self.board.pipe();
        let mut progress = Progress::default();
        let has_advanced = ack.is_after(self.unacked);
        let is_duplicate =
            !has_advanced && ack == self.unacked && segment.sequence_len() == 0 && !self.board.is_empty();
        let duplicated = self.duplicated_bytes(segment, ack);
        if has_advanced {
            self.advance(memory, ack, now_ns, &mut progress);
        }
        if self.has_sack {
            for block in segment.options.sack.into_iter().flatten() {
                if self.is_in_flight(block) {
                    self.board.sack(block, mss, min_rtt_ns, now_ns, &mut progress);
                }
            }
        }
        let has_opened = self.note_window(segment, ack);
        if let Some(rtt_ns) = progress.rtt_ns {
            self.rtt.sample(rtt_ns, now_ns);
            if self.cubic.is_in_slow_start() && self.rtt.is_queue_seen() {
                self.cubic.end_slow_start();
            }
        }
        if duplicated > 0 {
            self.board.widen_reorder_window();
            self.rate.note_spurious(duplicated);
            self.undo_if_in_vain(duplicated);
        }
        let sample = self.board.rate(&progress, self.rtt.min_ns().unwrap_or(0));
        let lost = self.board.take_newly_lost();
        self.rate.note(sample, progress.delivered, lost);
        self.end_probe(ack, duplicated > 0);
        if has_opened && !self.board.is_empty() {
            // A peer with a zero window drops data.
            self.board.lose_all();
            self.board.take_newly_lost();
        }
        let is_repeated = is_duplicate && !self.has_sack && !has_opened;
        self.find_losses(is_repeated, has_advanced, flight_before, now_ns);
        let repeated = if is_repeated { u64::from(mss) } else { 0 };
        self.adjust_window(progress.delivered + repeated, has_advanced, flight_before, now_ns);
        if has_advanced || progress.delivered > 0 {
            self.restart_timers(now_ns);
        }
        self.arm(now_ns);
    }

    pub(super) fn is_in_flight(&self, (start, end): (Seq, Seq)) -> bool {
        start.is_before(end) && !start.is_before(self.unacked) && !end.is_after(self.next)
    }

    /// Bytes that a D-SACK block reports as duplicates (RFC 2883).
    pub(super) fn duplicated_bytes(&self, segment: &Segment<'_>, ack: Seq) -> u64 {
        let mut blocks = segment.options.sack.iter().flatten();
        let Some((start, end)) = blocks.next().filter(|(start, end)| self.has_sack && start.is_before(*end)) else {
            return 0;
        };
        let is_acked = !end.is_after(ack);
        let is_within = blocks.next().is_some_and(|(from, to)| !start.is_before(*from) && !end.is_after(*to));
        if is_acked || is_within { end.since(*start).into() } else { 0 }
    }

    pub(super) fn advance(&mut self, memory: &mut Memory, ack: Seq, now_ns: u64, progress: &mut Progress) {
        self.board.ack(ack, self.rtt.min_ns(), now_ns, progress);
        let acked = ack.since(self.unacked) as usize;
        self.is_fin_acked |= self.is_fin_sent && ack == self.next;
        self.buffer.discard(memory, acked - usize::from(self.is_fin_acked && acked > 0));
        self.unacked = ack;
        self.rtt.reset_backoff();
        if !ack.is_before(self.round_end) {
            self.round_end = self.next;
            self.flight = [self.flight[1], self.board.pipe()];
            self.rate.end_round();
            if self.rate.is_full() {
                self.cubic.end_slow_start();
            }
        }
    }

    /// Updates the window unless the segment is older than the last update. Returns whether a zero window opened.
    pub(super) fn note_window(&mut self, segment: &Segment<'_>, ack: Seq) -> bool {
        let (seq, told) = self.window_told;
        if seq.is_after(segment.seq) || seq == segment.seq && told.is_after(ack) {
            return false;
        }
        self.window_told = (segment.seq, ack);
        let window = u32::from(segment.window) << self.shift;
        let has_opened = self.window == 0 && window > 0;
        self.window = window;
        self.max_window = self.max_window.max(window);
        if window > 0 {
            self.persist_backoff = 0;
            self.timers.persist_ns = None;
        }
        has_opened
    }

    /// Undoes a reduction once all retransmissions were reported as duplicates (RFC 3708).
    pub(super) fn undo_if_in_vain(&mut self, duplicated: u64) {
        let Some(undo) = &mut self.undo else { return };
        if undo.retransmitted == 0 {
            return;
        }
        undo.retransmitted = undo.retransmitted.saturating_sub(duplicated);
        if undo.retransmitted == 0 {
            self.cubic.restore(undo.saved);
            self.undo = None;
            self.phase = Phase::Open;
        }
    }

    /// Ends a tail loss probe; one that repaired a loss counts as a loss (RFC 8985, 7.4).
    pub(super) fn end_probe(&mut self, ack: Seq, is_duplicated: bool) {
        let Some(probe) = self.probe else { return };
        if is_duplicated || ack.is_after(probe.end) || (ack == probe.end && !probe.is_retransmission) {
            self.probe = None;
            return;
        }
        if ack == probe.end {
            self.probe = None;
            if self.phase == Phase::Open {
                self.reduce();
                self.cubic.set_window(self.cubic.threshold().min(self.cubic.window()));
            }
        }
    }

    pub(super) fn find_losses(&mut self, is_repeated: bool, has_advanced: bool, flight_before: u64, now_ns: u64) {
        let mss = self.mss as u32;
        let is_recovering = self.phase != Phase::Open;
        let has_lost = if self.has_sack {
            let smoothed_ns = self.rtt.smoothed_ns().unwrap_or(0);
            let min_ns = self.rtt.min_ns().unwrap_or(0);
            let (has_lost, look_ns) = self.board.find_losses(mss, min_ns, smoothed_ns, is_recovering, now_ns);
            self.timers.reorder_ns = look_ns;
            has_lost
        } else if is_repeated {
            self.board.note_duplicate(mss) && !is_recovering && self.board.lose_first(mss)
        } else {
            // A partial ACK: the next segment is lost, too (RFC 6582).
            let is_partial = matches!(self.phase, Phase::Recovery { to } if self.unacked.is_before(to));
            has_advanced && is_partial && self.board.lose_first(mss)
        };
        let is_first = has_lost && self.phase == Phase::Open;
        if is_first {
            self.phase = Phase::Recovery { to: self.next };
            self.undo = Some(Undo { saved: self.cubic.save(), retransmitted: 0 });
            self.is_fast_retransmit_due = true;
        }
        let is_repairing = matches!(self.phase, Phase::Recovery { .. });
        if is_first || has_lost && is_repairing && !self.reduction.is_wanted {
            self.reduce();
            self.reduction = RateReduction {
                is_wanted: self.cubic.threshold() < self.cubic.window(),
                flight_at_start: flight_before.max(1),
                ..RateReduction::default()
            };
        }
    }

    /// Enters recovery and reduces the window, unless the loss does not signal congestion.
    pub(super) fn reduce(&mut self) {
        let (mss, lost) = (self.mss as u64, self.board.take_newly_lost());
        self.rate.note(None, 0, lost);
        let held = self.rate.held_bytes(self.rtt.min_ns().unwrap_or(0).max(SHORT_WAY_NS));
        if self.rate.is_loss_heavy(mss) {
            self.cubic.reduce(mss, 0);
        } else if self.rtt.is_queue_seen() {
            self.cubic.reduce(mss, held);
        } else if !self.cubic.is_in_slow_start() || self.rate.is_full() {
            // Without a queue, a quarter more probes for bandwidth.
            self.cubic.reduce(mss, held.saturating_add(held / 4));
        }
    }

    /// Updates the congestion window after an ACK.
    pub(super) fn adjust_window(&mut self, delivered: u64, has_advanced: bool, flight_before: u64, now_ns: u64) {
        let (mss, rtt_ns) = (self.mss as u64, self.rtt.smoothed_ns().unwrap_or(0));
        match self.phase {
            Phase::Recovery { to } | Phase::Loss { to } if has_advanced && !self.unacked.is_before(to) => {
                if matches!(self.phase, Phase::Recovery { .. }) && self.reduction.is_wanted {
                    self.cubic.set_window(self.cubic.threshold());
                }
                self.phase = Phase::Open;
                self.is_fast_retransmit_due = false;
                self.board.end_recovery();
            }
            Phase::Recovery { .. } if self.reduction.is_wanted => self.reduce_rate(delivered, has_advanced),
            Phase::Loss { .. } => self.cubic.acked(delivered, mss, rtt_ns, now_ns),
            Phase::Open | Phase::Recovery { .. } => {
                let flight = flight_before.max(self.flight[0]).max(self.flight[1]);
                let window = self.cubic.window();
                let is_used = if self.cubic.is_in_slow_start() { 2 * flight >= window } else { flight + mss > window };
                if is_used {
                    self.cubic.acked(delivered, mss, rtt_ns, now_ns);
                } else {
                    self.cubic.pause();
                }
            }
        }
    }

    /// Proportional rate reduction: brings the bytes in flight to ssthresh by the end of recovery (RFC 6937).
    pub(super) fn reduce_rate(&mut self, delivered: u64, has_advanced: bool) {
        let (pipe, threshold, mss) = (self.board.pipe(), self.cubic.threshold(), self.mss as u64);
        let reduction = &mut self.reduction;
        reduction.delivered += delivered;
        let count = if pipe > threshold {
            let due = (u128::from(reduction.delivered) * u128::from(threshold))
                .div_ceil(u128::from(reduction.flight_at_start));
            u64::try_from(due).unwrap_or(u64::MAX).saturating_sub(reduction.sent)
        } else {
            let owed = reduction.delivered.saturating_sub(reduction.sent).max(delivered);
            (threshold - pipe).min(owed + if has_advanced { mss } else { 0 })
        };
        let count = if self.is_fast_retransmit_due { count.max(mss) } else { count };
        self.cubic.set_window((pipe + count).max(mss));
    }
}
