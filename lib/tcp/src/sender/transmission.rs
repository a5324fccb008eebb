//! Picks the next segment: a retransmission of a lost one, then a due probe, then new data.

use crate::scoreboard::Sent;
use crate::segment::Path;
use crate::seq::Seq;

use super::{Phase, Probe, Sender, Stretch};

impl Sender {
    pub(super) fn sent_bytes(&self) -> usize {
        self.next.since(self.unacked) as usize - usize::from(self.is_fin_sent && !self.is_fin_acked)
    }

    pub(super) fn unsent(&self) -> usize {
        self.buffer.len().saturating_sub(self.sent_bytes())
    }

    /// Usable part of the peer's window, which may have shrunk.
    pub(super) fn room(&self) -> usize {
        usize::try_from((self.unacked + self.window).since(self.next) as i32).unwrap_or(0)
    }

    pub(super) fn is_fin_due(&self) -> bool {
        self.is_finishing && !self.is_fin_sent
    }

    /// The next range to transmit; `option_bytes` of each segment go to options.
    pub(crate) fn next_stretch(&mut self, path: &Path, option_bytes: usize, now_ns: u64) -> Option<Stretch> {
        self.mss = self.mss(path);
        let payload = self.mss - option_bytes.min(self.mss / 2);
        let burst = path.burst_bytes.max(self.mss) / self.mss * payload;
        let stretch = match self.retransmission(payload, now_ns) {
            Some(stretch) => Some(stretch),
            None => self.probing(payload, now_ns).or_else(|| self.new_data(payload, burst, now_ns)),
        };
        if stretch.is_none() && self.board.pipe() + self.mss as u64 <= self.cubic.window() {
            self.board.note_limited();
        }
        if stretch.is_some() {
            self.last_sent_ns = now_ns;
            self.timers.persist_ns = None;
            let flight = self.board.pipe();
            self.flight[1] = self.flight[1].max(flight);
        }
        self.arm(now_ns);
        stretch
    }

    /// The next range to retransmit, as far as the window allows.
    pub(super) fn retransmission(&mut self, payload: usize, now_ns: u64) -> Option<Stretch> {
        let lost = self.board.first_lost()?;
        let len = lost.len.min(payload as u32);
        let pipe = self.board.pipe();
        if pipe > 0 && pipe + u64::from(len) > self.cubic.window() && !self.is_fast_retransmit_due {
            return None;
        }
        self.is_fast_retransmit_due = false;
        Some(self.send_again(lost, payload, now_ns))
    }

    pub(super) fn send_again(&mut self, sent: Sent, payload: usize, now_ns: u64) -> Stretch {
        let len = self.board.retransmit(sent.seq, payload as u32, now_ns);
        self.reduction.sent += u64::from(len);
        if let Some(undo) = &mut self.undo {
            undo.retransmitted += u64::from(len);
        }
        self.stretch(sent.seq, len, true)
    }

    /// A range that is in flight, as a segment.
    pub(super) fn stretch(&self, seq: Seq, len: u32, is_retransmission: bool) -> Stretch {
        let end = seq + len;
        let is_fin = self.is_fin_sent && end == self.next;
        let payload_bytes = len as usize - usize::from(is_fin);
        let is_push = payload_bytes > 0 && end == self.next && !self.has_more;
        Stretch { seq, payload_bytes, is_fin, is_push, is_retransmission }
    }

    /// A tail loss probe: new data, or the last segment; from the second probe on, or if a gap is known, the first
    /// missing segment.
    pub(super) fn probing(&mut self, payload: usize, now_ns: u64) -> Option<Stretch> {
        if !core::mem::take(&mut self.is_probe_due) {
            return None;
        }
        let is_first = self.phase == Phase::Open && self.board.sacked() == 0 && self.probes == 0;
        self.probes += 1;
        if !is_first {
            let missing = self.board.first_missing()?;
            return Some(self.send_again(missing, payload, now_ns));
        }
        self.timers.retransmit_ns = Some(now_ns.saturating_add(self.rtt.rto_ns()));
        let len = self.unsent().min(payload).min(self.room());
        let stretch = if len > 0 && !self.board.is_full() {
            self.send_new(len, now_ns)
        } else {
            let last = self.board.split_last(payload as u32)?;
            self.send_again(last, payload, now_ns)
        };
        self.probe = Some(Probe { end: self.next, is_retransmission: stretch.is_retransmission });
        Some(stretch)
    }

    pub(super) fn send_new(&mut self, len: usize, now_ns: u64) -> Stretch {
        let seq = self.next;
        let is_last = len == self.unsent();
        let fin = is_last && self.is_fin_due() && self.room() > len;
        let total = len as u32 + u32::from(fin);
        self.is_fin_sent |= fin;
        self.board.push(seq, total, now_ns);
        self.next = seq + total;
        self.reduction.sent += u64::from(total);
        self.stretch(seq, total, false)
    }

    /// New data, as far as both windows allow, with Nagle and silly window avoidance.
    pub(super) fn new_data(&mut self, payload: usize, burst: usize, now_ns: u64) -> Option<Stretch> {
        let is_persist_due = core::mem::take(&mut self.is_persist_due);
        let unsent = self.unsent();
        if (unsent == 0 && !self.is_fin_due()) || self.board.is_full() {
            return None;
        }
        let is_idle = self.board.is_empty();
        if is_idle && now_ns.saturating_sub(self.last_sent_ns) > self.rtt.rto_ns() && self.last_sent_ns > 0 {
            self.cubic.idle(self.mss as u64);
        }
        let room = self.room();
        let (pipe, window) = (self.board.pipe(), self.cubic.window());
        let allowed = window.saturating_sub(pipe) as usize;
        let allowed = if pipe == 0 { allowed.max(payload) } else { allowed };
        let len = unsent.min(room).min(burst).min(allowed.max(if allowed + 1 >= self.mss { payload } else { 0 }));
        let whole = len - len % payload;
        let is_rest = len == unsent;
        let may_be_short = match is_rest {
            // Nagle (RFC 9293, 3.7.4), or a writer about to fill the segment.
            true => is_idle || self.is_fin_due() || !self.is_nagle_on && !self.has_more,
            // Sender silly window avoidance (RFC 9293, 3.8.6.2.1).
            false => room < payload && (len >= (self.max_window / 2) as usize || is_persist_due),
        };
        let len = if may_be_short { len } else { whole };
        if len == 0 && !(unsent == 0 && room > 0) {
            if is_persist_due {
                self.persist_backoff = (self.persist_backoff + 1).min(10);
            }
            self.is_persist_due = is_persist_due && room == 0;
            return None;
        }
        Some(self.send_new(len, now_ns))
    }

    /// Whether a zero-window probe is due.
    pub(crate) fn take_window_probe(&mut self, now_ns: u64) -> bool {
        let is_due = core::mem::take(&mut self.is_persist_due);
        if is_due {
            self.arm(now_ns);
        }
        is_due
    }
}
