//! The client interface of connections.

use core::task::{Poll, Waker};

use ::tcp::State;

use crate::addresses;
use crate::ends::{End, Failure};
use crate::output::{Buffer, Output};
use crate::socket_info::{Kind, SocketInfo};

use super::{Connection, ConnectionId, Holder, Tcp};

/// Dynamic ports (RFC 6335).
const FREE_PORTS: core::ops::RangeInclusive<u16> = 49_152..=65_535;
/// Maximum random ports tried before a linear search.
const MAX_TRIES: usize = 64;

impl Connection {
    /// Returns why nothing can be read or written any more.
    fn failure_or(&self, otherwise: Failure) -> Failure {
        self.failure.unwrap_or(otherwise)
    }
}

impl Tcp {
    /// Returns a free port.
    pub(crate) fn free_port(&mut self, is_free: impl Fn(&Tcp, u16) -> bool) -> Result<u16, Failure> {
        let count = u64::from(FREE_PORTS.end() - FREE_PORTS.start()) + 1;
        for _ in 0..MAX_TRIES {
            let port = FREE_PORTS.start() + (self.random.next() % count) as u16;
            if is_free(self, port) {
                return Ok(port);
            }
        }
        // Few are left, so they are searched in order.
        FREE_PORTS.into_iter().find(|port| is_free(self, *port)).ok_or(Failure::Exhausted)
    }

    /// Starts to connect.
    pub(crate) fn connect<B: Buffer>(&mut self, output: &mut Output<B>, remote: End) -> Result<ConnectionId, Failure> {
        if remote.port == 0
            || !addresses::is_one_host(&remote.address)
            || output.addresses.is_broadcast(&remote.address)
        {
            return Err(Failure::BadAddress);
        }
        if !output.reaches(&remote.address) {
            return Err(Failure::Unreachable);
        }
        let source = output.addresses.source_for(&remote.address).ok_or(Failure::Unreachable)?;
        let is_free = |tcp: &Tcp, port: u16| {
            let local = End::new(source, port);
            !tcp.by_ends.contains_key(&(local, remote))
                && !tcp.time_wait.has(local, remote)
                && !tcp.listeners.is_taken(Some(source), port)
        };
        let local = End::new(source, self.free_port(is_free)?);
        let settings = self.settings(output, local, remote);
        let machine = ::tcp::Connection::connect(settings, output.now_ns);
        let id = self.insert(output.now_ns, (local, remote), Holder::Client, machine).ok_or(Failure::Exhausted)?;
        self.mark_dirty(id);
        Ok(id)
    }

    /// Polls whether a connection is established.
    pub(crate) fn poll_connected(&mut self, id: ConnectionId, waker: &Waker) -> Poll<Result<(), Failure>> {
        let Some(connection) = self.get_mut(id) else { return Poll::Ready(Err(Failure::Closed)) };
        match connection.state() {
            State::SynSent | State::SynReceived => {
                connection.writer = Some(waker.clone());
                Poll::Pending
            }
            State::Closed => Poll::Ready(Err(connection.failure_or(Failure::TimedOut))),
            _ => Poll::Ready(Ok(())),
        }
    }

    /// Returns the number of bytes that can be read without blocking.
    pub(crate) fn readable(&self, id: ConnectionId) -> usize {
        self.get(id).map_or(0, |connection| connection.machine.readable())
    }

    /// Reads received data; 0 bytes mean end of stream.
    pub(crate) fn poll_read(
        &mut self,
        id: ConnectionId,
        into: &mut [u8],
        waker: &Waker,
    ) -> Poll<Result<usize, Failure>> {
        let (memory, slots) = (&mut self.memory, &mut self.slots);
        let Some(connection) = super::find(slots, id) else { return Poll::Ready(Err(Failure::Closed)) };
        let count = connection.machine.read(memory, into);
        if count > 0 {
            // Reading opens the window, which may call for a window update.
            self.mark_dirty(id);
            return Poll::Ready(Ok(count));
        }
        match (connection.state(), connection.failure) {
            (State::Closed, Some(failure)) => Poll::Ready(Err(failure)),
            _ if connection.machine.is_peer_finished() => Poll::Ready(Ok(0)),
            (State::Closed, None) => Poll::Ready(Err(Failure::Closed)),
            _ => {
                connection.reader = Some(waker.clone());
                Poll::Pending
            }
        }
    }

    /// Writes as much as there is room for: at least one byte if `data` is not empty.
    pub(crate) fn poll_write(&mut self, id: ConnectionId, data: &[u8], waker: &Waker) -> Poll<Result<usize, Failure>> {
        let (memory, slots) = (&mut self.memory, &mut self.slots);
        let Some(connection) = super::find(slots, id) else { return Poll::Ready(Err(Failure::Closed)) };
        if !connection.machine.may_write() {
            return Poll::Ready(Err(connection.failure_or(Failure::Closed)));
        }
        match connection.machine.write(memory, data) {
            0 if data.is_empty() => Poll::Ready(Ok(0)),
            // Memory is exhausted, and this connection will free none of it.
            0 if connection.machine.send_queued() == 0 => Poll::Ready(Err(Failure::Exhausted)),
            0 => {
                connection.writer = Some(waker.clone());
                Poll::Pending
            }
            count => {
                self.mark_dirty(id);
                Poll::Ready(Ok(count))
            }
        }
    }

    /// Shuts down the sending direction.
    pub(crate) fn finish(&mut self, id: ConnectionId) -> Result<(), Failure> {
        let connection = self.get_mut(id).ok_or(Failure::Closed)?;
        match connection.state() {
            State::Closed => Err(connection.failure_or(Failure::Closed)),
            _ => {
                connection.machine.finish();
                self.mark_dirty(id);
                Ok(())
            }
        }
    }

    /// Aborts a connection with a reset.
    pub(crate) fn abort(&mut self, id: ConnectionId) {
        let (memory, slots) = (&mut self.memory, &mut self.slots);
        let Some(connection) = super::find(slots, id) else { return };
        connection.failure.get_or_insert(Failure::Closed);
        connection.abort(memory);
        self.mark_dirty(id);
    }

    /// Releases a client's connection. If it was shut down, it closes in the background; otherwise it is reset,
    /// unless the peer has finished.
    pub(crate) fn release(&mut self, id: ConnectionId, now_ns: u64) {
        let (memory, slots) = (&mut self.memory, &mut self.slots);
        let Some(connection) = super::find(slots, id) else { return };
        connection.holder = Holder::Nobody { since_ns: now_ns };
        let goes_on = match connection.state() {
            State::Established | State::SynSent | State::SynReceived => false,
            // Unread received data is lost, so the peer gets a reset.
            State::FinWait1 | State::FinWait2 | State::Closing => connection.machine.readable() == 0,
            State::CloseWait | State::LastAck | State::TimeWait | State::Closed => true,
        };
        if goes_on {
            connection.machine.finish();
        } else {
            connection.abort(memory);
        }
        if connection.is_listed {
            self.mark_dirty(id);
        } else {
            self.remove(id);
        }
    }

    /// Sets TCP_NODELAY, and the keep-alive interval in seconds.
    pub(crate) fn set_options(
        &mut self,
        id: ConnectionId,
        no_delay: bool,
        keep_alive_s: u32,
        now_ns: u64,
    ) -> Result<(), Failure> {
        let connection = self.get_mut(id).ok_or(Failure::Closed)?;
        connection.machine.set_nagle(!no_delay);
        let silence_ns = (keep_alive_s > 0).then(|| u64::from(keep_alive_s) * 1_000_000_000);
        connection.machine.set_keep_alive(silence_ns, now_ns);
        self.mark_dirty(id);
        Ok(())
    }

    /// Returns the local and remote ends of a connection.
    pub(crate) fn ends(&self, id: ConnectionId) -> Option<(End, End)> {
        self.get(id).map(|connection| (connection.local, connection.remote))
    }

    /// Returns all connections, for diagnostics.
    pub(crate) fn all(&self) -> impl Iterator<Item = SocketInfo> + '_ {
        let there = self.slots.iter().filter_map(|slot| slot.connection.as_ref());
        there.map(|connection| SocketInfo {
            local: connection.local,
            remote: Some(connection.remote),
            kind: Kind::Connection(connection.state()),
            receive_queued: connection.machine.readable(),
            send_queued: connection.machine.send_queued(),
        })
    }
}
