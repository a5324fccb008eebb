//! Sockets as people see them.

use ::tcp::State;

use crate::ends::End;

/// What a socket is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Datagrams,
    Listener,
    Connection(State),
}

/// A socket as people see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketInfo {
    /// This end.
    pub local: End,
    /// The other end.
    pub remote: Option<End>,
    /// What it is for, and the state of a connection.
    pub(crate) kind: Kind,
    /// Bytes, or of a listener connections, that wait for the client.
    pub receive_queued: usize,
    /// Bytes that wait to be sent or acknowledged.
    pub send_queued: usize,
}

impl SocketInfo {
    /// Whether it is one of TCP; else it is one of UDP.
    pub fn is_tcp(&self) -> bool {
        self.kind != Kind::Datagrams
    }

    /// Of TCP: the state in the order of RFC 9293's diagram, from 0 for closed on.
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
