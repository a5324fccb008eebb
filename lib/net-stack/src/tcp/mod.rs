//! TCP sockets: segment dispatch, scheduling of senders, timers.
//!
//! The state machine of a connection is the crate `tcp`'s. A connection is *dirty* when it may have something to
//! send; dirty ones are served round-robin. Its next timer lies in a heap; a stale entry stays there and is skipped.
//! Neighbours: `emit` (segments as packets), `listeners` (backlogs), `time_wait` (TIME-WAIT entries), `calls` (the
//! client interface).

mod calls;
mod connection;
mod emit;
mod error;
mod listeners;
mod time_wait;

use alloc::collections::{BTreeMap, BinaryHeap, VecDeque};
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::task::Waker;

use ::tcp::{Memory, Reaction, Seq, Settings, State};

use crate::ends::{End, Failure};
use crate::icmp::ErrorLimit;
use crate::output::{Buffer, MAX_TSO_PAYLOAD_BYTES, Output};
use crate::packet::{IpHeader, Segment};
use crate::random::Random;

use connection::Connection;
use listeners::Listeners;
use time_wait::TimeWait;

/// Resource limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum connections in all states but TIME-WAIT.
    pub connections: usize,
    /// Total buffer space of all connections, in bytes.
    pub buffer_bytes: usize,
    /// Initial buffer of a connection in each direction, sufficient for a short path, in bytes.
    pub window_bytes: usize,
    /// Maximum buffer, for a fast reader and a long path, as long as most of `buffer_bytes` is free, in bytes.
    pub max_window_bytes: usize,
    /// Maximum half-open connections of all listeners.
    pub half_open: usize,
    /// User timeout in milliseconds: how long unacknowledged data is retransmitted.
    pub timeout_ms: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections: 16_384,
            buffer_bytes: 512 << 20,
            window_bytes: 64 << 10,
            max_window_bytes: 1 << 20,
            half_open: 1024,
            timeout_ms: 120_000,
        }
    }
}

/// A connection. It belongs to its holder until it is released.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId {
    slot: u32,
    generation: u32,
}

/// A listening port, until it is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListenerId {
    slot: u32,
    generation: u32,
}

/// Holder of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holder {
    /// A listener: the handshake is not complete.
    HalfOpen(ListenerId),
    /// A listener: established and waiting to be accepted.
    Waiting(ListenerId),
    /// A client.
    Client,
    /// None, since then (orphaned): written data is still being sent.
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
    memory: Memory,
    connections: usize,
    /// Limits challenge ACKs (RFC 5961).
    challenges: ErrorLimit,
    random: Random,
    /// Woken when there are segments to send.
    worker: Option<Waker>,
}

/// Returns the send buffer size in bytes: a whole number of TSO-sized packets if there is room for one, so that a full
/// buffer does not end in a short packet.
fn send_bytes(window_bytes: usize) -> usize {
    match window_bytes / MAX_TSO_PAYLOAD_BYTES {
        0 => window_bytes,
        packets => packets * MAX_TSO_PAYLOAD_BYTES,
    }
}

/// Looks up a connection's slot without borrowing the rest of [`Tcp`].
fn find(slots: &mut [Slot], id: ConnectionId) -> Option<&mut Connection> {
    let slot = slots.get_mut(id.slot as usize).filter(|slot| slot.generation == id.generation)?;
    slot.connection.as_mut()
}

impl Tcp {
    pub(crate) fn new(limits: Limits, seed: [u8; 32]) -> Tcp {
        Tcp {
            limits,
            slots: Vec::new(),
            free_slots: Vec::new(),
            by_ends: BTreeMap::new(),
            listeners: Listeners::default(),
            time_wait: TimeWait::default(),
            dirty: VecDeque::new(),
            timers: BinaryHeap::new(),
            memory: Memory::new(limits.buffer_bytes),
            connections: 0,
            challenges: ErrorLimit::default(),
            random: Random::new(seed),
            worker: None,
        }
    }

    /// Returns an unpredictable number.
    pub(crate) fn secret(&mut self) -> u64 {
        self.random.next()
    }

    fn get(&self, id: ConnectionId) -> Option<&Connection> {
        let slot = self.slots.get(id.slot as usize).filter(|slot| slot.generation == id.generation)?;
        slot.connection.as_ref()
    }

    fn get_mut(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        find(&mut self.slots, id)
    }

    fn id_of(&self, slot: u32) -> ConnectionId {
        let generation = self.slots.get(slot as usize).map_or(0, |slot| slot.generation);
        ConnectionId { slot, generation }
    }

    /// Returns the settings of a new connection. The more memory is in use, the smaller its buffers.
    fn settings<B: Buffer>(&self, output: &Output<B>, local: End, remote: End) -> Settings {
        let (used, all) = (self.memory.used_bytes(), self.memory.max_bytes());
        let (share, growth) = match () {
            () if used > all / 4 * 3 => (4, 1),
            () if used > all / 2 => (2, 1),
            () => (1, self.limits.max_window_bytes),
        };
        let window_bytes = self.limits.window_bytes / share;
        let link = emit::path(output, &remote.address);
        Settings {
            first: Seq(self.random.initial_sequence_number(local, remote, output.now_ns)),
            receive_bytes: window_bytes,
            max_receive_bytes: window_bytes.max(growth),
            send_bytes: send_bytes(window_bytes),
            max_send_bytes: window_bytes.max(growth),
            mss: link.mss,
        }
    }

    /// Adds a connection; `None` at the limit.
    fn insert(
        &mut self,
        now_ns: u64,
        (local, remote): (End, End),
        holder: Holder,
        machine: ::tcp::Connection,
    ) -> Option<ConnectionId> {
        if self.connections >= self.limits.connections || self.memory.used_bytes() >= self.memory.max_bytes() {
            return None;
        }
        self.connections += 1;
        let connection = Connection {
            machine,
            local,
            remote,
            holder,
            is_dirty: false,
            scheduled_ns: None,
            failure: None,
            hint: None,
            is_listed: true,
            received_ns: now_ns,
            unanswered_since_ns: None,
            timeout_ns: self.timeout_ns(),
            reader: None,
            writer: None,
        };
        let slot = self.free_slots.pop().unwrap_or_else(|| {
            self.slots.push(Slot { generation: 0, connection: None });
            (self.slots.len() - 1) as u32
        });
        self.slots[slot as usize].connection = Some(connection);
        self.by_ends.insert((local, remote), slot);
        Some(self.id_of(slot))
    }

    fn timeout_ns(&self) -> u64 {
        self.limits.timeout_ms.saturating_mul(1_000_000)
    }

    /// Removes a connection without sending anything.
    fn remove(&mut self, id: ConnectionId) {
        self.unlist(id);
        let Some(slot) = self.slots.get_mut(id.slot as usize).filter(|slot| slot.generation == id.generation) else {
            return;
        };
        let Some(mut connection) = slot.connection.take() else { return };
        slot.generation = slot.generation.wrapping_add(1);
        self.free_slots.push(id.slot);
        self.connections -= 1;
        connection.machine.drop_all(&mut self.memory);
        self.listeners.forget(id, connection.holder);
    }

    /// Removes a connection from the table of ends: its segments no longer match.
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

    /// Wakes the sending task.
    pub(crate) fn wake_worker(&mut self) {
        if let Some(worker) = self.worker.take() {
            worker.wake();
        }
    }

    /// Sets the task that is woken when there are segments to send.
    pub(crate) fn set_worker(&mut self, worker: &Waker) {
        self.worker = Some(worker.clone());
    }

    /// Processes a segment whose checksum is right. `header` is the packet's.
    pub(crate) fn receive<B: Buffer>(&mut self, output: &mut Output<B>, header: &IpHeader, packet: &[u8]) {
        let Some(segment) = Segment::read(header.payload(packet)) else {
            output.counters.malformed += 1;
            return;
        };
        let (local, remote) = segment.ends(header);
        let bytes = header.payload(packet);
        let Some(slot) = self.by_ends.get(&(local, remote)).copied() else {
            self.receive_unmatched(output, &segment, bytes, (local, remote));
            return;
        };
        let id = self.id_of(slot);
        let before = self.state(id);
        let (memory, slots) = (&mut self.memory, &mut self.slots);
        let Some(connection) = find(slots, id) else { return };
        output.counters.tcp_looked_at += 1;
        match connection.receive(memory, &segment, bytes, output.now_ns) {
            Reaction::None => {}
            Reaction::Challenge if self.challenges.take(output.now_ns) => connection.machine.ack_now(),
            Reaction::Challenge => return,
            Reaction::Refuse => {
                emit::refuse(output, (local, remote), &segment);
                return;
            }
        }
        if segment.is_reset && self.state(id) == Some(State::Closed) && before != Some(State::Closed) {
            self.note_reset(output, id, before);
        }
        self.mark_dirty(id);
        self.settle(output, id);
    }

    /// Processes a segment that matches no connection: it opens one, or is refused.
    fn receive_unmatched<B: Buffer>(
        &mut self,
        output: &mut Output<B>,
        segment: &Segment,
        bytes: &[u8],
        (local, remote): (End, End),
    ) {
        if let Some(id) = self.accept_syn(output, segment, bytes, (local, remote)) {
            output.counters.tcp_looked_at += 1;
            self.mark_dirty(id);
        } else if self.listeners.is_ignored_at(segment, local) {
            output.counters.dropped += 1;
        } else if !self.time_wait.receive(output, segment, local, remote) {
            emit::refuse(output, (local, remote), segment);
        }
    }

    fn note_reset<B: Buffer>(&mut self, output: &mut Output<B>, id: ConnectionId, before: Option<State>) {
        let Some(connection) = self.get_mut(id) else { return };
        connection.failure = match (before, connection.holder) {
            (Some(State::SynSent), _) => Some(Failure::Refused),
            // No data was lost.
            (Some(State::LastAck | State::Closing | State::TimeWait), _) => return,
            // The peer gave up during the handshake.
            (_, Holder::HalfOpen(_)) => return,
            _ => Some(Failure::Reset),
        };
        output.counters.tcp_reset += 1;
    }

    fn state(&self, id: ConnectionId) -> Option<State> {
        self.get(id).map(Connection::state)
    }

    /// Acts on the state that a connection is in now.
    fn settle<B: Buffer>(&mut self, output: &mut Output<B>, id: ConnectionId) {
        let (memory, slots) = (&mut self.memory, &mut self.slots);
        let Some(connection) = find(slots, id) else { return };
        match (connection.state(), connection.holder) {
            (State::TimeWait, holder) => {
                let ends = (connection.local, connection.remote);
                let was_listed = connection.is_listed;
                if was_listed {
                    // Its last acknowledgment.
                    connection.send_all(output);
                }
                self.unlist(id);
                if was_listed {
                    self.time_wait.insert(ends, output.now_ns);
                }
                if matches!(holder, Holder::Nobody { .. }) {
                    self.remove(id);
                }
            }
            (State::Closed, holder) if connection.machine.has_ended() => {
                self.unlist(id);
                if !matches!(holder, Holder::Client) {
                    self.remove(id);
                }
            }
            (State::Established | State::CloseWait, Holder::HalfOpen(listener)) => {
                self.promote(output, id, listener);
            }
            (State::FinWait1 | State::FinWait2, Holder::Nobody { .. }) if connection.machine.readable() > 0 => {
                // No one will ever read it, so the peer gets a reset (RFC 9293, 3.6.1).
                connection.abort(memory);
                self.mark_dirty(id);
            }
            _ => {}
        }
    }

    /// Lets dirty connections send, while there is room, and runs expired timers.
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

    /// Lets a connection send as much as permitted.
    fn send<B: Buffer>(&mut self, output: &mut Output<B>, id: ConnectionId) {
        self.give_up(output.now_ns, id);
        let Some(connection) = self.get_mut(id) else { return };
        if connection.is_listed {
            output.counters.tcp_looked_at += 1;
            connection.machine.expire(output.now_ns);
            connection.send_all(output);
            let next = connection.machine.next_time_ns();
            let times = [next, connection.given_up_at_ns(), connection.orphaned_at_ns()];
            if output.has_room() {
                if let Some(time_ns) = times.into_iter().flatten().min() {
                    self.schedule(id, time_ns.max(output.now_ns + 1));
                }
            } else {
                // There may be more to send.
                self.mark_dirty(id);
            }
        }
        self.settle(output, id);
    }

    /// Ends a connection whose peer does not answer, or an orphaned one that receives no FIN. A half-open one is dropped
    /// without a reset (RFC 9293, section 3.10.8): its peer may still be in SYN-SENT and would take that for a refusal, while
    /// its next SYN may get through.
    fn give_up(&mut self, now_ns: u64, id: ConnectionId) {
        let (memory, slots) = (&mut self.memory, &mut self.slots);
        let Some(connection) = find(slots, id) else { return };
        connection.unanswered_since_ns = match connection.machine.is_unanswered() {
            true => connection.unanswered_since_ns.or(Some(now_ns)),
            false => {
                connection.hint = None;
                None
            }
        };
        let is_late = connection.given_up_at_ns().is_some_and(|time_ns| now_ns >= time_ns);
        let is_orphan = connection.orphaned_at_ns().is_some_and(|time_ns| now_ns >= time_ns);
        if is_late && connection.failure.is_none() && connection.state() != State::Closed {
            connection.failure = Some(connection.hint.unwrap_or(Failure::TimedOut));
        }
        if is_late && matches!(connection.holder, Holder::HalfOpen(_)) {
            connection.machine.forget(memory);
        } else if is_late || is_orphan {
            connection.abort(memory);
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

    /// Returns whether connections have something to send.
    pub(crate) fn is_dirty(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// Returns when the next timer is due.
    pub(crate) fn next_time_ns(&self) -> Option<u64> {
        let timer = self.timers.peek().map(|Reverse((time_ns, _))| *time_ns);
        [timer, self.time_wait.next_time_ns()].into_iter().flatten().min()
    }

    /// Handles the removal of an address: its connections are dropped silently.
    pub(crate) fn address_gone<B: Buffer>(&mut self, output: &Output<B>) {
        let all: Vec<u32> = self.by_ends.values().copied().collect();
        for slot in all {
            let id = self.id_of(slot);
            let (memory, slots) = (&mut self.memory, &mut self.slots);
            if let Some(connection) = find(slots, id)
                && !output.addresses.is_local(&connection.local.address)
            {
                connection.machine.forget(memory);
                connection.wake(memory);
                self.mark_dirty(id);
            }
        }
    }

    /// Returns the number of connections in all states.
    pub(crate) fn count(&self) -> usize {
        self.connections + self.time_wait.count()
    }
}
