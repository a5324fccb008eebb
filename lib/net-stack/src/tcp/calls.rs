//! What clients ask of their connections.

use core::task::{Poll, Waker};

use smoltcp::socket::tcp::{RecvError, SendError, Socket, State};
use smoltcp::time::Duration;

use crate::addresses;
use crate::ends::{End, Failure};
use crate::output::{Buffer, Output};

use crate::socket_info::SocketInfo;

use super::{Connection, ConnectionId, Holder, Tcp};

/// Ports that are given to those who want any (RFC 6335).
const FREE_PORTS: core::ops::RangeInclusive<u16> = 49_152..=65_535;
/// Ports that are tried.
const MOST_TRIES: usize = 64;
/// Bytes that are copied at once: what moves of memory of some pages are fast at on every machine.
const COPIED_BYTES: usize = 8 << 10;

impl Connection {
    /// Why nothing can be read or written, once it ended.
    fn failure_or(&self, otherwise: Failure) -> Failure {
        self.failure.unwrap_or(otherwise)
    }
}

/// Puts as much into the connection's buffer as there is room for.
fn send(tcp: &mut Socket<'_>, data: &[u8]) -> Result<usize, SendError> {
    let mut sent = 0;
    // Also of nothing it is said whether it can be sent.
    loop {
        let part = &data[sent..data.len().min(sent + COPIED_BYTES)];
        let taken = tcp.send_slice(part)?;
        sent += taken;
        if taken < COPIED_BYTES {
            return Ok(sent);
        }
    }
}

impl Tcp {
    /// A port that nobody has.
    pub(crate) fn free_port(&mut self, is_free: impl Fn(&Tcp, u16) -> bool) -> Result<u16, Failure> {
        let count = u64::from(FREE_PORTS.end() - FREE_PORTS.start()) + 1;
        for _ in 0..MOST_TRIES {
            let port = FREE_PORTS.start() + (self.random.next() % count) as u16;
            if is_free(self, port) {
                return Ok(port);
            }
        }
        // Few are left, so they are looked through.
        FREE_PORTS.into_iter().find(|port| is_free(self, *port)).ok_or(Failure::Exhausted)
    }

    /// Begins to connect.
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
        self.renew_secret(output);
        let id = self.insert(output.now_ns, local, remote, Holder::Client).ok_or(Failure::Exhausted)?;
        let (interface, slots) = (&mut self.interface, &mut self.slots);
        let connection = slots.get_mut(id.slot as usize).and_then(|slot| slot.connection.as_mut());
        let begun = connection.is_some_and(|connection| {
            let (remote, local): (smoltcp::wire::IpEndpoint, smoltcp::wire::IpEndpoint) = (remote.into(), local.into());
            connection.socket.tcp().connect(interface.context(), remote, local).is_ok()
        });
        if !begun {
            self.remove(id);
            return Err(Failure::BadAddress);
        }
        self.mark_dirty(id);
        Ok(id)
    }

    /// Whether a connection that was begun stands.
    pub(crate) fn poll_connected(&mut self, id: ConnectionId, waker: &Waker) -> Poll<Result<(), Failure>> {
        let Some(connection) = self.get_mut(id) else { return Poll::Ready(Err(Failure::Closed)) };
        match connection.socket.state() {
            State::SynSent | State::SynReceived => {
                connection.socket.tcp().register_send_waker(waker);
                Poll::Pending
            }
            State::Closed => Poll::Ready(Err(connection.failure_or(Failure::TimedOut))),
            _ => Poll::Ready(Ok(())),
        }
    }

    /// Bytes that can be read at once.
    pub(crate) fn readable(&self, id: ConnectionId) -> usize {
        self.get(id).map_or(0, |connection| connection.socket.tcp_ref().recv_queue())
    }

    /// Reads what has come; 0 bytes: the other end has finished.
    pub(crate) fn poll_read(
        &mut self,
        id: ConnectionId,
        into: &mut [u8],
        waker: &Waker,
    ) -> Poll<Result<usize, Failure>> {
        let Some(connection) = self.get_mut(id) else { return Poll::Ready(Err(Failure::Closed)) };
        let tcp = connection.socket.tcp();
        match tcp.recv_slice(into) {
            Ok(0) => {
                tcp.register_recv_waker(waker);
                Poll::Pending
            }
            Ok(count) => {
                connection.read = connection.read.wrapping_add(count as u32);
                // What was read makes room, which the other end may have to be told.
                self.mark_dirty(id);
                Poll::Ready(Ok(count))
            }
            Err(RecvError::Finished) => Poll::Ready(Ok(0)),
            Err(RecvError::InvalidState) if matches!(tcp.state(), State::SynSent | State::SynReceived) => {
                tcp.register_recv_waker(waker);
                Poll::Pending
            }
            Err(RecvError::InvalidState) => match connection.failure {
                None if connection.is_finished_there => Poll::Ready(Ok(0)),
                _ => Poll::Ready(Err(connection.failure_or(Failure::Closed))),
            },
        }
    }

    /// Writes as much as there is room for, at least one byte of what is not empty.
    pub(crate) fn poll_write(&mut self, id: ConnectionId, data: &[u8], waker: &Waker) -> Poll<Result<usize, Failure>> {
        let Some(connection) = self.get_mut(id) else { return Poll::Ready(Err(Failure::Closed)) };
        if connection.is_finishing {
            return Poll::Ready(Err(Failure::Closed));
        }
        let tcp = connection.socket.tcp();
        match send(tcp, data) {
            Ok(0) if !data.is_empty() => {
                tcp.register_send_waker(waker);
                Poll::Pending
            }
            Ok(count) => {
                connection.written = connection.written.wrapping_add(count as u32);
                self.mark_dirty(id);
                Poll::Ready(Ok(count))
            }
            Err(_) => Poll::Ready(Err(connection.failure_or(Failure::Closed))),
        }
    }

    /// Nothing more will be written.
    pub(crate) fn finish(&mut self, id: ConnectionId) -> Result<(), Failure> {
        let connection = self.get_mut(id).ok_or(Failure::Closed)?;
        match connection.socket.state() {
            State::Closed => Err(connection.failure_or(Failure::Closed)),
            _ => {
                connection.finish();
                self.mark_dirty(id);
                Ok(())
            }
        }
    }

    /// Ends a connection at once; the other end is told.
    pub(crate) fn abort(&mut self, id: ConnectionId) {
        let Some(connection) = self.get_mut(id) else { return };
        if connection.failure.is_none() {
            connection.failure = Some(Failure::Closed);
        }
        connection.socket.tcp().abort();
        self.mark_dirty(id);
    }

    /// Its client has no more to do with a connection. What was finished goes on to its end; what was not is reset,
    /// unless the other end has finished.
    pub(crate) fn release(&mut self, id: ConnectionId, now_ns: u64) {
        let Some(connection) = self.get_mut(id) else { return };
        connection.holder = Holder::Nobody { since_ns: now_ns };
        let goes_on = match connection.socket.state() {
            State::Established | State::SynSent | State::SynReceived | State::Listen => false,
            // What came and was never read is lost, and its sender is told.
            State::FinWait1 | State::FinWait2 | State::Closing => !connection.socket.has_data(),
            State::CloseWait | State::LastAck | State::TimeWait | State::Closed => true,
        };
        if goes_on {
            connection.finish();
        } else {
            connection.socket.tcp().abort();
        }
        if connection.is_listed {
            self.mark_dirty(id);
        } else {
            self.remove(id);
        }
    }

    /// Whether small pieces are sent at once, and after how many seconds of silence the other end is asked.
    pub(crate) fn set_options(&mut self, id: ConnectionId, no_delay: bool, keep_alive_s: u32) -> Result<(), Failure> {
        let connection = self.get_mut(id).ok_or(Failure::Closed)?;
        let tcp = connection.socket.tcp();
        tcp.set_nagle_enabled(!no_delay);
        tcp.set_keep_alive((keep_alive_s > 0).then(|| Duration::from_secs(keep_alive_s.into())));
        self.mark_dirty(id);
        Ok(())
    }

    /// The two ends of a connection.
    pub(crate) fn ends(&self, id: ConnectionId) -> Option<(End, End)> {
        self.get(id).map(|connection| (connection.local, connection.remote))
    }

    /// All connections, for people.
    pub(crate) fn all(&self) -> impl Iterator<Item = SocketInfo> + '_ {
        let there = self.slots.iter().filter_map(|slot| slot.connection.as_ref());
        there.map(|connection| {
            let tcp = connection.socket.tcp_ref();
            SocketInfo {
                local: connection.local,
                remote: Some(connection.remote),
                tcp_state: Some(tcp.state()),
                receive_queued: tcp.recv_queue(),
                send_queued: tcp.send_queue(),
            }
        })
    }
}
