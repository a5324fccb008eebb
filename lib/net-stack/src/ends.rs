//! One end of a connection, and errors of sockets and names.

use smoltcp::wire::{IpAddress, IpEndpoint};

/// An address and a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct End {
    /// The address.
    pub address: IpAddress,
    /// The port.
    pub port: u16,
}

impl End {
    /// Creates an end.
    pub fn new(address: impl Into<IpAddress>, port: u16) -> End {
        End { address: address.into(), port }
    }
}

impl From<End> for IpEndpoint {
    fn from(end: End) -> IpEndpoint {
        IpEndpoint::new(end.address, end.port)
    }
}

/// Why a name did not resolve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameFailure {
    /// There is no such name (NXDOMAIN), or it has no such addresses.
    NotFound,
    /// No name server responded in time.
    TimedOut,
    /// The name servers cannot or refuse to resolve it, or there are none.
    Failed,
}

/// Why an operation on a socket failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The address is not one of this machine's, or is invalid.
    BadAddress,
    /// Another socket is bound to that port.
    AddressInUse,
    /// No listener at the remote end.
    Refused,
    /// The peer reset the connection.
    Reset,
    /// Timed out.
    TimedOut,
    /// There is no route to that network or host.
    Unreachable,
    /// This end was shut down or aborted, or is gone.
    Closed,
    /// Out of memory, ports or sockets.
    Exhausted,
    /// Too long for one datagram.
    TooLong,
}
