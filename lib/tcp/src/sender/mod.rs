//! The send half: transmission, retransmission and the congestion window.
//!
//! Key type: [`Sender`]. Neighbours: `scoreboard` detects losses, `cubic` has the congestion window, `rate` the
//! bandwidth-delay product; `acknowledgment` processes ACKs and runs recovery (RFC 6675 and 6937), `transmission` picks
//! the next segment and retransmits, `timers` has the RTO and the probes.

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
/// Default MSS of a peer that sends no MSS option, in bytes (RFC 9293, 3.7.1).
const DEFAULT_MSS: usize = 536;
/// Minimum MSS in bytes, regardless of the peer's.
const MIN_MSS: usize = 64;
/// Rate that send buffers are sized for, in bytes per microsecond of the minimum RTT. More would be evicted from the
/// processor's caches before it is sent.
const BYTES_PER_US: u64 = 512;

/// The recovery state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No loss is known.
    Open,
    /// Fast recovery, until this sequence number is acknowledged.
    Recovery { to: Seq },
    /// After an RTO: retransmission from SND.UNA on, until this sequence number is acknowledged.
    Loss { to: Seq },
}

/// Proportional rate reduction during recovery (RFC 6937).
#[derive(Clone, Copy, Debug, Default)]
struct RateReduction {
    /// Whether the window is to be reduced.
    is_wanted: bool,
    flight_at_start: u64,
    delivered: u64,
    sent: u64,
}

/// State to undo a reduction with if all retransmissions prove spurious.
#[derive(Clone, Copy, Debug)]
struct Undo {
    saved: Saved,
    /// Retransmitted bytes not reported as duplicates yet.
    retransmitted: u64,
}

/// An outstanding tail loss probe.
#[derive(Clone, Copy, Debug)]
struct Probe {
    end: Seq,
    is_retransmission: bool,
}

/// Deadlines of the timers.
#[derive(Clone, Copy, Debug, Default)]
struct Timers {
    retransmit_ns: Option<u64>,
    probe_ns: Option<u64>,
    reorder_ns: Option<u64>,
    persist_ns: Option<u64>,
}

/// A contiguous range of the stream to transmit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) seq: Seq,
    pub(crate) payload_bytes: usize,
    pub(crate) is_fin: bool,
    pub(crate) is_push: bool,
    pub(crate) is_retransmission: bool,
}

/// Options of the peer's SYN.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offered {
    pub(crate) is_scaled: bool,
    pub(crate) has_sack: bool,
}

pub(crate) struct Sender {
    buffer: SendBuffer,
    unacked: Seq,
    next: Seq,
    /// SND.WND: the peer's window, from `unacked` on.
    window: u32,
    max_window: u32,
    /// SND.WL1 and SND.WL2: sequence and acknowledgment number of the last window update (RFC 9293, 3.10.7.4).
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
    /// Tail loss probes since the last delivery.
    probes: u32,
    is_probe_due: bool,
    is_fast_retransmit_due: bool,
    /// Whether the persist timer fired: send a short segment, or a zero-window probe.
    is_persist_due: bool,
    persist_backoff: u32,
    timers: Timers,
    /// Maximum bytes in flight in this round trip and the previous one.
    flight: [u64; 2],
    round_end: Seq,
    last_sent_ns: u64,
    /// The user closed: a FIN follows the buffer.
    is_finishing: bool,
    is_fin_sent: bool,
    is_fin_acked: bool,
    is_nagle_on: bool,
    /// A writer waits for room, so more data will follow.
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

    /// Processes the peer's SYN; `path_mss` is the path's limit.
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

    /// Our SYN was acknowledged.
    pub(crate) fn establish(&mut self, segment: &Segment<'_>, rtt_ns: Option<u64>, now_ns: u64) {
        if let Some(rtt_ns) = rtt_ns {
            self.rtt.sample(rtt_ns, now_ns);
        } else {
            // The SYN was lost: the initial window shrinks (RFC 6298, 5.7; RFC 5681, 3.1).
            self.cubic.idle(self.mss as u64);
        }
        let shift = if segment.is_syn { 0 } else { self.shift };
        self.window = u32::from(segment.window) << shift;
        self.max_window = self.max_window.max(self.window);
        self.window_told = (segment.seq, segment.ack.unwrap_or(self.unacked));
    }

    /// Options of the peer's SYN.
    pub(crate) fn offered(&self) -> Offered {
        Offered { is_scaled: self.is_scaled, has_sack: self.has_sack }
    }

    /// MSS without options, in bytes.
    pub(crate) fn mss(&self, path: &Path) -> usize {
        self.peer_mss.min(path.mss).max(MIN_MSS)
    }

    pub(crate) fn next(&self) -> Seq {
        self.next
    }

    pub(crate) fn unacked(&self) -> Seq {
        self.unacked
    }

    /// Bytes in the send buffer: unacknowledged or unsent.
    pub(crate) fn queued(&self) -> usize {
        self.buffer.len()
    }

    pub(crate) fn is_fin_acked(&self) -> bool {
        self.is_fin_acked
    }

    /// Whether anything sent is unacknowledged.
    pub(crate) fn is_awaiting(&self) -> bool {
        !self.board.is_empty()
    }

    pub(crate) fn set_nagle(&mut self, is_on: bool) {
        self.is_nagle_on = is_on;
    }

    /// Whether an acknowledgment number is acceptable (RFC 5961, section 5).
    pub(crate) fn is_plausible(&self, ack: Seq) -> bool {
        !ack.is_after(self.next) && self.unacked.since(ack) as i32 <= self.max_window as i32
    }

    /// Send buffer limit, in bytes.
    fn limit(&self, memory: &Memory) -> usize {
        let scarce = match memory.used_bytes() {
            used if used > memory.max_bytes() / 4 * 3 => self.limit / 4,
            used if used > memory.max_bytes() / 2 => self.limit,
            _ => usize::MAX,
        };
        let of_way = self.rtt.min_ns().unwrap_or(0) / 1000 * BYTES_PER_US;
        let wanted = of_way.min(2 * self.cubic.window()).min(self.max_limit as u64);
        // SACKed bytes are delivered, and kept only because of the gap before them.
        let room = self.limit.max(wanted as usize) + (self.board.sacked() as usize).min(self.max_limit);
        room.min(scarce)
    }

    /// Whether there is room enough to wake a waiting writer.
    pub(crate) fn has_room(&self, memory: &Memory) -> bool {
        let limit = self.limit(memory);
        self.buffer.len() == 0 || self.buffer.len() <= limit - limit / 4
    }

    /// Queues bytes, as many as there is room for; returns their number.
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

    /// Copies payload bytes of a segment.
    pub(crate) fn copy(&self, seq: Seq, into: &mut [u8]) {
        self.buffer.copy(seq.since(self.unacked) as usize, into);
    }

    /// Frees the buffer.
    pub(crate) fn drop_all(&mut self, memory: &mut Memory) {
        self.buffer.discard(memory, usize::MAX);
        self.board = Scoreboard::default();
        self.timers = Timers::default();
        (self.is_probe_due, self.is_persist_due) = (false, false);
    }
}
