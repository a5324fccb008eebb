//! The receive half: window, reassembly and acknowledgments.

use crate::buffers::{Inserted, ReceiveBuffer};
use crate::memory::Memory;
use crate::segment::{Options, SACK_BLOCKS, Segment};
use crate::seq::Seq;

/// Delayed ACK timeout, in nanoseconds.
const ACK_DELAY_NS: u64 = 10_000_000;
/// Full-sized segments per immediate ACK (RFC 5681, 4.2).
const SEGMENTS_PER_ACK: u32 = 2;

/// The outcome of receiving a segment's data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Taken {
    /// RCV.NXT moved: there is more to read.
    pub(crate) has_data: bool,
    /// The peer's FIN and everything before it has been received.
    pub(crate) has_finished: bool,
}

pub(crate) struct Receiver {
    buffer: ReceiveBuffer,
    /// Sequence number of the first byte (IRS + 1).
    first: Seq,
    /// The advertised right edge, as a stream offset.
    edge: Seq,
    /// Receive buffer limit, in bytes.
    limit: usize,
    max_limit: usize,
    /// Bytes read since the limit was last raised.
    read_since: usize,
    shift: u8,
    /// Stream offset of the peer's FIN.
    fin_at: Option<u64>,
    is_finished: bool,
    has_sack: bool,
    is_ack_due: bool,
    ack_by_ns: Option<u64>,
    unacked: u32,
    /// Largest payload received, as an estimate of the peer's MSS.
    segment_bytes: u32,
    /// Duplicate range, to be reported in one D-SACK block.
    duplicate: Option<(Seq, Seq)>,
}

impl Receiver {
    pub(crate) fn new(limit: usize, max_limit: usize, shift: u8) -> Receiver {
        Receiver {
            buffer: ReceiveBuffer::default(),
            first: Seq(0),
            edge: Seq(0),
            limit,
            max_limit: max_limit.max(limit),
            read_since: 0,
            shift,
            fin_at: None,
            is_finished: false,
            has_sack: false,
            is_ack_due: false,
            ack_by_ns: None,
            unacked: 0,
            segment_bytes: 536,
            duplicate: None,
        }
    }

    /// Processes the peer's SYN.
    pub(crate) fn begin(&mut self, syn: &Segment<'_>) {
        self.first = syn.seq + 1;
        // The window of a SYN is not scaled.
        self.edge = self.first + self.limit.min(usize::from(u16::MAX)) as u32;
        self.has_sack = syn.options.sack_permitted;
        if syn.options.window_scale.is_none() {
            self.shift = 0;
            self.max_limit = self.max_limit.min(usize::from(u16::MAX));
            self.limit = self.limit.min(self.max_limit);
        }
    }

    /// RCV.NXT.
    pub(crate) fn next(&self) -> Seq {
        // Sequence numbers are stream offsets modulo 2^32.
        self.first + self.buffer.next() as u32 + u32::from(self.is_finished)
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.is_finished
    }

    pub(crate) fn readable(&self) -> usize {
        self.buffer.readable()
    }

    /// Whether a segment is acceptable (RFC 9293, 3.10.7.4).
    pub(crate) fn is_acceptable(&self, segment: &Segment<'_>) -> bool {
        let (next, len) = (self.next(), segment.sequence_len());
        let window = self.edge.since(next);
        let is_inside = |seq: Seq| !seq.is_before(next) && (seq.since(next) < window || seq == next);
        match len {
            0 => is_inside(segment.seq),
            len => is_inside(segment.seq) || is_inside((segment.seq + len).previous()) && window > 0,
        }
    }

    /// Records a duplicate segment.
    pub(crate) fn note_old(&mut self, segment: &Segment<'_>) {
        let end = segment.seq + segment.payload.len() as u32;
        if !segment.payload.is_empty() && !end.is_after(self.next()) {
            self.duplicate = Some((segment.seq, end));
        }
        self.is_ack_due = true;
    }

    /// Processes data and FIN of an acceptable segment.
    pub(crate) fn take(&mut self, memory: &mut Memory, segment: &Segment<'_>, now_ns: u64) -> Taken {
        if segment.sequence_len() == 0 || self.is_finished {
            self.is_ack_due |= segment.sequence_len() > 0;
            return Taken::default();
        }
        let mut taken = Taken::default();
        let next = self.next();
        let (mut start, mut data) = (segment.seq, segment.payload);
        if start.is_before(next) {
            let old = (next.since(start) as usize).min(data.len());
            self.duplicate = Some((start, start + old as u32)).filter(|_| old > 0);
            self.is_ack_due = true;
            (start, data) = (next, &data[old..]);
        }
        // An acceptable segment begins within the window.
        let room = self.edge.since(start) as usize;
        if data.len() > room {
            self.is_ack_due = true;
            data = &data[..room];
        }
        let at = self.buffer.next() + u64::from(start.since(next));
        if segment.is_fin {
            let fin_at = at + u64::from((segment.seq + segment.payload.len() as u32).since(start));
            self.fin_at = self.fin_at.or(Some(fin_at));
        }
        if let Some(fin_at) = self.fin_at {
            data = &data[..data.len().min(fin_at.saturating_sub(at) as usize)];
        }
        if !data.is_empty() {
            taken.has_data = self.insert(memory, at, start, data, now_ns);
        }
        if self.fin_at.is_some_and(|fin_at| fin_at <= self.buffer.next()) {
            (self.is_finished, self.is_ack_due, taken.has_finished) = (true, true, true);
            self.edge = self.edge.max(self.next());
        }
        taken
    }

    /// Whether there is more to read.
    fn insert(&mut self, memory: &mut Memory, at: u64, start: Seq, data: &[u8], now_ns: u64) -> bool {
        let count = data.len() as u32;
        self.segment_bytes = self.segment_bytes.max(count);
        let had_gap = !self.buffer.ahead().is_empty();
        match self.buffer.insert(memory, at, data) {
            Inserted::InOrder => {
                self.unacked += count;
                self.ack_by_ns = self.ack_by_ns.or(Some(now_ns.saturating_add(ACK_DELAY_NS)));
                // A segment that fills a gap is acknowledged immediately (RFC 5681, 4.2).
                self.is_ack_due |= had_gap || self.unacked >= SEGMENTS_PER_ACK * self.segment_bytes;
                return true;
            }
            Inserted::Ahead | Inserted::Dropped => {}
            Inserted::Duplicate => self.duplicate = Some((start, start + count)),
        }
        self.is_ack_due = true;
        false
    }

    /// Reads bytes received in order; returns their number.
    pub(crate) fn read(&mut self, memory: &mut Memory, into: &mut [u8]) -> usize {
        let count = self.buffer.read(memory, into);
        self.read_since += count;
        let is_scarce = memory.used_bytes() > memory.max_bytes() / 2;
        if self.read_since >= self.limit && self.limit < self.max_limit && !is_scarce {
            // The reader keeps up: receive buffer auto-tuning.
            self.limit = (2 * self.limit).min(self.max_limit);
            self.read_since = 0;
        }
        let more = self.free_edge().since(self.edge);
        if !self.is_finished && count > 0 && more as usize >= (self.limit / 2).min(self.update_bytes()) {
            self.is_ack_due = true;
        }
        count
    }

    /// Minimum growth of the window worth a window update.
    fn update_bytes(&self) -> usize {
        (self.limit / 4).max(2 * self.segment_bytes as usize)
    }

    /// The right edge that memory allows; never shrinks below what was advertised.
    fn free_edge(&self) -> Seq {
        let free = self.limit.saturating_sub(self.buffer.readable());
        (self.next() + free as u32).max(self.edge)
    }

    /// Requests an immediate ACK.
    pub(crate) fn ack_now(&mut self) {
        self.is_ack_due = true;
    }

    pub(crate) fn is_ack_due(&self, now_ns: u64) -> bool {
        self.is_ack_due || self.ack_by_ns.is_some_and(|time_ns| time_ns <= now_ns)
    }

    pub(crate) fn next_time_ns(&self) -> Option<u64> {
        self.ack_by_ns
    }

    /// Acknowledgment number, window and SACK blocks of a segment sent now.
    pub(crate) fn acknowledge(&mut self) -> (Seq, u16, Options) {
        let options = self.sack_options();
        self.duplicate = None;
        (self.is_ack_due, self.ack_by_ns, self.unacked) = (false, None, 0);
        let next = self.next();
        let free = self.free_edge();
        // Silly window syndrome avoidance (RFC 9293, 3.8.6.2.2).
        let is_worth_it = free.since(self.edge) as usize >= (self.limit / 2).min(self.segment_bytes as usize);
        let edge = if is_worth_it { free } else { self.edge };
        let window = edge.since(next);
        let unit = 1 << self.shift;
        let scaled = if is_worth_it { window / unit } else { window.div_ceil(unit) };
        let scaled = scaled.max(self.edge.since(next).div_ceil(unit)).min(u16::MAX.into());
        self.edge = self.edge.max(next + scaled * unit);
        (next, scaled as u16, options)
    }

    /// Length of the options of the next segment, in bytes.
    pub(crate) fn option_bytes(&self) -> usize {
        if self.duplicate.is_none() && self.buffer.ahead().is_empty() { 0 } else { self.sack_options().sack_bytes() }
    }

    fn sack_options(&self) -> Options {
        let mut options = Options::default();
        if !self.has_sack {
            return options;
        }
        let (next, at) = (self.next(), self.buffer.next());
        let ranges = self.buffer.sack_ranges::<SACK_BLOCKS>().into_iter().flatten();
        let ranges = ranges.map(|range| (next + (range.start - at) as u32, next + (range.end - at) as u32));
        for (block, range) in options.sack.iter_mut().zip(self.duplicate.into_iter().chain(ranges)) {
            *block = Some(range);
        }
        options
    }

    /// The window of a SYN.
    pub(crate) fn syn_window(&self) -> u16 {
        self.limit.min(usize::from(u16::MAX)) as u16
    }

    pub(crate) fn shift(&self) -> u8 {
        self.shift
    }

    /// Frees all buffers.
    pub(crate) fn drop_all(&mut self, memory: &mut Memory) {
        self.buffer.drop_all(memory);
        (self.is_ack_due, self.ack_by_ns) = (false, None);
    }
}
