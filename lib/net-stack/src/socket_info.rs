//! Sockets as people see them.

use smoltcp::socket::tcp::State;

use crate::ends::End;

/// A socket as people see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketInfo {
    /// This end.
    pub local: End,
    /// The other end.
    pub remote: Option<End>,
    /// Of TCP: its state, as in RFC 9293.
    pub(crate) tcp_state: Option<State>,
    /// Bytes, or of a listener connections, that wait for the client.
    pub receive_queued: usize,
    /// Bytes that wait to be sent or acknowledged.
    pub send_queued: usize,
}

impl SocketInfo {
    /// Whether it is one of TCP; else it is one of UDP.
    pub fn is_tcp(&self) -> bool {
        self.tcp_state.is_some()
    }

    /// Of TCP: the state in the order of RFC 9293's diagram, from 0 for closed on.
    pub fn state_number(&self) -> u16 {
        match self.tcp_state {
            None | Some(State::Closed) => 0,
            Some(State::Listen) => 1,
            Some(State::SynSent) => 2,
            Some(State::SynReceived) => 3,
            Some(State::Established) => 4,
            Some(State::FinWait1) => 5,
            Some(State::FinWait2) => 6,
            Some(State::CloseWait) => 7,
            Some(State::Closing) => 8,
            Some(State::LastAck) => 9,
            Some(State::TimeWait) => 10,
        }
    }
}
