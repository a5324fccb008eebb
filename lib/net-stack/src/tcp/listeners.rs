//! Listening ports and their backlogs.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::task::{Poll, Waker};

use smoltcp::wire::IpAddress;

use crate::ends::{End, Failure};
use crate::output::{Buffer, Output};
use crate::packet::Segment;

use super::{ConnectionId, Holder, ListenerId, Tcp, emit};

/// Maximum number of listeners.
const MAX_LISTENERS: usize = 4096;
/// Maximum backlog, regardless of the requested one.
const MAX_BACKLOG: usize = 4096;
/// Minimum share of the half-open connections that each listener is guaranteed.
const MIN_HALF_OPEN: usize = 16;

/// Timeout for the handshake, in nanoseconds.
const HALF_OPEN_TIMEOUT_NS: u64 = 15_000_000_000;

struct Listener {
    address: Option<IpAddress>,
    port: u16,
    backlog: usize,
    waiting: VecDeque<ConnectionId>,
    /// Half-open connections, oldest first, and some stale entries.
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
    /// Those bound to one address before wildcard ones.
    by_port: BTreeMap<u16, Vec<ListenerId>>,
    /// Half-open connections of all listeners.
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

    /// Returns the listener for an address and port.
    fn at(&self, local: End) -> Option<ListenerId> {
        let fits = |id: &&ListenerId| {
            self.get(**id).is_some_and(|listener| listener.address.is_none_or(|own| own == local.address))
        };
        self.by_port.get(&local.port)?.iter().find(fits).copied()
    }

    /// Returns whether a segment without a connection is silently dropped because a port is listening: without ACK,
    /// and either not a SYN (RFC 9293, section 3.10.7.2), or with both SYN and FIN, or to a full backlog, which the
    /// client's retransmissions may find emptier.
    pub(crate) fn is_ignored_at(&self, segment: &Segment, local: End) -> bool {
        let is_ignored = |id| !segment.is_syn || segment.is_fin || self.is_full(id);
        !segment.is_ack && self.at(local).is_some_and(is_ignored)
    }

    fn is_full(&self, id: ListenerId) -> bool {
        self.get(id).is_some_and(|listener| listener.waiting.len() >= listener.backlog)
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

    /// Removes a closed connection from its listener.
    pub(crate) fn forget(&mut self, connection: ConnectionId, holder: Holder) {
        match holder {
            Holder::HalfOpen(id) => self.release_half_open(id),
            Holder::Waiting(id) => {
                if let Some(listener) = self.get_mut(id) {
                    listener.waiting.retain(|waiting| *waiting != connection);
                }
            }
            Holder::Client | Holder::Nobody { .. } => {}
        }
    }

    /// Returns the listener with the most half-open connections.
    fn busiest(&self) -> Option<ListenerId> {
        let ids = self.by_port.values().flatten().copied();
        ids.max_by_key(|id| self.get(*id).map_or(0, |listener| listener.half_open))
    }

    /// Accounts for one half-open connection fewer.
    fn release_half_open(&mut self, id: ListenerId) {
        self.half_open -= 1;
        if let Some(listener) = self.get_mut(id) {
            listener.half_open -= 1;
        }
    }

    /// Returns all of them for diagnostics: address, port, and backlog in use.
    pub(crate) fn all(&self) -> impl Iterator<Item = (Option<IpAddress>, u16, usize)> + '_ {
        let there = self.slots.iter().filter_map(|slot| slot.listener.as_ref());
        there.map(|listener| (listener.address, listener.port, listener.waiting.len()))
    }
}

impl Tcp {
    /// Returns all listeners for diagnostics: address, port, and backlog in use.
    pub(crate) fn listeners(&self) -> impl Iterator<Item = (Option<IpAddress>, u16, usize)> + '_ {
        self.listeners.all()
    }

    /// Listens at a port, on one address or on all.
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
        if self.listeners.count() >= MAX_LISTENERS {
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

    /// Closes a listener and resets the connections not yet accepted.
    pub(crate) fn close_listener(&mut self, id: ListenerId) {
        let Some(listener) = self.listeners.remove(id) else { return };
        if let Some(waker) = listener.waker {
            waker.wake();
        }
        for connection in listener.being_made {
            if self.get(connection).is_some_and(|known| known.holder == Holder::HalfOpen(id)) {
                self.listeners.half_open -= 1;
                self.reset_unheld(connection);
            }
        }
        for connection in listener.waiting {
            self.reset_unheld(connection);
        }
    }

    /// Resets a connection that no client holds.
    fn reset_unheld(&mut self, id: ConnectionId) {
        let (memory, slots) = (&mut self.memory, &mut self.slots);
        if let Some(connection) = super::find(slots, id) {
            connection.holder = Holder::Nobody { since_ns: 0 };
            connection.abort(memory);
            self.mark_dirty(id);
        }
    }

    /// Accepts the next connection of a listener.
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

    /// Creates a half-open connection for a segment of no known one, if it is a SYN to a listener.
    pub(crate) fn accept_syn<B: Buffer>(
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
        if self.listeners.is_full(listener) {
            output.counters.tcp_overflowed += 1;
            return None;
        }
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

    /// Drops the oldest half-open connection if the limit is reached: those of a SYN flood never complete, genuine
    /// ones do within a few round trips.
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
        // Handshakes that completed or ended meanwhile no longer count.
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

    /// Moves a connection to the accept queue: its handshake is complete.
    pub(crate) fn promote<B: Buffer>(&mut self, output: &mut Output<B>, id: ConnectionId, listener: ListenerId) {
        self.listeners.release_half_open(listener);
        let timeout_ns = self.timeout_ns();
        let Some(waiting_at) = self.listeners.get_mut(listener) else { return };
        // Several handshakes were under way when there was still room.
        if waiting_at.waiting.len() >= waiting_at.backlog {
            output.counters.tcp_overflowed += 1;
            self.reset_unheld(id);
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
