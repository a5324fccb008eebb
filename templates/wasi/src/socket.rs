//! Sockets: listeners and connections over `Tcp`.
//!
//! The program's calls may be non-blocking, so a request to the network stack outlives the call that made it: a listener
//! has an `Accept` that is not answered, a connection a `Read` and, on a channel of its own, a `Write`. Bytes that a
//! program wrote are its own no longer: a failure is the error of the next write. Whoever holds a socket owns its
//! channels; dropping a connection aborts it, unless it was closed before.

use core::ops::Range;

use client::answer::{REQUEST_LIMIT, wait};
use client::file_io::BLOCK_BYTES;
use client::namespace::Namespace;
use contracts::tcp::TcpError;
use contracts::{FOR_EVER, SocketAddress, tcp_connection, tcp_listener, tcp_writer};
use sip::Deadline;
use sip::exheap::ExVec;
use sip::select::{Waitable, wait_any};

use crate::abi::Errno;
use crate::guest::{Cursor, Guest, total};

/// Maximum connections that wait to be accepted.
const BACKLOG: u32 = 128;
/// Timeout of a write: none, as long as the connection lives.
const NO_TIMEOUT: u32 = 0;

/// A listening socket.
pub struct Listener {
    local: SocketAddress,
    accepting: Accepting,
}

enum Accepting {
    Idle(tcp_listener::Imp<tcp_listener::states::Ready>),
    Waiting(tcp_listener::Imp<tcp_listener::states::ReadyAfterAccept>),
    /// The network stack has ended.
    Ended,
}

/// A connection.
pub struct Connection {
    reading: Reading,
    /// Received bytes that the program has not read.
    received: Option<(ExVec<u8>, Range<usize>)>,
    /// The program wants to read no more.
    is_shut: bool,
    writing: Writing,
}

enum Reading {
    Idle(tcp_connection::Imp<tcp_connection::states::Ready>),
    Waiting(tcp_connection::Imp<tcp_connection::states::ReadyAfterRead>),
    /// Nothing more comes: for this reason, or because the peer has finished. The channel stays open, for what the
    /// other direction has to say.
    Ended(Option<Errno>, #[expect(dead_code, reason = "open until the connection is dropped")] Kept),
}

type Kept = Option<tcp_connection::Imp<tcp_connection::states::Ready>>;

enum Writing {
    Idle(tcp_writer::Imp<tcp_writer::states::Ready>),
    Waiting(tcp_writer::Imp<tcp_writer::states::ReadyAfterWrite>),
    Ended(Errno),
}

fn is_ready(waitable: &dyn Waitable) -> bool {
    wait_any(&[waitable], Deadline::PASSED).is_some()
}

impl Listener {
    /// Listens.
    ///
    /// # Errors
    /// The network stack refuses, or there is none.
    pub fn new(namespace: &mut Namespace, local: SocketAddress) -> Result<Listener, network::NetError> {
        let listener = network::listen(namespace, local, BACKLOG)?;
        let accepting = listener.into_endpoint().map_or(Accepting::Ended, Accepting::Idle);
        Ok(Listener { local, accepting })
    }

    /// Whether [`accept`](Listener::accept) would wait. The answer arrives at [`requested`](Listener::requested).
    pub fn is_pending(&mut self, namespace: &mut Namespace) -> bool {
        self.request(namespace).is_ok() && self.requested().is_some_and(|endpoint| !is_ready(endpoint))
    }

    /// The endpoint at which the answer to a request arrives, if there is one.
    pub fn requested(&self) -> Option<&dyn Waitable> {
        match &self.accepting {
            Accepting::Waiting(endpoint) => Some(endpoint),
            _ => None,
        }
    }

    /// Has an `Accept` at the stack; on its successor if it has ended.
    fn request(&mut self, namespace: &mut Namespace) -> Result<(), Errno> {
        self.accepting = match core::mem::replace(&mut self.accepting, Accepting::Ended) {
            Accepting::Idle(endpoint) => Accepting::Waiting(endpoint.accept()),
            Accepting::Waiting(endpoint) => Accepting::Waiting(endpoint),
            Accepting::Ended => {
                let again = network::listen(namespace, self.local, BACKLOG).map_err(Errno::from)?;
                again.into_endpoint().map_or(Accepting::Ended, |endpoint| Accepting::Waiting(endpoint.accept()))
            }
        };
        Ok(())
    }

    /// Returns the next connection.
    ///
    /// # Errors
    /// [`Errno::AGAIN`] if there is none and the program does not want to wait; the stack's.
    pub fn accept(&mut self, namespace: &mut Namespace, is_waiting: bool) -> Result<Connection, Errno> {
        self.request(namespace)?;
        let endpoint = match core::mem::replace(&mut self.accepting, Accepting::Ended) {
            Accepting::Waiting(endpoint) if is_waiting || is_ready(&endpoint) => endpoint,
            other => {
                self.accepting = other;
                return Err(Errno::AGAIN);
            }
        };
        match endpoint.receive() {
            tcp_listener::ImpReadyAfterAccept::Accepted { connection, next, .. } => {
                self.accepting = Accepting::Idle(next);
                Connection::new(connection)
            }
            tcp_listener::ImpReadyAfterAccept::Failed { error, next } => {
                self.accepting = Accepting::Idle(next);
                Err(error.into())
            }
            tcp_listener::ImpReadyAfterAccept::ChannelClosed(_) => Err(Errno::CONNABORTED),
        }
    }
}

impl Connection {
    /// Wraps a connection.
    ///
    /// # Errors
    /// The stack has no memory for a second channel, or has ended.
    pub fn new(endpoint: tcp_connection::Imp<tcp_connection::states::Ready>) -> Result<Connection, Errno> {
        match wait(endpoint.open_writer(), REQUEST_LIMIT)? {
            tcp_connection::ImpReadyAfterOpenWriter::Writer { writer, next } => Ok(Connection {
                reading: Reading::Idle(next),
                received: None,
                is_shut: false,
                writing: Writing::Idle(writer),
            }),
            tcp_connection::ImpReadyAfterOpenWriter::Failed { error, .. } => Err(error.into()),
            tcp_connection::ImpReadyAfterOpenWriter::ChannelClosed(_) => Err(Errno::CONNRESET),
        }
    }

    /// Bytes that can be read without waiting.
    pub fn received_bytes(&self) -> usize {
        self.received.as_ref().map_or(0, |(_, range)| range.len())
    }

    /// Whether a read would wait. The answer arrives at [`read_requested`](Connection::read_requested).
    pub fn is_input_pending(&mut self) -> bool {
        if self.is_shut || self.received_bytes() > 0 {
            return false;
        }
        self.request();
        self.read_requested().is_some_and(|endpoint| !is_ready(endpoint))
    }

    /// The endpoint at which the answer to a read arrives, if there is one.
    pub fn read_requested(&self) -> Option<&dyn Waitable> {
        match &self.reading {
            Reading::Waiting(endpoint) => Some(endpoint),
            _ => None,
        }
    }

    /// What to wait for before a write is taken without waiting; `None` if it is already.
    pub fn output_pending(&self) -> Option<&dyn Waitable> {
        match &self.writing {
            Writing::Waiting(endpoint) if !is_ready(endpoint) => Some(endpoint),
            _ => None,
        }
    }

    /// Has a `Read` at the stack.
    fn request(&mut self) {
        if let Reading::Idle(_) = self.reading
            && let Reading::Idle(endpoint) = core::mem::replace(&mut self.reading, Reading::Ended(None, None))
        {
            self.reading = Reading::Waiting(endpoint.read(BLOCK_BYTES as u32, FOR_EVER));
        }
    }

    /// Reads what is there, at least a byte unless the peer has finished; returns the number of bytes. With `is_peek`
    /// they stay there.
    ///
    /// # Errors
    /// The stack's; [`Errno::AGAIN`] if there is nothing yet and the program does not want to wait.
    pub fn read(
        &mut self,
        guest: &mut Guest<'_>,
        vectors: &[(u32, u32)],
        is_waiting: bool,
        is_peek: bool,
    ) -> Result<u32, Errno> {
        if self.is_shut || total(vectors) == 0 {
            return Ok(0);
        }
        if self.received_bytes() == 0 {
            if !is_waiting && self.is_input_pending() {
                return Err(Errno::AGAIN);
            }
            self.receive()?;
        }
        let Some((block, range)) = &mut self.received else { return Ok(0) };
        let done = Cursor::new(vectors).scatter(guest, &block[range.clone()])?;
        if !is_peek {
            range.start += done;
        }
        if range.start >= range.end {
            self.received = None;
        }
        Ok(done as u32)
    }

    /// Waits for bytes, or the end of them.
    fn receive(&mut self) -> Result<(), Errno> {
        self.request();
        let endpoint = match core::mem::replace(&mut self.reading, Reading::Ended(None, None)) {
            Reading::Waiting(endpoint) => endpoint,
            ended => {
                self.reading = ended;
                return match self.reading {
                    Reading::Ended(Some(error), _) => Err(error),
                    _ => Ok(()),
                };
            }
        };
        let (reading, outcome) = match endpoint.receive() {
            tcp_connection::ImpReadyAfterRead::Data { data, count, next } => {
                let count = data.len().min(count as usize);
                self.received = Some((data, 0..count));
                (Reading::Idle(next), Ok(()))
            }
            // Not the answer to a read without timeout; the next call asks again.
            tcp_connection::ImpReadyAfterRead::NoData { next } => (Reading::Idle(next), Err(Errno::AGAIN)),
            tcp_connection::ImpReadyAfterRead::EndOfData { next } => (Reading::Ended(None, Some(next)), Ok(())),
            tcp_connection::ImpReadyAfterRead::Failed { error, next } => {
                (Reading::Ended(Some(error.into()), Some(next)), Err(error.into()))
            }
            tcp_connection::ImpReadyAfterRead::ChannelClosed(_) => {
                (Reading::Ended(Some(Errno::CONNRESET), None), Err(Errno::CONNRESET))
            }
        };
        self.reading = reading;
        outcome
    }

    /// Writes the first bytes, at most a block of them; returns their number.
    ///
    /// # Errors
    /// Those before were not all taken; [`Errno::AGAIN`] if they are not yet, and the program does not want to wait.
    pub fn write(&mut self, guest: &Guest<'_>, vectors: &[(u32, u32)], is_waiting: bool) -> Result<u32, Errno> {
        if !is_waiting && self.output_pending().is_some() {
            return Err(Errno::AGAIN);
        }
        self.settle()?;
        let wanted = BLOCK_BYTES.min(total(vectors) as usize);
        if wanted == 0 {
            return Ok(0);
        }
        let mut block = ExVec::new(wanted)?;
        let bytes = Cursor::new(vectors).gather(guest, &mut block)? as u32;
        self.writing = match core::mem::replace(&mut self.writing, Writing::Ended(Errno::PIPE)) {
            Writing::Idle(endpoint) => Writing::Waiting(endpoint.write(block, 0, bytes, NO_TIMEOUT)),
            other => other,
        };
        Ok(bytes)
    }

    /// Waits until what was written is taken.
    fn settle(&mut self) -> Result<(), Errno> {
        self.writing = match core::mem::replace(&mut self.writing, Writing::Ended(Errno::PIPE)) {
            Writing::Waiting(endpoint) => match endpoint.receive() {
                tcp_writer::ImpReadyAfterWrite::Written { next, .. } => Writing::Idle(next),
                tcp_writer::ImpReadyAfterWrite::WriteFailed { error, .. } => Writing::Ended(error.into()),
                tcp_writer::ImpReadyAfterWrite::ChannelClosed(_) => Writing::Ended(Errno::CONNRESET),
            },
            other => other,
        };
        match self.writing {
            Writing::Ended(error) => Err(error),
            _ => Ok(()),
        }
    }

    /// Ends a direction, or both.
    ///
    /// # Errors
    /// What was written before was not all taken, or the stack failed.
    pub fn shut_down(&mut self, reads: bool, writes: bool) -> Result<(), Errno> {
        if reads {
            self.received = None;
            self.is_shut = true;
        }
        if !writes {
            return Ok(());
        }
        self.settle()?;
        match core::mem::replace(&mut self.writing, Writing::Ended(Errno::PIPE)) {
            Writing::Idle(endpoint) => match wait(endpoint.finish(), REQUEST_LIMIT)? {
                tcp_writer::ImpReadyAfterFinish::Done { .. } => Ok(()),
                tcp_writer::ImpReadyAfterFinish::Failed { error, .. } => Err(error.into()),
                tcp_writer::ImpReadyAfterFinish::ChannelClosed(_) => Err(Errno::CONNRESET),
            },
            _ => Ok(()),
        }
    }

    /// Closes it: at once if all that was written is taken. Otherwise it is returned, and is to be closed again later.
    pub fn close(mut self) -> Option<Connection> {
        if self.output_pending().is_some() {
            return Some(self);
        }
        // A connection that has failed needs no end.
        let _ = self.shut_down(false, true);
        None
    }
}

impl From<TcpError> for Errno {
    fn from(error: TcpError) -> Errno {
        match error {
            TcpError::NotPermitted => Errno::ACCES,
            TcpError::BadAddress => Errno::ADDRNOTAVAIL,
            TcpError::AddressInUse => Errno::ADDRINUSE,
            TcpError::ConnectionRefused => Errno::CONNREFUSED,
            TcpError::Reset => Errno::CONNRESET,
            TcpError::TimedOut => Errno::TIMEDOUT,
            TcpError::Unreachable => Errno::HOSTUNREACH,
            TcpError::Closed => Errno::PIPE,
            TcpError::Exhausted => Errno::NOBUFS,
            TcpError::DeviceError => Errno::IO,
        }
    }
}

impl From<network::NetError> for Errno {
    fn from(error: network::NetError) -> Errno {
        match error {
            network::NetError::Access(error) => error.into(),
            network::NetError::Tcp(error) => error.into(),
            _ => Errno::IO,
        }
    }
}
