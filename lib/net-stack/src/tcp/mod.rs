//! Connections: who a segment belongs to, who has something to send, who is due.
//!
//! Each connection has a set of smoltcp's of its own, so that smoltcp looks at one socket for a segment however many
//! there are. A connection is *dirty* when it may have something to send; dirty ones are asked in turn. Its next
//! moment lies in a heap; a moment that has become wrong stays there and is skipped. Neighbours: `listeners` (what
//! waits to be accepted), `time_wait` (what is left of a connection that ended), `calls` (what clients ask).

mod calls;
mod connection;
mod listeners;
mod recovery;
mod sockets;
mod time_wait;
mod trouble;

use alloc::collections::{BTreeMap, BinaryHeap, VecDeque};
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::task::Waker;

use smoltcp::iface::{Config, Interface, SocketSet};
use smoltcp::socket::tcp::State;
use smoltcp::time::Instant;
use smoltcp::wire::{HardwareAddress, TcpPacket};

use crate::addresses;
use crate::ends::{End, Failure};
use crate::icmp::ErrorLimit;
use crate::output::{Buffer, Output};
use crate::packet::{self, IpHeader, Segment};
use crate::port::Port;
use crate::random::Random;

use connection::Connection;
use listeners::Listeners;
use sockets::Spare;
use time_wait::TimeWait;

/// How much there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections in all states but those that only wait for the other end to forget them.
    pub connections: usize,
    /// Bytes of the buffers of all connections.
    pub buffer_bytes: usize,
    /// Bytes that a connection keeps in each direction, as long as most of `buffer_bytes` is free.
    pub window_bytes: usize,
    /// Connections that are being made from elsewhere, of all listeners.
    pub half_open: usize,
    /// How long unacknowledged data is sent again and again.
    pub patience_ms: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections: 16_384,
            buffer_bytes: 512 << 20,
            window_bytes: 64 << 10,
            half_open: 1024,
            patience_ms: 120_000,
        }
    }
}

/// A connection. It is its holder's until it is released.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId {
    slot: u32,
    generation: u32,
}

/// A port at which connections are taken, until it is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListenerId {
    slot: u32,
    generation: u32,
}

/// Who has a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holder {
    /// A listener: it is being made from elsewhere.
    HalfOpen(ListenerId),
    /// A listener: it waits to be accepted.
    Waiting(ListenerId),
    /// A client.
    Client,
    /// Nobody, since then: what was written is still on its way.
    Nobody { since_ns: u64 },
}

struct Slot {
    generation: u32,
    connection: Option<Connection>,
}

/// All connections.
pub(crate) struct Tcp {
    limits: Limits,
    slots: Vec<Slot>,
    free_slots: Vec<u32>,
    by_ends: BTreeMap<(End, End), u32>,
    listeners: Listeners,
    time_wait: TimeWait,
    dirty: VecDeque<ConnectionId>,
    timers: BinaryHeap<Reverse<(u64, ConnectionId)>>,
    spare: Spare,
    buffer_bytes: usize,
    connections: usize,
    interface: Interface,
    /// The same for ways that carry less, and how much.
    narrow: Option<(usize, Interface)>,
    nobody: SocketSet<'static>,
    /// How many doubtful resets may be answered.
    challenges: ErrorLimit,
    random: Random,
    /// Who is woken when there is something to send.
    worker: Option<Waker>,
}

/// A moment as smoltcp counts: microseconds.
pub(crate) fn instant(now_ns: u64) -> Instant {
    Instant::from_micros(i64::try_from(now_ns / 1000).unwrap_or(i64::MAX))
}

pub(crate) fn nanoseconds(instant: Instant) -> u64 {
    // Rounded up, or what is due at the end of a microsecond would be asked for again and again until then.
    u64::try_from(instant.total_micros()).unwrap_or(0).saturating_mul(1000)
}

/// An interface that knows the addresses. Its sequence numbers follow from the seed alone, so each connection is made
/// with a new one.
fn interface<B: Buffer>(output: &mut Output<B>, mtu: usize, seed: u64) -> Interface {
    let mut config = Config::new(HardwareAddress::Ip);
    config.random_seed = seed;
    let now = instant(output.now_ns);
    let own: Vec<_> = output.addresses.all().iter().map(|address| address.network).collect();
    let mut made = Interface::new(config, &mut Port { output, input: None, mtu }, now);
    made.update_ip_addrs(|list| {
        for address in addresses::LOOPBACK.into_iter().chain(own) {
            // There are never more than it takes; see `addresses::MOST`.
            let _ = list.push(address);
        }
    });
    made
}

/// The same packet, whose sender has not finished.
fn without_finish(header: &IpHeader, packet: &[u8]) -> Vec<u8> {
    let mut packet = packet.to_vec();
    if let Ok(mut segment) = TcpPacket::new_checked(&mut packet[header.header_bytes..]) {
        segment.set_fin(false);
    }
    packet
}

impl Tcp {
    pub(crate) fn new<B: Buffer>(limits: Limits, output: &mut Output<B>, seed: [u8; 32]) -> Tcp {
        let mut random = Random::new(seed);
        let interface = interface(output, output.mtu, random.next());
        Tcp {
            limits,
            slots: Vec::new(),
            free_slots: Vec::new(),
            by_ends: BTreeMap::new(),
            listeners: Listeners::default(),
            time_wait: TimeWait::default(),
            dirty: VecDeque::new(),
            timers: BinaryHeap::new(),
            spare: Spare::default(),
            buffer_bytes: 0,
            connections: 0,
            interface,
            narrow: None,
            nobody: SocketSet::new(Vec::new()),
            challenges: ErrorLimit::default(),
            random,
            worker: None,
        }
    }

    /// The interface's addresses or features are others now.
    pub(crate) fn renew<B: Buffer>(&mut self, output: &mut Output<B>) {
        self.interface = interface(output, output.mtu, self.random.next());
        self.narrow = None;
    }

    /// A number nobody can foretell.
    pub(crate) fn secret(&mut self) -> u64 {
        self.random.next()
    }

    fn get(&self, id: ConnectionId) -> Option<&Connection> {
        let slot = self.slots.get(id.slot as usize).filter(|slot| slot.generation == id.generation)?;
        slot.connection.as_ref()
    }

    fn get_mut(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        let slot = self.slots.get_mut(id.slot as usize).filter(|slot| slot.generation == id.generation)?;
        slot.connection.as_mut()
    }

    fn id_of(&self, slot: u32) -> ConnectionId {
        let generation = self.slots.get(slot as usize).map_or(0, |slot| slot.generation);
        ConnectionId { slot, generation }
    }

    /// Makes a connection with a closed socket; nothing where that is one too many.
    fn insert(&mut self, now_ns: u64, local: End, remote: End, holder: Holder) -> Option<ConnectionId> {
        if self.connections >= self.limits.connections {
            return None;
        }
        let left = self.limits.buffer_bytes.saturating_sub(self.buffer_bytes);
        let socket = self.spare.take(left, &self.limits)?;
        self.buffer_bytes += socket.buffer_bytes();
        self.connections += 1;
        let connection = Connection {
            socket,
            local,
            remote,
            holder,
            is_dirty: false,
            scheduled_ns: None,
            failure: None,
            hint: None,
            is_finishing: false,
            first: None,
            written: 0,
            said: None,
            first_there: None,
            read: 0,
            window_shift: 0,
            heard_window: 0,
            stuck_since_ns: None,
            recovery: Default::default(),
            is_finished_there: false,
            is_listed: true,
            sent_to: None,
            heard_ns: now_ns,
            unanswered_since_ns: None,
            patience_ns: self.patience_ns(),
        };
        let slot = self.free_slots.pop().unwrap_or_else(|| {
            self.slots.push(Slot { generation: 0, connection: None });
            (self.slots.len() - 1) as u32
        });
        self.slots[slot as usize].connection = Some(connection);
        self.by_ends.insert((local, remote), slot);
        Some(self.id_of(slot))
    }

    fn patience_ns(&self) -> u64 {
        self.limits.patience_ms.saturating_mul(1_000_000)
    }

    /// Forgets a connection without a word to the other end.
    fn remove(&mut self, id: ConnectionId) {
        self.unlist(id);
        let Some(slot) = self.slots.get_mut(id.slot as usize).filter(|slot| slot.generation == id.generation) else {
            return;
        };
        let Some(connection) = slot.connection.take() else { return };
        slot.generation = slot.generation.wrapping_add(1);
        self.free_slots.push(id.slot);
        self.connections -= 1;
        self.buffer_bytes -= connection.socket.buffer_bytes();
        self.listeners.forget(id, connection.holder);
        self.spare.keep(connection.socket);
    }

    /// Takes a connection out of the table of ends: its segments are nobody's now.
    fn unlist(&mut self, id: ConnectionId) {
        let Some(connection) = self.get_mut(id) else { return };
        if core::mem::take(&mut connection.is_listed) {
            let ends = (connection.local, connection.remote);
            self.by_ends.remove(&ends);
        }
    }

    fn mark_dirty(&mut self, id: ConnectionId) {
        let Some(connection) = self.get_mut(id) else { return };
        if !core::mem::replace(&mut connection.is_dirty, true) {
            self.dirty.push_back(id);
        }
        self.wake_worker();
    }

    /// Says that there is something to do.
    pub(crate) fn wake_worker(&mut self) {
        if let Some(worker) = self.worker.take() {
            worker.wake();
        }
    }

    /// Who is woken when there is something to send.
    pub(crate) fn set_worker(&mut self, worker: &Waker) {
        self.worker = Some(worker.clone());
    }

    /// Takes a segment whose checksum is right. `header` is that of the packet.
    pub(crate) fn receive<B: Buffer>(&mut self, output: &mut Output<B>, header: &IpHeader, packet: &[u8]) {
        let Some(segment) = Segment::read(header.payload(packet)) else {
            output.counters.malformed += 1;
            return;
        };
        let (local, remote) = segment.ends(header);
        let known = match self.by_ends.get(&(local, remote)) {
            Some(slot) => Some(self.id_of(*slot)),
            None => self.newcomer(output, &segment, local, remote),
        };
        let Some(id) = known else {
            if self.listeners.is_ignored_at(&segment, local) {
                output.counters.dropped += 1;
            } else if !self.time_wait.receive(output, &segment, local, remote) {
                self.refuse(output, packet);
            }
            return;
        };
        let (now, before) = (instant(output.now_ns), self.state(id));
        let (interface, slots) = (&mut self.interface, &mut self.slots);
        let Some(connection) = slots.get_mut(id.slot as usize).and_then(|slot| slot.connection.as_mut()) else {
            return;
        };
        output.counters.tcp_looked_at += 1;
        if segment.is_syn && connection.first_there.is_none() {
            connection.first_there = Some(segment.sequence.wrapping_add(1));
            connection.note_scale(packet::says_scale(header.payload(packet)));
        }
        if connection.is_doubtful(&segment) {
            connection.challenge(output, &mut self.challenges);
            return;
        }
        connection.heard_ns = output.now_ns;
        let is_taken = connection.is_acceptable(&segment);
        let mtu = output.mtu;
        let shortened = connection.ends_beyond_room(&segment).then(|| without_finish(header, packet));
        let mut port = Port { output, input: Some(shortened.as_deref().unwrap_or(packet)), mtu };
        port.output.watch(connection.sent_to, true);
        interface.poll_ingress_single(now, &mut port, connection.socket.set());
        connection.sent_to = output.watched();
        connection.said = output.take_said().or(connection.said);
        if is_taken && segment.is_ack && connection.acknowledged() == Some(segment.acknowledged) {
            connection.heard_window = segment.window;
        }
        connection.recovery.hear(&segment, connection.acknowledged(), connection.sent_to, output.now_ns);
        if segment.is_reset && self.state(id) == Some(State::Closed) && before != Some(State::Closed) {
            self.note_reset(output, id, before);
        }
        self.mark_dirty(id);
        self.settle(output, id);
    }

    fn note_reset<B: Buffer>(&mut self, output: &mut Output<B>, id: ConnectionId, before: Option<State>) {
        let Some(connection) = self.get_mut(id) else { return };
        connection.failure = match before {
            Some(State::SynSent) => Some(Failure::Refused),
            // Nothing was lost by it.
            Some(State::LastAck | State::Closing | State::TimeWait) => return,
            _ => Some(Failure::Reset),
        };
        output.counters.tcp_reset += 1;
    }

    /// A segment of no connection: nobody is there, which smoltcp says where it is proper.
    fn refuse<B: Buffer>(&mut self, output: &mut Output<B>, packet: &[u8]) {
        let now = instant(output.now_ns);
        let mtu = output.mtu;
        let mut port = Port { output, input: Some(packet), mtu };
        self.interface.poll_ingress_single(now, &mut port, &mut self.nobody);
    }

    fn state(&self, id: ConnectionId) -> Option<State> {
        self.get(id).map(|connection| connection.socket.state())
    }

    /// Does what follows from the state that a connection is in now.
    fn settle<B: Buffer>(&mut self, output: &mut Output<B>, id: ConnectionId) {
        let Some(connection) = self.get_mut(id) else { return };
        let state = connection.socket.state();
        if matches!(state, State::CloseWait | State::LastAck | State::Closing | State::TimeWait) {
            connection.is_finished_there = true;
        }
        let holder = connection.holder;
        match (state, holder) {
            // The other end gave up while the connection was being made.
            (State::Listen, _) => self.remove(id),
            (State::TimeWait, _) => {
                let ends = (connection.local, connection.remote);
                let was_listed = connection.is_listed;
                if was_listed {
                    // smoltcp would wait a little, and is not asked any more.
                    let expected = connection.expected();
                    connection.acknowledge(output, (expected.unwrap_or(0), 0));
                }
                self.unlist(id);
                if was_listed {
                    self.time_wait.insert(ends, output.now_ns);
                }
                if matches!(holder, Holder::Nobody { .. }) {
                    self.remove(id);
                }
            }
            (State::Closed, _) if connection.socket.has_ended() => {
                self.unlist(id);
                if !matches!(holder, Holder::Client) {
                    self.remove(id);
                }
            }
            (State::Established | State::CloseWait, Holder::HalfOpen(listener)) => {
                self.promote(output, id, listener);
            }
            (State::FinWait1 | State::FinWait2, Holder::Nobody { .. }) if connection.socket.has_data() => {
                // Nobody will ever read it, so the other end is told (RFC 9293, 3.6.1).
                connection.socket.tcp().abort();
                self.mark_dirty(id);
            }
            _ => {}
        }
    }

    /// Lets dirty connections send, as long as there is room, and those that are due.
    pub(crate) fn serve<B: Buffer>(&mut self, output: &mut Output<B>) {
        self.time_wait.serve(output.now_ns);
        while let Some(Reverse((time_ns, id))) = self.timers.peek().copied() {
            if time_ns > output.now_ns {
                break;
            }
            self.timers.pop();
            if let Some(connection) = self.get_mut(id)
                && connection.scheduled_ns == Some(time_ns)
            {
                connection.scheduled_ns = None;
                self.mark_dirty(id);
            }
        }
        for _ in 0..self.dirty.len() {
            if !output.has_room() {
                return;
            }
            let Some(id) = self.dirty.pop_front() else { return };
            if let Some(connection) = self.get_mut(id) {
                connection.is_dirty = false;
                self.send(output, id);
            }
        }
    }

    /// Lets a connection send all it may.
    fn send<B: Buffer>(&mut self, output: &mut Output<B>, id: ConnectionId) {
        let now = instant(output.now_ns);
        self.give_up(output.now_ns, id);
        let Some(mtu) = self.get(id).map(|connection| output.mtu_to(&connection.remote.address)) else { return };
        if mtu < output.mtu {
            self.make_narrow(output, mtu);
        }
        let narrow = self.narrow.as_mut().filter(|(of, _)| *of == mtu).map(|(_, interface)| interface);
        let (interface, slots) = (narrow.unwrap_or(&mut self.interface), &mut self.slots);
        let Some(connection) = slots.get_mut(id.slot as usize).and_then(|slot| slot.connection.as_mut()) else {
            return;
        };
        if connection.is_listed {
            output.counters.tcp_looked_at += 1;
            let is_under_way = connection.awaits_acknowledgement();
            if is_under_way && connection.recovery.take_due(connection.sent_to, output.now_ns) {
                connection.stir(output, interface, mtu);
            }
            let before = connection.sent_to;
            connection.send_all(output, interface, mtu);
            if connection.is_finishing && connection.may_finish() {
                connection.is_finishing = false;
                connection.socket.tcp().close();
                connection.send_all(output, interface, mtu);
            }
            let next = interface.poll_at(now, connection.socket.set()).map(nanoseconds);
            let stuck = connection.stuck_until_ns(next.is_some(), output.now_ns);
            if stuck.is_some_and(|time_ns| time_ns <= output.now_ns) {
                connection.stir(output, interface, mtu);
            }
            let is_under_way = connection.awaits_acknowledgement();
            connection.recovery.sent(before, connection.sent_to, is_under_way, output.now_ns);
            let late = connection.recovery.late_at_ns();
            let given_up = connection.given_up_at_ns();
            let orphan = connection.orphaned_at_ns();
            match [next, given_up, orphan, stuck, late].into_iter().flatten().min() {
                // It is not through: the room has run out.
                Some(time_ns) if time_ns <= output.now_ns && !output.has_room() => self.mark_dirty(id),
                Some(time_ns) => self.schedule(id, time_ns.max(output.now_ns + 1)),
                None => {}
            }
        }
        self.settle(output, id);
    }

    /// Ends a connection whose other end does not answer, or does not finish though nobody holds this end.
    fn give_up(&mut self, now_ns: u64, id: ConnectionId) {
        let Some(connection) = self.get_mut(id) else { return };
        connection.unanswered_since_ns = match connection.is_unanswered() {
            true => connection.unanswered_since_ns.or(Some(now_ns)),
            false => {
                connection.hint = None;
                None
            }
        };
        let is_late = connection.given_up_at_ns().is_some_and(|time_ns| now_ns >= time_ns);
        let is_orphan = connection.orphaned_at_ns().is_some_and(|time_ns| now_ns >= time_ns);
        if is_late && connection.failure.is_none() && connection.socket.state() != State::Closed {
            connection.failure = Some(connection.hint.unwrap_or(Failure::TimedOut));
        }
        if is_late || is_orphan {
            connection.socket.tcp().abort();
        }
    }

    fn schedule(&mut self, id: ConnectionId, time_ns: u64) {
        let Some(connection) = self.get_mut(id) else { return };
        if connection.scheduled_ns.is_some_and(|earlier| earlier <= time_ns) {
            return;
        }
        connection.scheduled_ns = Some(time_ns);
        self.timers.push(Reverse((time_ns, id)));
    }

    /// Whether connections have something to send.
    pub(crate) fn is_dirty(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// When somebody is due.
    pub(crate) fn next_time_ns(&self) -> Option<u64> {
        let timer = self.timers.peek().map(|Reverse((time_ns, _))| *time_ns);
        [timer, self.time_wait.next_time_ns()].into_iter().flatten().min()
    }

    /// Takes an address away: connections from it end.
    pub(crate) fn address_gone(&mut self) {
        let all: Vec<u32> = self.by_ends.values().copied().collect();
        for slot in all {
            self.mark_dirty(self.id_of(slot));
        }
    }

    /// Connections there are, in all states.
    pub(crate) fn count(&self) -> usize {
        self.connections + self.time_wait.count()
    }

    /// Makes the interface take a new secret for the next connection.
    fn renew_secret<B: Buffer>(&mut self, output: &mut Output<B>) {
        self.interface = interface(output, output.mtu, self.random.next());
    }

    /// Makes sure that there is an interface for a way that carries so much.
    fn make_narrow<B: Buffer>(&mut self, output: &mut Output<B>, mtu: usize) {
        if self.narrow.as_ref().is_none_or(|(known, _)| *known != mtu) {
            // Nothing that nobody is to foretell is drawn from it.
            self.narrow = Some((mtu, interface(output, mtu, 0)));
        }
    }
}
