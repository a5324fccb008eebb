//! Timers: retransmission (RFC 6298), tail loss probe (RFC 8985, section 7), reordering, persist.

use super::{MS, Phase, Sender, Timers, Undo};

/// Added to two RTTs for the tail loss probe timeout; replaced by `DELAYED_ACK_NS` while a single segment is in
/// flight, whose ACK may be delayed.
const PROBE_SLACK_NS: u64 = 2 * MS;
const DELAYED_ACK_NS: u64 = 50 * MS;
/// Maximum tail loss probes before the RTO, each after twice the previous timeout. RFC 8985 has one; on a short path
/// an RTO costs a thousand RTTs, and a probe is as easily lost as the segment it probes for.
const MAX_PROBES: u32 = 3;
/// Consecutive RTOs after which no tail loss probes are sent.
const MAX_PROBED_TIMEOUTS: u32 = 2;

impl Sender {
    /// Restarts the timers after a delivery.
    pub(super) fn restart_timers(&mut self, now_ns: u64) {
        self.timers.retransmit_ns = Some(now_ns.saturating_add(self.rtt.rto_ns()));
        self.timers.probe_ns = None;
        (self.is_probe_due, self.probes) = (false, 0);
    }

    /// Arms the required timers and stops the others.
    pub(super) fn arm(&mut self, now_ns: u64) {
        let is_awaiting = !self.board.is_empty();
        if is_awaiting {
            let rto_ns = self.rtt.rto_ns();
            self.timers.retransmit_ns.get_or_insert(now_ns.saturating_add(rto_ns));
            self.arm_probe(now_ns);
        } else {
            self.timers = Timers { persist_ns: self.timers.persist_ns, ..Timers::default() };
            self.is_probe_due = false;
        }
        let is_blocked = !is_awaiting && (self.unsent() > 0 || self.is_fin_due());
        if is_blocked && !self.is_persist_due {
            let wait_ns = (self.rtt.rto_ns() << self.persist_backoff).min(60_000 * MS);
            self.timers.persist_ns.get_or_insert(now_ns.saturating_add(wait_ns));
        } else {
            self.timers.persist_ns = None;
        }
    }

    pub(super) fn arm_probe(&mut self, now_ns: u64) {
        let is_open = self.phase == Phase::Open && self.probes == 0;
        let Some(smoothed_ns) = self.rtt.smoothed_ns() else { return };
        let is_over = self.probes >= MAX_PROBES || self.rtt.backoff() > MAX_PROBED_TIMEOUTS;
        if is_over || self.timers.probe_ns.is_some() || self.is_probe_due || self.board.pipe() == 0 {
            return;
        }
        let is_single = self.board.pipe() <= self.mss as u64 && (self.unsent() == 0 || self.room() == 0);
        let slack_ns = if is_single && is_open { DELAYED_ACK_NS } else { PROBE_SLACK_NS };
        let probe_ns = now_ns.saturating_add(((2 * smoothed_ns) << self.probes) + slack_ns);
        if self.timers.retransmit_ns.is_none_or(|retransmit_ns| probe_ns < retransmit_ns) {
            self.timers.probe_ns = Some(probe_ns);
        }
    }

    pub(crate) fn next_time_ns(&self) -> Option<u64> {
        let Timers { retransmit_ns, probe_ns, reorder_ns, persist_ns } = self.timers;
        [retransmit_ns, probe_ns, reorder_ns, persist_ns].into_iter().flatten().min()
    }

    /// Handles expired timers.
    pub(crate) fn expire(&mut self, now_ns: u64) {
        let is_due = |time_ns: Option<u64>| time_ns.is_some_and(|time_ns| time_ns <= now_ns);
        if is_due(self.timers.reorder_ns) {
            self.timers.reorder_ns = None;
            let flight = self.board.pipe();
            self.find_losses(false, false, flight, now_ns);
            if matches!(self.phase, Phase::Recovery { .. }) && self.reduction.is_wanted {
                self.reduce_rate(0, false);
            }
        }
        if is_due(self.timers.retransmit_ns) {
            self.time_out(now_ns);
        } else if is_due(self.timers.probe_ns) {
            self.timers.probe_ns = None;
            self.is_probe_due = true;
        }
        if is_due(self.timers.persist_ns) {
            self.timers.persist_ns = None;
            self.is_persist_due = true;
        }
    }

    /// Handles an RTO (RFC 5681, 3.1; RFC 6298, 5.4 to 5.6).
    pub(super) fn time_out(&mut self, now_ns: u64) {
        let mss = self.mss as u64;
        self.timers = Timers { persist_ns: self.timers.persist_ns, ..Timers::default() };
        if self.phase == Phase::Open {
            self.undo = Some(Undo { saved: self.cubic.save(), retransmitted: 0 });
            self.reduce();
        }
        self.phase = Phase::Loss { to: self.next };
        self.board.lose_all();
        // Everything is retransmitted, although some of it may not be lost.
        self.board.take_newly_lost();
        self.cubic.collapse(mss);
        self.rtt.back_off();
        (self.probe, self.is_probe_due, self.probes) = (None, false, 0);
        self.timers.retransmit_ns = Some(now_ns.saturating_add(self.rtt.rto_ns()));
    }

    /// Path MTU decreased: everything in flight is retransmitted in shorter segments.
    pub(crate) fn path_narrowed(&mut self) {
        self.board.lose_all();
        self.board.take_newly_lost();
    }
}
