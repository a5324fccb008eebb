//! Ports at which connections are taken, and what waits there.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::task::{Poll, Waker};

use smoltcp::wire::IpAddress;

use crate::ends::{End, Failure};
use crate::output::{Buffer, Output};
use crate::packet::Segment;

use super::{ConnectionId, Holder, ListenerId, Tcp, emit};

/// Listeners there may be.
const MOST: usize = 4096;
/// Connections that wait to be accepted, at most, whatever was asked for.
const MAX_BACKLOG: usize = 4096;
/// Of those that are being made, the share that one listener may have at least.
const MIN_HALF_OPEN: usize = 16;

/// How long the other end may take to make a connection whole.
const HALF_OPEN_TIMEOUT_NS: u64 = 15_000_000_000;

struct Listener {
    address: Option<IpAddress>,
    port: u16,
    backlog: usize,
    waiting: VecDeque<ConnectionId>,
    /// Those that are being made, the oldest in front, and some that are no more.
    being_made: VecDeque<ConnectionId>,
    half_open: usize,
    waker: Option<Waker>,
}

struct Slot {
    generation: u32,
    listener: Option<Listener>,
}

/// All listeners.
#[derive(Default)]
pub(crate) struct Listeners {
    slots: Vec<Slot>,
    /// Those of one address before those of any.
    by_port: BTreeMap<u16, Vec<ListenerId>>,
    /// Connections that are being made, of all listeners.
    half_open: usize,
}

impl Listeners {
    fn get(&self, id: ListenerId) -> Option<&Listener> {
        let slot = self.slots.get(id.slot as usize).filter(|slot| slot.generation == id.generation)?;
        slot.listener.as_ref()
    }

    fn get_mut(&mut self, id: ListenerId) -> Option<&mut Listener> {
        let slot = self.slots.get_mut(id.slot as usize).filter(|slot| slot.generation == id.generation)?;
        slot.listener.as_mut()
    }

    /// Who takes connections to an address and port.
    fn at(&self, local: End) -> Option<ListenerId> {
        let fits = |id: &&ListenerId| {
            self.get(**id).is_some_and(|listener| listener.address.is_none_or(|own| own == local.address))
        };
        self.by_port.get(&local.port)?.iter().find(fits).copied()
    }

    /// Whether a segment of no connection is dropped without a word because somebody listens there: one that neither
    /// begins a connection nor acknowledges anything (RFC 9293, section 3.10.7.2), or that begins and ends one at once.
    pub(crate) fn is_ignored_at(&self, segment: &Segment, local: End) -> bool {
        !segment.is_ack && (!segment.is_syn || segment.is_fin) && self.at(local).is_some()
    }

    fn count(&self) -> usize {
        self.by_port.values().map(Vec::len).sum()
    }

    pub(crate) fn is_taken(&self, address: Option<IpAddress>, port: u16) -> bool {
        let clashes = |id: &ListenerId| {
            self.get(*id)
                .is_some_and(|listener| listener.address.is_none() || address.is_none() || listener.address == address)
        };
        self.by_port.get(&port).is_some_and(|ids| ids.iter().any(clashes))
    }

    fn insert(&mut self, listener: Listener) -> ListenerId {
        let port = listener.port;
        let free = self.slots.iter().position(|slot| slot.listener.is_none());
        let slot = free.unwrap_or_else(|| {
            self.slots.push(Slot { generation: 0, listener: None });
            self.slots.len() - 1
        });
        self.slots[slot].listener = Some(listener);
        let id = ListenerId { slot: slot as u32, generation: self.slots[slot].generation };
        self.by_port.entry(port).or_default().push(id);
        id
    }

    fn remove(&mut self, id: ListenerId) -> Option<Listener> {
        let slot = self.slots.get_mut(id.slot as usize).filter(|slot| slot.generation == id.generation)?;
        let listener = slot.listener.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        if let Some(ids) = self.by_port.get_mut(&listener.port) {
            ids.retain(|other| *other != id);
            if ids.is_empty() {
                self.by_port.remove(&listener.port);
            }
        }
        Some(listener)
    }

    /// A connection that a listener had is gone.
    pub(crate) fn forget(&mut self, connection: ConnectionId, holder: Holder) {
        match holder {
            Holder::HalfOpen(id) => self.made_or_gone(id),
            Holder::Waiting(id) => {
                if let Some(listener) = self.get_mut(id) {
                    listener.waiting.retain(|waiting| *waiting != connection);
                }
            }
            Holder::Client | Holder::Nobody { .. } => {}
        }
    }

    /// Who has most connections that are being made.
    fn busiest(&self) -> Option<ListenerId> {
        let ids = self.by_port.values().flatten().copied();
        ids.max_by_key(|id| self.get(*id).map_or(0, |listener| listener.half_open))
    }

    /// One connection fewer is being made.
    fn made_or_gone(&mut self, id: ListenerId) {
        self.half_open -= 1;
        if let Some(listener) = self.get_mut(id) {
            listener.half_open -= 1;
        }
    }

    /// All of them, for people: the address, the port, and how many wait.
    pub(crate) fn all(&self) -> impl Iterator<Item = (Option<IpAddress>, u16, usize)> + '_ {
        let there = self.slots.iter().filter_map(|slot| slot.listener.as_ref());
        there.map(|listener| (listener.address, listener.port, listener.waiting.len()))
    }
}

impl Tcp {
    /// All listeners, for people: the address, the port, and how many wait.
    pub(crate) fn listeners(&self) -> impl Iterator<Item = (Option<IpAddress>, u16, usize)> + '_ {
        self.listeners.all()
    }

    /// Takes connections at a port, of one address or of all.
    pub(crate) fn listen(
        &mut self,
        address: Option<IpAddress>,
        port: u16,
        backlog: usize,
    ) -> Result<(ListenerId, u16), Failure> {
        let port = match port {
            0 => self.free_port(|tcp, port| !tcp.listeners.is_taken(address, port))?,
            port if self.listeners.is_taken(address, port) => return Err(Failure::AddressInUse),
            port => port,
        };
        if self.listeners.count() >= MOST {
            return Err(Failure::Exhausted);
        }
        let backlog = backlog.clamp(1, MAX_BACKLOG);
        let listener = Listener {
            address,
            port,
            backlog,
            waiting: VecDeque::new(),
            being_made: VecDeque::new(),
            half_open: 0,
            waker: None,
        };
        Ok((self.listeners.insert(listener), port))
    }

    /// Ends a listener. What it had not given out is reset.
    pub(crate) fn close_listener(&mut self, id: ListenerId) {
        let Some(listener) = self.listeners.remove(id) else { return };
        if let Some(waker) = listener.waker {
            waker.wake();
        }
        for connection in listener.being_made {
            if self.get(connection).is_some_and(|known| known.holder == Holder::HalfOpen(id)) {
                self.listeners.half_open -= 1;
                self.abandon(connection);
            }
        }
        for connection in listener.waiting {
            self.abandon(connection);
        }
    }

    /// Resets a connection that no client has.
    fn abandon(&mut self, id: ConnectionId) {
        let (memory, slots) = (&mut self.memory, &mut self.slots);
        if let Some(connection) = super::find(slots, id) {
            connection.holder = Holder::Nobody { since_ns: 0 };
            connection.abort(memory);
            self.mark_dirty(id);
        }
    }

    /// The next connection of a listener.
    pub(crate) fn poll_accept(&mut self, id: ListenerId, waker: &Waker) -> Poll<Result<ConnectionId, Failure>> {
        let Some(listener) = self.listeners.get_mut(id) else { return Poll::Ready(Err(Failure::Closed)) };
        let Some(connection) = listener.waiting.pop_front() else {
            listener.waker = Some(waker.clone());
            return Poll::Pending;
        };
        if let Some(known) = self.get_mut(connection) {
            known.holder = Holder::Client;
        }
        Poll::Ready(Ok(connection))
    }

    /// A connection that a segment of no known one is to begin: one that is to be made, at a listener.
    pub(crate) fn newcomer<B: Buffer>(
        &mut self,
        output: &mut Output<B>,
        segment: &Segment,
        bytes: &[u8],
        (local, remote): (End, End),
    ) -> Option<ConnectionId> {
        if !segment.is_syn || segment.is_ack || segment.is_reset || segment.is_fin {
            return None;
        }
        let listener = self.listeners.at(local)?;
        self.make_room(output, listener);
        let settings = self.settings(output, local, remote);
        let syn = ::tcp::Segment {
            seq: ::tcp::Seq(segment.sequence),
            window: segment.window,
            is_syn: true,
            options: emit::options(bytes),
            ..::tcp::Segment::default()
        };
        let machine = ::tcp::Connection::accept(settings, &syn, output.now_ns);
        let Some(id) = self.insert(output.now_ns, (local, remote), Holder::HalfOpen(listener), machine) else {
            output.counters.tcp_overflowed += 1;
            return None;
        };
        self.listeners.half_open += 1;
        if let Some(listener) = self.listeners.get_mut(listener) {
            listener.half_open += 1;
            listener.being_made.push_back(id);
        }
        if let Some(connection) = self.get_mut(id) {
            connection.timeout_ns = HALF_OPEN_TIMEOUT_NS;
        }
        Some(id)
    }

    /// Forgets the oldest connection that is being made where there are as many as may be: those of a flood never
    /// become whole, those of people do within a few round trips.
    fn make_room<B: Buffer>(&mut self, output: &mut Output<B>, wanted_by: ListenerId) {
        let most = self.limits.half_open.max(MIN_HALF_OPEN);
        let own = self.listeners.get(wanted_by).map_or(0, |listener| listener.half_open);
        let from = if own >= (most / 2).max(MIN_HALF_OPEN) || (self.listeners.half_open >= most && own > 0) {
            Some(wanted_by)
        } else if self.listeners.half_open >= most {
            self.listeners.busiest()
        } else {
            None
        };
        let oldest = |tcp: &mut Tcp, id: ListenerId| tcp.listeners.get_mut(id)?.being_made.pop_front();
        // Those that became whole or ended meanwhile are in no one's way.
        for id in [Some(wanted_by), from].into_iter().flatten() {
            while let Some(front) = self.listeners.get(id).and_then(|listener| listener.being_made.front().copied()) {
                if self.get(front).is_some_and(|known| known.holder == Holder::HalfOpen(id)) {
                    break;
                }
                oldest(self, id);
            }
        }
        if let Some(oldest) = from.and_then(|from| oldest(self, from)) {
            output.counters.tcp_overflowed += 1;
            self.remove(oldest);
        }
    }

    /// A connection has become whole.
    pub(crate) fn promote<B: Buffer>(&mut self, output: &mut Output<B>, id: ConnectionId, listener: ListenerId) {
        self.listeners.made_or_gone(listener);
        let timeout_ns = self.timeout_ns();
        let Some(waiting_at) = self.listeners.get_mut(listener) else { return };
        if waiting_at.waiting.len() >= waiting_at.backlog {
            output.counters.tcp_overflowed += 1;
            self.abandon(id);
            return;
        }
        waiting_at.waiting.push_back(id);
        if let Some(waker) = waiting_at.waker.take() {
            waker.wake();
        }
        output.counters.tcp_accepted += 1;
        if let Some(connection) = self.get_mut(id) {
            connection.holder = Holder::Waiting(listener);
            connection.timeout_ns = timeout_ns;
        }
    }
}
