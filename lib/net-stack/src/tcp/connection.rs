//! One connection: what is counted beside smoltcp's socket, which does not let that be seen, and what is mended.
//!
//! Deliberately not here: whose it is, and when it has its turn.

use alloc::vec::Vec;

use smoltcp::iface::{Interface, PollResult};
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::socket::tcp::State;
use smoltcp::wire::{IpProtocol, IpRepr, TcpControl, TcpPacket, TcpRepr, TcpSeqNumber};

use crate::ends::{End, Failure};
use crate::icmp::ErrorLimit;
use crate::output::{Buffer, Output};
use crate::packet::Segment;
use crate::port::Port;

use super::recovery::Recovery;
use super::sockets::Socket;
use super::{Holder, instant};

/// A window that every connection has at first, whatever its scale.
const LEAST_WINDOW: u16 = 1;
/// How long a connection that nobody holds any more waits for the other end's finish.
const ORPHAN_NS: u64 = 60_000_000_000;
/// How long nothing may be done about data that nobody acknowledged.
const STUCK_NS: u64 = 1_000_000_000;

pub(super) struct Connection {
    pub(super) socket: Socket,
    pub(super) local: End,
    pub(super) remote: End,
    pub(super) holder: Holder,
    pub(super) is_dirty: bool,
    /// The earliest moment of this connection in the heap.
    pub(super) scheduled_ns: Option<u64>,
    /// Why it ended, once it ended badly.
    pub(super) failure: Option<Failure>,
    /// Why it may be that nobody answers.
    pub(super) hint: Option<Failure>,
    /// Its client has no more to write, but the other end is told only when all was sent once.
    pub(super) is_finishing: bool,
    /// The number of the first byte, and how many were written.
    pub(super) first: Option<u32>,
    pub(super) written: u32,
    /// What this end said last: what it expects, and the window.
    pub(super) said: Option<(u32, u16)>,
    /// By so many bits the windows that this end says are scaled.
    pub(super) window_shift: u32,
    /// The number of the other end's first byte, and how many were read.
    pub(super) first_there: Option<u32>,
    pub(super) read: u32,
    /// The window that the other end said last in a segment that counts, as it said it.
    pub(super) heard_window: u16,
    /// Since when nothing is done about data that nobody acknowledged.
    pub(super) stuck_since_ns: Option<u64>,
    /// What is known of losses.
    pub(super) recovery: Recovery,
    /// The other end has finished.
    pub(super) is_finished_there: bool,
    /// It is in the table of ends.
    pub(super) is_listed: bool,
    /// The highest sequence number that was sent.
    pub(super) sent_to: Option<u32>,
    /// When the other end was heard last.
    pub(super) heard_ns: u64,
    /// Since when something is sent that is not acknowledged.
    pub(super) unanswered_since_ns: Option<u64>,
    /// How long that may last.
    pub(super) patience_ns: u64,
}

impl Connection {
    /// Whether the other end has to answer something.
    pub(super) fn is_unanswered(&self) -> bool {
        let is_in_between = matches!(
            self.socket.state(),
            State::SynSent | State::SynReceived | State::FinWait1 | State::Closing | State::LastAck
        );
        is_in_between || self.socket.tcp_ref().send_queue() > 0
    }

    /// When the other end has had long enough to finish, where nobody holds this end any more.
    pub(super) fn orphaned_at_ns(&self) -> Option<u64> {
        match self.holder {
            Holder::Nobody { since_ns } if self.socket.state() == State::FinWait2 => {
                Some(since_ns.saturating_add(ORPHAN_NS))
            }
            _ => None,
        }
    }

    /// Sends all it may.
    pub(super) fn send_all<B: Buffer>(&mut self, output: &mut Output<B>, interface: &mut Interface, mtu: usize) {
        let now = instant(output.now_ns);
        output.watch(self.sent_to, self.is_unanswered());
        let is_closed = self.heard_window == 0 && self.socket.tcp_ref().send_queue() > 0 && self.has_sent_all();
        let before = self.acknowledged().map(|number| number.wrapping_sub(1));
        output.set_probe(before.zip(self.said).filter(|_| is_closed));
        while interface.poll_egress(now, &mut Port { output, input: None, mtu }, self.socket.set())
            == PollResult::SocketStateChanged
        {}
        self.sent_to = output.watched();
        output.set_probe(None);
        self.said = output.take_said().or(self.said);
        // The first that is sent is the beginning, which takes a number and carries nothing.
        self.first = self.first.or(self.sent_to);
    }

    /// Whether all that was written was sent once.
    pub(super) fn has_sent_all(&self) -> bool {
        match (self.first, self.sent_to) {
            (Some(first), Some(sent_to)) => sent_to.wrapping_sub(first) == self.written,
            _ => false,
        }
    }

    /// Whether the other end is to be asked if it meant a segment: a beginning where there is a connection, or a reset
    /// that may be a forgery. Who sees the connection knows exactly what is expected next; who does not has to guess
    /// it (RFC 5961, 3 and 4).
    pub(super) fn is_doubtful(&self, segment: &Segment) -> bool {
        let is_new = matches!(self.socket.state(), State::Listen | State::SynSent | State::SynReceived | State::Closed);
        let Some(next) = self.expected().filter(|_| !is_new) else { return false };
        segment.is_syn || segment.is_reset && segment.sequence != next
    }

    /// Whether smoltcp looks at what a segment says beside its data. One that lies before what is expected it only
    /// answers (RFC 9293, 3.10.7.4), as one with data where there is no room: the window such a segment tells of is not
    /// the one that counts.
    pub(super) fn is_acceptable(&self, segment: &Segment) -> bool {
        let Some(expected) = self.expected().filter(|_| !segment.is_syn) else { return true };
        let behind = segment.sequence.wrapping_add(segment.data_bytes as u32).wrapping_sub(expected) as i32;
        match segment.data_bytes {
            0 => behind >= 0,
            _ => behind > 0 && self.said.is_none_or(|(_, window)| window > 0),
        }
    }

    /// Notes whether windows are scaled, as smoltcp does it: where the other end scales, too.
    pub(super) fn note_scale(&mut self, is_scaled_there: bool) {
        let bits = usize::BITS - self.socket.tcp_ref().recv_capacity().leading_zeros();
        self.window_shift = if is_scaled_there { bits.saturating_sub(u16::BITS) } else { 0 };
    }

    /// Whether a segment says the end behind data for which there is no room. smoltcp takes the data there is room for and
    /// the end as if it came next; without the end, the other end says the rest and the end once more.
    pub(super) fn ends_beyond_room(&self, segment: &Segment) -> bool {
        let Some((expected, window)) = self.said.filter(|_| segment.is_fin && segment.data_bytes > 0) else {
            return false;
        };
        let end = segment.sequence.wrapping_add(segment.data_bytes as u32);
        let room_to = expected.wrapping_add(u32::from(window) << self.window_shift);
        end.wrapping_sub(room_to) as i32 > 0
    }

    /// The number that comes next from the other end.
    pub(super) fn expected(&self) -> Option<u32> {
        let finish = u32::from(self.is_finished_there);
        let queued = self.socket.tcp_ref().recv_queue() as u32;
        Some(self.first_there?.wrapping_add(self.read).wrapping_add(queued).wrapping_add(finish))
    }

    /// Asks the other end whether it meant what it sent, by saying what is expected.
    pub(super) fn challenge<B: Buffer>(&self, output: &mut Output<B>, limit: &mut ErrorLimit) {
        // Before anything was said, only the beginning was: the least window there can have been then.
        let begun = self.first_there.map(|first| (first, LEAST_WINDOW));
        if let Some(said) = self.said.or(begun).filter(|_| limit.take(output.now_ns)) {
            self.acknowledge(output, said);
        }
    }

    /// Says what is expected next. `expected` and `window` are as this end said them last, or nearly.
    pub(super) fn acknowledge<B: Buffer>(&self, output: &mut Output<B>, (expected, window): (u32, u16)) {
        if let Some(sequence) = self.sent_to.filter(|_| output.has_room()) {
            send_segment(output, self.local, self.remote, sequence, expected, window);
        }
    }

    /// The number that the other end acknowledged: that of the first byte which smoltcp still keeps.
    pub(super) fn acknowledged(&self) -> Option<u32> {
        let kept = self.socket.tcp_ref().send_queue() as u32;
        Some(self.first?.wrapping_add(self.written).wrapping_sub(kept))
    }

    /// Whether data was sent that is not acknowledged, while the other end has room for it: else it is asked for its
    /// window, which is smoltcp's work. Where this end has finished first all is left to smoltcp, which confuses what it
    /// sent when it sends one segment again then.
    pub(super) fn awaits_acknowledgement(&self) -> bool {
        let is_open = matches!(self.socket.state(), State::Established | State::CloseWait | State::LastAck);
        let is_sent = match (self.acknowledged(), self.sent_to) {
            (Some(acknowledged), Some(sent_to)) => (acknowledged.wrapping_sub(sent_to) as i32) < 0,
            _ => false,
        };
        is_open && is_sent && self.heard_window > 0 && self.socket.tcp_ref().send_queue() > 0
    }

    /// Whether a finish that waits may be said: all was sent once, and the other end has room for all of it.
    pub(super) fn may_finish(&self) -> bool {
        self.has_sent_all() && self.socket.tcp_ref().send_queue() <= usize::from(self.heard_window)
    }

    /// Whether the other end has not acknowledged this end's finish.
    fn has_unheard_finish(&self) -> bool {
        matches!(self.socket.state(), State::FinWait1 | State::Closing | State::LastAck)
    }

    /// Until when something is to be done about data that nobody acknowledged, where smoltcp does nothing about it.
    pub(super) fn stuck_until_ns(&mut self, is_at_it: bool, now_ns: u64) -> Option<u64> {
        let waits = self.has_unheard_finish() || self.socket.tcp_ref().send_queue() > 0;
        let is_stuck = !is_at_it && waits && self.socket.state() != State::Closed;
        self.stuck_since_ns = if is_stuck { self.stuck_since_ns.or(Some(now_ns)) } else { None };
        Some(self.stuck_since_ns?.saturating_add(STUCK_NS))
    }

    /// Makes smoltcp send the first unacknowledged segment again, by acknowledging what was acknowledged before. It
    /// stops all timers when a window opens again, though it may have sent more than the window had room for before
    /// that closed (as it does in a fast retransmission), and then waits for ever.
    pub(super) fn stir<B: Buffer>(&mut self, output: &mut Output<B>, interface: &mut Interface, mtu: usize) {
        self.stuck_since_ns = Some(output.now_ns);
        let (Some(expected), Some(acknowledged)) = (self.expected(), self.acknowledged()) else { return };
        if self.has_unheard_finish() && self.socket.tcp_ref().send_queue() == 0 {
            // Repeated acknowledgements of all but the finish end its time, too, and nothing is sent again for them.
            let (expected, window) = self.said.unwrap_or((expected, 0));
            let (ip, finish) = bare(self.local, self.remote, TcpControl::Fin, acknowledged, expected, window);
            output.send(ip.buffer_len(), 0, |packet| fill(packet, self.local, self.remote, &ip, &finish));
            output.counters.tcp_retransmitted += 1;
            return;
        }
        let now = instant(output.now_ns);
        // What others said last is nothing of this connection's.
        output.take_said();
        // A window that differs, for once, makes it count from the beginning.
        for differs in [1, 0, 0, 0, 0] {
            let packet = segment(self.remote, self.local, expected, acknowledged, self.heard_window ^ differs);
            let mut port = Port { output, input: Some(&packet), mtu };
            interface.poll_ingress_single(now, &mut port, self.socket.set());
        }
        self.said = output.take_said().or(self.said);
        self.send_all(output, interface, mtu);
    }

    /// Lets the other end know that nothing more will be written. After it has finished itself smoltcp hears no more
    /// of its window once this was said, so it is said when there is nothing more to hear.
    pub(super) fn finish(&mut self) {
        if self.socket.state() == State::CloseWait && !self.may_finish() {
            self.is_finishing = true;
        } else {
            self.socket.tcp().close();
        }
    }

    /// When the other end is taken to be gone, unless it is heard before. smoltcp's own limit of time also ends
    /// connections that have been silent for long because nobody has anything to say, so it is not used.
    pub(super) fn given_up_at_ns(&self) -> Option<u64> {
        match (self.unanswered_since_ns, self.socket.tcp_ref().keep_alive()) {
            (Some(since_ns), _) => Some(since_ns.max(self.heard_ns).saturating_add(self.patience_ns)),
            (None, Some(silence)) => {
                let silence_ns = silence.total_micros().saturating_mul(1000);
                Some(self.heard_ns.saturating_add(silence_ns).saturating_add(self.patience_ns))
            }
            (None, None) => None,
        }
    }
}

/// A segment without data.
fn bare(
    from: End,
    to: End,
    control: TcpControl,
    sequence: u32,
    expected: u32,
    window: u16,
) -> (IpRepr, TcpRepr<'static>) {
    let segment = TcpRepr {
        src_port: from.port,
        dst_port: to.port,
        control,
        seq_number: TcpSeqNumber(sequence as i32),
        ack_number: Some(TcpSeqNumber(expected as i32)),
        window_len: window,
        window_scale: None,
        max_seg_size: None,
        sack_permitted: false,
        sack_ranges: [None; 3],
        timestamp: None,
        payload: &[],
    };
    (IpRepr::new(from.address, to.address, IpProtocol::Tcp, segment.buffer_len(), 64), segment)
}

fn fill(packet: &mut [u8], from: End, to: End, ip: &IpRepr, segment: &TcpRepr) {
    let mut checksums = ChecksumCapabilities::ignored();
    checksums.ipv4 = smoltcp::phy::Checksum::Tx;
    ip.emit(&mut *packet, &checksums);
    let place = &mut packet[ip.header_len()..];
    segment.emit(&mut TcpPacket::new_unchecked(place), &from.address, &to.address, &checksums);
}

/// A packet with a segment without data.
fn segment(from: End, to: End, sequence: u32, expected: u32, window: u16) -> Vec<u8> {
    let (ip, segment) = bare(from, to, TcpControl::None, sequence, expected, window);
    let mut packet = alloc::vec![0; ip.buffer_len()];
    fill(&mut packet, from, to, &ip, &segment);
    packet
}

/// Says with a segment without data what is expected next.
pub(super) fn send_segment<B: Buffer>(
    output: &mut Output<B>,
    from: End,
    to: End,
    sequence: u32,
    expected: u32,
    window: u16,
) {
    let (ip, segment) = bare(from, to, TcpControl::None, sequence, expected, window);
    output.send(ip.buffer_len(), 0, |packet| fill(packet, from, to, &ip, &segment));
}
