//! Sockets as shown by diagnostics.

use ::tcp::State;

use crate::ends::End;

/// The kind of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Datagrams,
    Listener,
    Connection(State),
}

/// A socket as shown by diagnostics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketInfo {
    /// The local end.
    pub local: End,
    /// The remote end.
    pub remote: Option<End>,
    /// The kind, and the state of a connection.
    pub(crate) kind: Kind,
    /// Received bytes (for a listener, connections) queued for the client.
    pub receive_queued: usize,
    /// Bytes not yet sent or acknowledged.
    pub send_queued: usize,
}

impl SocketInfo {
    /// Returns whether it is a TCP socket; otherwise it is a UDP socket.
    pub fn is_tcp(&self) -> bool {
        self.kind != Kind::Datagrams
    }

    /// For TCP: the state in the order of RFC 9293's diagram, from 0 for closed on.
    pub fn state_number(&self) -> u16 {
        let state = match self.kind {
            Kind::Datagrams => return 0,
            Kind::Listener => return 1,
            Kind::Connection(state) => state,
        };
        match state {
            State::Closed => 0,
            State::SynSent => 2,
            State::SynReceived => 3,
            State::Established => 4,
            State::FinWait1 => 5,
            State::FinWait2 => 6,
            State::CloseWait => 7,
            State::Closing => 8,
            State::LastAck => 9,
            State::TimeWait => 10,
        }
    }
}
