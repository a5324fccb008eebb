//! One end of a connection: the states of RFC 9293, section 3.3.2, and segment processing in them.

use crate::memory::Memory;
use crate::receiver::Receiver;
use crate::segment::{Options, Path, Segment, Transmit};
use crate::sender::{Sender, Stretch};
use crate::seq::Seq;

/// Initial retransmission timeout of a SYN; doubles with each retransmission (RFC 6298).
const SYN_TIMEOUT_NS: u64 = 1_000_000_000;
const MAX_SYN_BACKOFF: u32 = 6;
/// Maximum window scale (RFC 7323, 2.3).
const MAX_SHIFT: u8 = 14;

/// The states of RFC 9293, section 3.3.2, without LISTEN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// A SYN was sent.
    SynSent,
    /// SYNs were exchanged, and ours is not acknowledged.
    SynReceived,
    /// Data flows in both directions.
    Established,
    /// Our FIN was sent and is not acknowledged.
    FinWait1,
    /// Our FIN is acknowledged; the peer may still send.
    FinWait2,
    /// The peer's FIN was received; we may still send.
    CloseWait,
    /// Simultaneous close: our FIN is not acknowledged.
    Closing,
    /// We closed after the peer, and our FIN is not acknowledged.
    LastAck,
    /// Both sides have closed; the peer may still retransmit its FIN.
    TimeWait,
    /// No connection.
    Closed,
}

/// Parameters of a new connection.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Initial sequence number; must be unpredictable to others (RFC 6528).
    pub first: Seq,
    /// Initial receive buffer, in bytes.
    pub receive_bytes: usize,
    /// Receive buffer limit for a fast reader, in bytes.
    pub max_receive_bytes: usize,
    /// Send buffer limit on paths with a short RTT, in bytes.
    pub send_bytes: usize,
    /// Send buffer limit on paths with a long RTT, in bytes.
    pub max_send_bytes: usize,
    /// MSS of the link to the peer, in bytes.
    pub mss: usize,
}

/// Required action after a received segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// Nothing.
    None,
    /// Call [`Connection::ack_now`], rate-limited: a challenge ACK, since the segment may be forged (RFC 5961).
    Challenge,
    /// Reply with a RST.
    Refuse,
}

/// One end of a connection.
pub struct Connection {
    state: State,
    settings: Settings,
    sender: Sender,
    receiver: Receiver,
    /// When the SYN was last sent, and the number of transmissions.
    syn_sent_ns: u64,
    syn_count: u32,
    is_syn_due: bool,
    syn_timer_ns: Option<u64>,
    is_reset_due: bool,
    keep_alive_ns: Option<u64>,
    received_ns: u64,
}

impl Connection {
    fn new(settings: Settings, state: State, now_ns: u64) -> Connection {
        let largest = settings.max_receive_bytes.max(settings.receive_bytes);
        let bits = usize::BITS - largest.leading_zeros();
        let shift = (bits.saturating_sub(u16::BITS) as u8).min(MAX_SHIFT);
        Connection {
            state,
            settings,
            sender: Sender::new(settings.first + 1, settings.send_bytes, settings.max_send_bytes),
            receiver: Receiver::new(settings.receive_bytes, settings.max_receive_bytes, shift),
            syn_sent_ns: now_ns,
            syn_count: 0,
            is_syn_due: true,
            syn_timer_ns: None,
            is_reset_due: false,
            keep_alive_ns: None,
            received_ns: now_ns,
        }
    }

    /// Active open: the SYN is sent by the next call of [`Connection::next_transmit`].
    pub fn connect(settings: Settings, now_ns: u64) -> Connection {
        Connection::new(settings, State::SynSent, now_ns)
    }

    /// Passive open, from a peer's SYN.
    pub fn accept(settings: Settings, syn: &Segment<'_>, now_ns: u64) -> Connection {
        let mut connection = Connection::new(settings, State::SynReceived, now_ns);
        connection.begin(syn);
        connection
    }

    fn begin(&mut self, syn: &Segment<'_>) {
        self.receiver.begin(syn);
        self.sender.begin(syn, self.settings.mss);
    }

    /// The connection's state.
    pub fn state(&self) -> State {
        self.state
    }

    /// Whether nothing remains to be transmitted, ever.
    pub fn has_ended(&self) -> bool {
        self.state == State::Closed && !self.is_reset_due
    }

    /// Whether [`Connection::write`] accepts bytes in this state.
    pub fn may_write(&self) -> bool {
        matches!(self.state, State::Established | State::CloseWait)
    }

    /// Whether the peer's FIN was received; bytes before it may still be unread.
    pub fn is_peer_finished(&self) -> bool {
        self.receiver.is_finished()
    }

    /// Bytes ready to be read.
    pub fn readable(&self) -> usize {
        self.receiver.readable()
    }

    /// Bytes written that the peer has not acknowledged.
    pub fn send_queued(&self) -> usize {
        self.sender.queued()
    }

    /// Whether the send buffer has enough room to wake a writer.
    pub fn has_room(&self, memory: &Memory) -> bool {
        self.sender.has_room(memory)
    }

    /// Whether anything sent is unacknowledged.
    pub fn is_unanswered(&self) -> bool {
        let is_between = matches!(
            self.state,
            State::SynSent | State::SynReceived | State::FinWait1 | State::Closing | State::LastAck
        );
        is_between || self.sender.queued() > 0
    }

    /// The next sequence number expected from the peer (RCV.NXT).
    pub fn expected(&self) -> Seq {
        self.receiver.next()
    }

    /// Whether SND.UNA <= `seq` < SND.NXT.
    pub fn is_in_flight(&self, seq: Seq) -> bool {
        match self.state {
            State::SynSent | State::SynReceived => seq == self.settings.first && self.syn_count > 0,
            _ => !seq.is_before(self.sender.unacked()) && seq.is_before(self.sender.next()),
        }
    }

    /// Queues bytes to send, as many as there is room for; returns their number.
    pub fn write(&mut self, memory: &mut Memory, data: &[u8]) -> usize {
        if self.may_write() { self.sender.write(memory, data) } else { 0 }
    }

    /// Reads bytes received in order; returns their number.
    pub fn read(&mut self, memory: &mut Memory, into: &mut [u8]) -> usize {
        self.receiver.read(memory, into)
    }

    /// Closes the sending direction: a FIN follows the queued bytes.
    pub fn finish(&mut self) {
        self.state = match self.state {
            State::Established | State::SynReceived => State::FinWait1,
            State::CloseWait => State::LastAck,
            State::SynSent => State::Closed,
            other => other,
        };
        self.sender.finish();
    }

    /// Aborts the connection with a RST.
    pub fn abort(&mut self, memory: &mut Memory) {
        self.is_reset_due |= !matches!(self.state, State::SynSent | State::TimeWait | State::Closed);
        self.forget(memory);
    }

    /// Drops the connection without a RST.
    pub fn forget(&mut self, memory: &mut Memory) {
        self.close(memory);
        self.receiver.drop_all(memory);
    }

    /// Frees all buffers.
    pub fn drop_all(&mut self, memory: &mut Memory) {
        self.sender.drop_all(memory);
        self.receiver.drop_all(memory);
    }

    fn close(&mut self, memory: &mut Memory) {
        self.state = State::Closed;
        self.sender.drop_all(memory);
        (self.is_syn_due, self.syn_timer_ns) = (false, None);
    }

    /// Sets Nagle's algorithm (RFC 9293, 3.7.4).
    pub fn set_nagle(&mut self, is_on: bool) {
        self.sender.set_nagle(is_on);
    }

    /// Sets the idle time before keep-alive probes, in nanoseconds (RFC 9293, 3.8.4); `None`: no probes.
    pub fn set_keep_alive(&mut self, silence_ns: Option<u64>, now_ns: u64) {
        self.keep_alive_ns = silence_ns;
        self.received_ns = self.received_ns.max(now_ns);
    }

    /// Idle time before keep-alive probes, in nanoseconds; `None`: no probes.
    pub fn keep_alive_ns(&self) -> Option<u64> {
        self.keep_alive_ns
    }

    /// Path MTU decreased below segments in flight: they are retransmitted.
    pub fn path_narrowed(&mut self) {
        self.sender.path_narrowed();
    }

    /// Forces an immediate ACK.
    pub fn ack_now(&mut self) {
        self.receiver.ack_now();
    }

    /// Processes a received segment of this connection (RFC 9293, 3.10.7).
    pub fn receive(&mut self, memory: &mut Memory, segment: &Segment<'_>, now_ns: u64) -> Reaction {
        match self.state {
            State::Closed => Reaction::Refuse,
            State::SynSent => self.receive_in_syn_sent(memory, segment, now_ns),
            _ => self.receive_synchronized(memory, segment, now_ns),
        }
    }

    fn receive_in_syn_sent(&mut self, memory: &mut Memory, segment: &Segment<'_>, now_ns: u64) -> Reaction {
        let is_acked = match segment.ack {
            Some(ack) if ack == self.settings.first + 1 && self.syn_count > 0 => true,
            Some(_) if segment.is_reset => return Reaction::None,
            Some(_) => return Reaction::Refuse,
            None => false,
        };
        if segment.is_reset {
            if is_acked {
                self.close(memory);
            }
            return Reaction::None;
        }
        if !segment.is_syn {
            return Reaction::None;
        }
        self.received_ns = now_ns;
        self.begin(segment);
        if is_acked {
            self.establish(segment, now_ns);
            self.receiver.ack_now();
        } else {
            self.state = State::SynReceived;
            self.is_syn_due = true;
        }
        Reaction::None
    }

    fn establish(&mut self, segment: &Segment<'_>, now_ns: u64) {
        if self.state != State::FinWait1 {
            self.state = State::Established;
        }
        (self.is_syn_due, self.syn_timer_ns) = (false, None);
        let rtt_ns = (self.syn_count == 1).then(|| now_ns.saturating_sub(self.syn_sent_ns));
        self.sender.establish(segment, rtt_ns, now_ns);
        self.syn_count = 0;
    }

    /// Whether our SYN is unacknowledged.
    fn is_syn_unanswered(&self) -> bool {
        self.state == State::SynReceived || self.state == State::FinWait1 && self.syn_count > 0
    }

    fn receive_synchronized(&mut self, memory: &mut Memory, segment: &Segment<'_>, now_ns: u64) -> Reaction {
        let next = self.receiver.next();
        if segment.is_syn && !segment.is_reset {
            if self.is_syn_unanswered() && segment.seq == next.previous() {
                // A retransmitted SYN, or the SYN-ACK of a simultaneous open.
                match segment.ack {
                    Some(ack) if ack == self.settings.first + 1 => {
                        self.establish(segment, now_ns);
                        self.receiver.ack_now();
                    }
                    _ => self.is_syn_due = true,
                }
                return Reaction::None;
            }
            return Reaction::Challenge;
        }
        if !self.receiver.is_acceptable(segment) {
            if segment.is_reset {
                return Reaction::None;
            }
            if segment.sequence_len() == 0 {
                return Reaction::Challenge;
            }
            self.receiver.note_old(segment);
            return Reaction::None;
        }
        if segment.is_reset {
            // An off-path attacker cannot know RCV.NXT (RFC 5961, section 3).
            if segment.seq != next {
                return Reaction::Challenge;
            }
            self.close(memory);
            return Reaction::None;
        }
        let Some(ack) = segment.ack else { return Reaction::None };
        if self.is_syn_unanswered() {
            if ack.is_before(self.settings.first + 1) || ack.is_after(self.sender.next()) {
                return Reaction::Refuse;
            }
            self.establish(segment, now_ns);
        } else if !self.sender.is_plausible(ack) {
            return Reaction::Challenge;
        }
        self.received_ns = now_ns;
        self.sender.acknowledged(memory, segment, now_ns);
        if self.sender.is_fin_acked() {
            self.fin_acked(memory);
        }
        let taken = self.receiver.take(memory, segment, now_ns);
        if taken.has_finished {
            self.state = match self.state {
                State::Established => State::CloseWait,
                State::FinWait1 => State::Closing,
                State::FinWait2 => State::TimeWait,
                other => other,
            };
        }
        Reaction::None
    }

    fn fin_acked(&mut self, memory: &mut Memory) {
        match self.state {
            State::FinWait1 => self.state = State::FinWait2,
            State::Closing => self.state = State::TimeWait,
            State::LastAck => self.close(memory),
            _ => {}
        }
    }

    /// The next deadline: call [`Connection::expire`] then, or [`Connection::next_transmit`] has a segment.
    pub fn next_time_ns(&self) -> Option<u64> {
        let receiver_ns = self.receiver.next_time_ns();
        let [sender_ns, keep_alive_ns] = match self.state {
            State::Closed | State::TimeWait | State::SynSent | State::SynReceived => [None; 2],
            _ => [self.sender.next_time_ns(), self.keep_alive_at_ns()],
        };
        [self.syn_timer_ns, sender_ns, keep_alive_ns, receiver_ns].into_iter().flatten().min()
    }

    fn keep_alive_at_ns(&self) -> Option<u64> {
        let silence_ns = self.keep_alive_ns.filter(|_| !self.sender.is_awaiting())?;
        Some(self.received_ns.saturating_add(silence_ns))
    }

    /// Handles expired timers: SYN retransmission, RTO, tail loss probe, reordering, persist.
    pub fn expire(&mut self, now_ns: u64) {
        if self.syn_timer_ns.is_some_and(|time_ns| time_ns <= now_ns) {
            (self.is_syn_due, self.syn_timer_ns) = (true, None);
        }
        if !matches!(self.state, State::Closed | State::TimeWait | State::SynSent | State::SynReceived) {
            self.sender.expire(now_ns);
        }
    }

    /// The next segment to transmit, which then counts as sent.
    pub fn next_transmit(&mut self, path: &Path, now_ns: u64) -> Option<Transmit> {
        if core::mem::take(&mut self.is_reset_due) {
            let ack = Some(self.receiver.next());
            return Some(Transmit { seq: self.sender.next(), ack, is_reset: true, ..Transmit::default() });
        }
        match self.state {
            State::Closed => None,
            State::SynSent | State::SynReceived => self.syn_to_send(now_ns).or_else(|| self.ack_to_send(now_ns)),
            State::TimeWait => self.ack_to_send(now_ns),
            _ if self.is_syn_unanswered() => self.syn_to_send(now_ns).or_else(|| self.ack_to_send(now_ns)),
            _ => self.data_to_send(path, now_ns).or_else(|| self.ack_to_send(now_ns)),
        }
    }

    fn syn_to_send(&mut self, now_ns: u64) -> Option<Transmit> {
        if !core::mem::take(&mut self.is_syn_due) {
            return None;
        }
        let is_answer = self.state != State::SynSent;
        let backoff = self.syn_count.min(MAX_SYN_BACKOFF);
        self.syn_timer_ns = Some(now_ns.saturating_add(SYN_TIMEOUT_NS << backoff));
        self.syn_count += 1;
        self.syn_sent_ns = now_ns;
        let peer = self.sender.offered();
        let options = Options {
            mss: Some(u16::try_from(self.settings.mss).unwrap_or(u16::MAX)),
            window_scale: Some(self.receiver.shift()).filter(|_| !is_answer || peer.is_scaled),
            sack_permitted: !is_answer || peer.has_sack,
            ..Options::default()
        };
        Some(Transmit {
            seq: self.settings.first,
            ack: is_answer.then(|| self.receiver.next()),
            window: self.receiver.syn_window(),
            is_syn: true,
            options,
            is_retransmission: self.syn_count > 1,
            ..Transmit::default()
        })
    }

    fn data_to_send(&mut self, path: &Path, now_ns: u64) -> Option<Transmit> {
        let option_bytes = self.receiver.option_bytes();
        if let Some(stretch) = self.sender.next_stretch(path, option_bytes, now_ns) {
            return Some(self.transmit_of(stretch, path, option_bytes));
        }
        let is_silent = self.keep_alive_at_ns().is_some_and(|time_ns| time_ns <= now_ns);
        if is_silent {
            self.received_ns = now_ns;
        }
        if self.sender.take_window_probe(now_ns) || is_silent {
            // A keep-alive probe: the peer answers a segment below its window.
            let seq = self.sender.unacked().previous();
            return Some(Transmit { seq, ..self.bare() });
        }
        None
    }

    fn transmit_of(&mut self, stretch: Stretch, path: &Path, option_bytes: usize) -> Transmit {
        let segment_bytes = self.sender.mss(path).saturating_sub(option_bytes);
        let is_cut = stretch.payload_bytes > segment_bytes;
        Transmit {
            seq: stretch.seq,
            is_fin: stretch.is_fin,
            is_push: stretch.is_push,
            payload_bytes: stretch.payload_bytes,
            segment_bytes: if is_cut { u16::try_from(segment_bytes).unwrap_or(u16::MAX) } else { 0 },
            is_retransmission: stretch.is_retransmission,
            ..self.bare()
        }
    }

    /// A pure ACK.
    fn bare(&mut self) -> Transmit {
        let (ack, window, options) = self.receiver.acknowledge();
        Transmit { seq: self.sender.next(), ack: Some(ack), window, options, ..Transmit::default() }
    }

    fn ack_to_send(&mut self, now_ns: u64) -> Option<Transmit> {
        let is_due = self.state != State::SynSent && self.receiver.is_ack_due(now_ns);
        is_due.then(|| self.bare())
    }

    /// Copies the payload of a segment returned by [`Connection::next_transmit`].
    pub fn copy_payload(&self, transmit: &Transmit, into: &mut [u8]) {
        self.sender.copy(transmit.seq, into);
    }
}
