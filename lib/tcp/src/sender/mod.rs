//! The sending half: what is sent when, what is sent again, and how much may be in flight.
//!
//! Key type: [`Sender`]. Neighbours: `scoreboard` finds losses, `cubic` says how much may be in flight without them;
//! `rate` how much the way holds; `acknowledgment` is what happens between a loss and its repair (RFC 6675 and 6937).

mod acknowledgment;
mod timers;
mod transmission;

use crate::buffers::SendBuffer;
use crate::cubic::{Cubic, Saved};
use crate::memory::Memory;
use crate::rate::Rate;
use crate::rtt::Rtt;
use crate::scoreboard::Scoreboard;
use crate::segment::{Path, Segment};
use crate::seq::Seq;

const MS: u64 = 1_000_000;
/// The longest payload of an end that says nothing of it (RFC 9293, 3.7.1).
const DEFAULT_MSS: usize = 536;
/// Segments are not made shorter, whatever the other end says.
const MIN_MSS: usize = 64;
/// The rate that buffers are made for: so many bytes in each microsecond of the least round trip time. More would leave
/// the processor's caches before it is sent.
const BYTES_PER_US: u64 = 512;

/// What becomes of losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// None is known.
    Open,
    /// Repaired as acknowledgments come, until all up to there arrived.
    Recovery { to: Seq },
    /// The retransmission timeout expired: from the beginning, until all up to there arrived.
    Loss { to: Seq },
}

/// How the window comes down during a recovery (RFC 6937).
#[derive(Clone, Copy, Debug, Default)]
struct RateReduction {
    /// Whether it comes down at all.
    is_wanted: bool,
    flight_at_start: u64,
    delivered: u64,
    sent: u64,
}

/// What a reduction is undone with, should all that was sent again have been in vain.
#[derive(Clone, Copy, Debug)]
struct Undo {
    saved: Saved,
    /// Bytes sent again that the other end has not reported as duplicates.
    retransmitted: u64,
}

/// A tail loss probe under way.
#[derive(Clone, Copy, Debug)]
struct Probe {
    end: Seq,
    is_retransmission: bool,
}

/// Moments at which something is due.
#[derive(Clone, Copy, Debug, Default)]
struct Timers {
    retransmit_ns: Option<u64>,
    probe_ns: Option<u64>,
    reorder_ns: Option<u64>,
    persist_ns: Option<u64>,
}

/// A stretch of the stream to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) seq: Seq,
    pub(crate) payload_bytes: usize,
    pub(crate) is_fin: bool,
    pub(crate) is_push: bool,
    pub(crate) is_retransmission: bool,
}

/// What the other end's SYN offered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offered {
    pub(crate) is_scaled: bool,
    pub(crate) has_sack: bool,
}

pub(crate) struct Sender {
    buffer: SendBuffer,
    unacked: Seq,
    next: Seq,
    /// The other end's window, behind `unacked`.
    window: u32,
    max_window: u32,
    /// Number and acknowledgment of the segment that told it last (RFC 9293, 3.10.7.4).
    window_told: (Seq, Seq),
    shift: u8,
    is_scaled: bool,
    peer_mss: usize,
    has_sack: bool,
    board: Scoreboard,
    cubic: Cubic,
    rate: Rate,
    rtt: Rtt,
    phase: Phase,
    reduction: RateReduction,
    undo: Option<Undo>,
    probe: Option<Probe>,
    /// Probes since something arrived.
    probes: u32,
    is_probe_due: bool,
    is_fast_retransmit_due: bool,
    /// Whether a segment that is too short is to be sent nevertheless, or one without data to ask for the window.
    is_persist_due: bool,
    persist_backoff: u32,
    timers: Timers,
    /// The most in flight in this round trip and the one before, and where this one ends.
    flight: [u64; 2],
    round_end: Seq,
    last_sent_ns: u64,
    /// No more will be written.
    is_finishing: bool,
    is_fin_sent: bool,
    is_fin_acked: bool,
    is_nagle_on: bool,
    /// The writer waits for room, so more will follow what is there.
    has_more: bool,
    limit: usize,
    max_limit: usize,
    mss: usize,
}

impl Sender {
    pub(crate) fn new(first: Seq, limit: usize, max_limit: usize) -> Sender {
        Sender {
            buffer: SendBuffer::default(),
            unacked: first,
            next: first,
            window: 0,
            max_window: 0,
            window_told: (Seq(0), Seq(0)),
            shift: 0,
            is_scaled: false,
            peer_mss: DEFAULT_MSS,
            has_sack: false,
            board: Scoreboard::default(),
            cubic: Cubic::new(DEFAULT_MSS as u64),
            rate: Rate::default(),
            rtt: Rtt::default(),
            phase: Phase::Open,
            reduction: RateReduction::default(),
            undo: None,
            probe: None,
            probes: 0,
            is_probe_due: false,
            is_fast_retransmit_due: false,
            is_persist_due: false,
            persist_backoff: 0,
            timers: Timers::default(),
            flight: [0; 2],
            round_end: first,
            last_sent_ns: 0,
            is_finishing: false,
            is_fin_sent: false,
            is_fin_acked: false,
            is_nagle_on: true,
            has_more: false,
            limit,
            max_limit: max_limit.max(limit),
            mss: DEFAULT_MSS,
        }
    }

    /// The other end's SYN came, over a way that carries payloads of so many bytes.
    pub(crate) fn begin(&mut self, syn: &Segment<'_>, path_mss: usize) {
        self.peer_mss = usize::from(syn.options.mss.unwrap_or(DEFAULT_MSS as u16)).max(MIN_MSS);
        self.shift = syn.options.window_scale.unwrap_or(0).min(14);
        self.is_scaled = syn.options.window_scale.is_some();
        self.has_sack = syn.options.sack_permitted;
        self.window = syn.window.into();
        self.max_window = self.window;
        self.mss = self.peer_mss.min(path_mss).max(MIN_MSS);
        self.cubic = Cubic::new(self.mss as u64);
    }

    /// The other end acknowledged the SYN.
    pub(crate) fn establish(&mut self, segment: &Segment<'_>, rtt_ns: Option<u64>, now_ns: u64) {
        if let Some(rtt_ns) = rtt_ns {
            self.rtt.sample(rtt_ns, now_ns);
        } else {
            // The SYN got lost: less may be in flight (RFC 6298, 5.7; RFC 5681, 3.1).
            self.cubic.idle(self.mss as u64);
        }
        let shift = if segment.is_syn { 0 } else { self.shift };
        self.window = u32::from(segment.window) << shift;
        self.max_window = self.max_window.max(self.window);
        self.window_told = (segment.seq, segment.ack.unwrap_or(self.unacked));
    }

    /// What the other end's SYN offered.
    pub(crate) fn offered(&self) -> Offered {
        Offered { is_scaled: self.is_scaled, has_sack: self.has_sack }
    }

    /// The longest payload of a segment without options.
    pub(crate) fn mss(&self, path: &Path) -> usize {
        self.peer_mss.min(path.mss).max(MIN_MSS)
    }

    pub(crate) fn next(&self) -> Seq {
        self.next
    }

    pub(crate) fn unacked(&self) -> Seq {
        self.unacked
    }

    /// Bytes that are not acknowledged or not sent.
    pub(crate) fn queued(&self) -> usize {
        self.buffer.len()
    }

    pub(crate) fn is_fin_acked(&self) -> bool {
        self.is_fin_acked
    }

    /// Whether something is sent and not acknowledged.
    pub(crate) fn is_awaiting(&self) -> bool {
        !self.board.is_empty()
    }

    pub(crate) fn set_nagle(&mut self, is_on: bool) {
        self.is_nagle_on = is_on;
    }

    /// Whether an acknowledgment is of something that was sent, and not too old (RFC 5961, section 5).
    pub(crate) fn is_plausible(&self, ack: Seq) -> bool {
        !ack.is_after(self.next) && self.unacked.since(ack) as i32 <= self.max_window as i32
    }

    /// Bytes that may be kept.
    fn limit(&self, memory: &Memory) -> usize {
        let scarce = match memory.used_bytes() {
            used if used > memory.max_bytes() / 4 * 3 => self.limit / 4,
            used if used > memory.max_bytes() / 2 => self.limit,
            _ => usize::MAX,
        };
        let of_way = self.rtt.min_ns().unwrap_or(0) / 1000 * BYTES_PER_US;
        let wanted = of_way.min(2 * self.cubic.window()).min(self.max_limit as u64);
        // What arrived out of order is out of the way, and kept only because of what is missing.
        let room = self.limit.max(wanted as usize) + (self.board.sacked() as usize).min(self.max_limit);
        room.min(scarce)
    }

    /// Whether a writer that waits is to be told that there is room: only when it is worth it.
    pub(crate) fn has_room(&self, memory: &Memory) -> bool {
        let limit = self.limit(memory);
        self.buffer.len() == 0 || self.buffer.len() <= limit - limit / 4
    }

    /// Takes as much as there is room for.
    pub(crate) fn write(&mut self, memory: &mut Memory, data: &[u8]) -> usize {
        if self.is_finishing {
            return 0;
        }
        let room = self.limit(memory).saturating_sub(self.buffer.len());
        let written = self.buffer.write(memory, &data[..data.len().min(room)]);
        self.has_more = written < data.len();
        written
    }

    pub(crate) fn finish(&mut self) {
        (self.is_finishing, self.has_more) = (true, false);
    }

    /// Copies what is sent.
    pub(crate) fn copy(&self, seq: Seq, into: &mut [u8]) {
        self.buffer.copy(seq.since(self.unacked) as usize, into);
    }

    /// Gives all memory back.
    pub(crate) fn drop_all(&mut self, memory: &mut Memory) {
        self.buffer.discard(memory, usize::MAX);
        self.board = Scoreboard::default();
        self.timers = Timers::default();
        (self.is_probe_due, self.is_persist_due) = (false, false);
    }
}
