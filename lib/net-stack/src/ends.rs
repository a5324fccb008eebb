//! One end of a connection, and why something about it failed.

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
    /// An end.
    pub fn new(address: impl Into<IpAddress>, port: u16) -> End {
        End { address: address.into(), port }
    }
}

impl From<End> for IpEndpoint {
    fn from(end: End) -> IpEndpoint {
        IpEndpoint::new(end.address, end.port)
    }
}

/// Why a name has no address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameFailure {
    /// There is no such name, or it has no such addresses.
    NotFound,
    /// No name server answered in time.
    TimedOut,
    /// The name servers cannot or will not answer, or there are none.
    Failed,
}

/// Why something about a socket failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The address is not one of this machine's, or makes no sense.
    BadAddress,
    /// Somebody else has that port.
    AddressInUse,
    /// Nobody listens at the other end.
    Refused,
    /// The other end ended the connection without finishing it.
    Reset,
    /// No answer came in time.
    TimedOut,
    /// There is no way to that network or host.
    Unreachable,
    /// This end was finished or aborted before, or is gone.
    Closed,
    /// There is no memory, port or socket left for this.
    Exhausted,
    /// What is to be sent is too long for one datagram.
    TooLong,
}
