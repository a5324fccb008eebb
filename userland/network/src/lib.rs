//! Blocking network clients: connect, listen and resolve as plain functions.
//!
//! Key types: [`NetError`], [`Connection`], [`Listener`]. Neighbours: [`address`] (parsing and formatting),
//! [`ip`] (the configuration of the stack), [`packets`] (batches of a network card). Deliberately not here: many
//! connections at a time; a server works with the endpoints themselves, asynchronously.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod address;
pub mod ip;
pub mod packets;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::net::IpAddr;

use client::access::AccessError;
use client::answer::{REQUEST_LIMIT, limit_beyond, wait};
use client::namespace::{Namespace, block};
use contracts::directory::NameError;
use contracts::dns::{self, AddressFamily, DnsError};
use contracts::ip_configuration::IpError;
use contracts::tcp::{self, TcpError};
use contracts::{FOR_EVER, SocketAddress, tcp_connection, tcp_listener};
use sip::exheap::ExVec;
use sip::{Deadline, Status};

use crate::address::AddressError;

/// Path at which a network stack serves `Tcp`.
pub const TCP: &str = "/service/tcp";
/// Path at which a network stack serves `Dns`.
pub const DNS: &str = "/service/dns";
/// Path at which a network stack serves `IpConfiguration`.
pub const IP: &str = "/service/ip";

/// Error of a network operation. Displays as the rest of a sentence, with a remedy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetError {
    /// The network stack could not be reached, or ended.
    Access(AccessError),
    /// A connection failed.
    Tcp(TcpError),
    /// A name was not resolved.
    Dns(DnsError),
    /// The configuration was not read or changed.
    Ip(IpError),
    /// The text is no address or name.
    Address(AddressError),
    /// The timeout passed.
    Silent,
}

impl From<AccessError> for NetError {
    fn from(error: AccessError) -> NetError {
        NetError::Access(error)
    }
}

impl From<Status> for NetError {
    fn from(status: Status) -> NetError {
        NetError::Access(status.into())
    }
}

impl From<TcpError> for NetError {
    fn from(error: TcpError) -> NetError {
        NetError::Tcp(error)
    }
}

impl From<DnsError> for NetError {
    fn from(error: DnsError) -> NetError {
        NetError::Dns(error)
    }
}

impl From<IpError> for NetError {
    fn from(error: IpError) -> NetError {
        NetError::Ip(error)
    }
}

impl From<AddressError> for NetError {
    fn from(error: AddressError) -> NetError {
        NetError::Address(error)
    }
}

impl fmt::Display for NetError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NetError::Access(AccessError::Name(NameError::NotFound)) => {
                formatter.write_str("this system has no network stack; `ls /service` shows what it has")
            }
            NetError::Access(AccessError::ServerEnded) => {
                formatter.write_str("the network stack ended; try again, it is being restarted")
            }
            NetError::Access(error) => error.fmt(formatter),
            NetError::Tcp(error) => formatter.write_str(tcp_text(*error)),
            NetError::Dns(error) => formatter.write_str(dns_text(*error)),
            NetError::Ip(error) => formatter.write_str(ip_text(*error)),
            NetError::Address(error) => error.fmt(formatter),
            NetError::Silent => formatter.write_str("timed out; try again, or allow more time"),
        }
    }
}

const UNREACHABLE: &str = "no route to the host, or the host is down; `route` shows the routes";

fn tcp_text(error: TcpError) -> &'static str {
    match error {
        TcpError::NotPermitted => {
            "this program may not use that address or port: the network rules, `cat /status/audit` tells which, or the \
             machine, of which ports below 1024 may need more rights"
        }
        TcpError::BadAddress => "the address is not one of this machine's, or cannot be used; `ipconfig` shows them",
        TcpError::AddressInUse => "the port is in use; `netstat` shows by whom",
        TcpError::ConnectionRefused => "connection refused; check the port, and that the server runs",
        TcpError::Reset => "connection reset by peer; try again",
        TcpError::TimedOut => "connection timed out; check the address, and `ping` it",
        TcpError::Unreachable => UNREACHABLE,
        TcpError::Closed => "the connection is closed",
        TcpError::Exhausted => "the network stack has no memory, ports or sockets left; close some connections",
        TcpError::DeviceError => "the network interface failed; see `log`",
    }
}

fn dns_text(error: DnsError) -> &'static str {
    match error {
        DnsError::BadName => "invalid name; names have letters, digits, `-` and `.`, at most 253 bytes",
        DnsError::NotFound => "unknown host, or it has no such address; check the spelling",
        DnsError::NoServer => "no name server is known; `ipconfig --dns ADDRESS` sets one, or give an address",
        DnsError::TimedOut => "the name servers timed out; `ipconfig` lists them, `ping` checks them",
        DnsError::ServerFailed => "the name server refused or failed; try again later",
        DnsError::Exhausted => "the network stack has no memory left for this; try again",
        DnsError::NotPermitted => {
            "the network rules do not let this program resolve names; see `cat /status/audit`, or give an address"
        }
    }
}

fn ip_text(error: IpError) -> &'static str {
    match error {
        IpError::NotPermitted => {
            "the network rules (see `cat /status/audit`) or the machine do not let this program do that"
        }
        IpError::NotFound => "no such interface, address or route; `ipconfig` and `route` show them",
        IpError::AlreadyExists => "it exists already",
        IpError::BadAddress => "invalid address or prefix length",
        IpError::NotSupported => {
            "this network stack cannot do that; where the host's network is used, change it on the host"
        }
        IpError::Unreachable => UNREACHABLE,
        IpError::TimedOut => "timed out",
        IpError::Exhausted => "the limit is reached; remove something first",
    }
}

/// Resolves a name, or parses an address. Returns at least one address.
///
/// # Errors
/// The name has no address, or there is no resolver.
pub fn resolve(namespace: &mut Namespace, name: &str, family: AddressFamily) -> Result<Vec<IpAddr>, NetError> {
    if let Ok(address) = address::parse_address(name) {
        let is_wanted = match family {
            AddressFamily::Any => true,
            AddressFamily::Version4 => address.is_ipv4(),
            AddressFamily::Version6 => address.is_ipv6(),
        };
        return if is_wanted { Ok(Vec::from([address])) } else { Err(DnsError::NotFound.into()) };
    }
    if name.is_empty() || name.len() > address::NAME_BYTES {
        return Err(DnsError::BadName.into());
    }
    let stack = namespace.open(DNS, dns::new_channel, |importer| match wait(importer, REQUEST_LIMIT)? {
        dns::ImpStart::Success { next } => Ok(next),
        dns::ImpStart::ChannelClosed(_) => Err(AccessError::ServerEnded),
    })?;
    match wait(stack.resolve(block(name)?, family), REQUEST_LIMIT)? {
        dns::ImpReadyAfterResolve::Resolved { addresses, .. } if !addresses.is_empty() => {
            Ok(addresses.iter().map(|address| address.ip()).collect())
        }
        dns::ImpReadyAfterResolve::Resolved { .. } => Err(DnsError::NotFound.into()),
        dns::ImpReadyAfterResolve::Failed { error, .. } => Err(error.into()),
        dns::ImpReadyAfterResolve::ChannelClosed(_) => Err(AccessError::ServerEnded.into()),
    }
}

/// Opens the network stack's `Tcp`.
///
/// # Errors
/// There is no stack, or the program may not use it.
pub fn open_tcp(namespace: &mut Namespace) -> Result<tcp::Imp<tcp::states::Ready>, NetError> {
    let opened = namespace.open(TCP, tcp::new_channel, |importer| match wait(importer, REQUEST_LIMIT)? {
        tcp::ImpStart::Success { next } => Ok(Ok(next)),
        tcp::ImpStart::Refused { error, .. } => Ok(Err(error)),
        tcp::ImpStart::ChannelClosed(_) => Err(AccessError::ServerEnded),
    })?;
    opened.map_err(NetError::Tcp)
}

/// Connects to the first of these addresses that accepts.
///
/// # Errors
/// None accepts; the error is that of the last one.
pub fn connect(
    namespace: &mut Namespace,
    addresses: &[IpAddr],
    port: u16,
    timeout_ms: u32,
) -> Result<Connection, NetError> {
    let mut stack = open_tcp(namespace)?;
    let mut last = NetError::Dns(DnsError::NotFound);
    for address in addresses {
        let remote = SocketAddress::new(*address, port);
        match wait(stack.connect(remote, timeout_ms), limit_beyond(timeout_ms))? {
            tcp::ImpReadyAfterConnect::Connected { connection, local, .. } => {
                return Ok(Connection { endpoint: Some(connection), local, remote });
            }
            tcp::ImpReadyAfterConnect::Failed { error, next } => {
                last = error.into();
                stack = next;
            }
            tcp::ImpReadyAfterConnect::ChannelClosed(_) => return Err(AccessError::ServerEnded.into()),
        }
    }
    Err(last)
}

/// Listens on a local address and port.
///
/// # Errors
/// The stack refuses to listen there.
pub fn listen(namespace: &mut Namespace, local: SocketAddress, backlog: u32) -> Result<Listener, NetError> {
    match wait(open_tcp(namespace)?.listen(local, backlog), REQUEST_LIMIT)? {
        tcp::ImpReadyAfterListen::Listening { listener, local, .. } => Ok(Listener { endpoint: Some(listener), local }),
        tcp::ImpReadyAfterListen::Failed { error, .. } => Err(error.into()),
        tcp::ImpReadyAfterListen::ChannelClosed(_) => Err(AccessError::ServerEnded.into()),
    }
}

/// A listener; dropping it ends listening.
pub struct Listener {
    endpoint: Option<tcp_listener::Imp<tcp_listener::states::Ready>>,
    /// Local address, with the port that the stack chose if port 0 was requested.
    pub local: SocketAddress,
}

impl Listener {
    /// Returns the endpoint.
    pub fn into_endpoint(self) -> Option<tcp_listener::Imp<tcp_listener::states::Ready>> {
        self.endpoint
    }

    /// Waits for the next connection.
    ///
    /// # Errors
    /// The stack failed or ended.
    pub fn accept(&mut self) -> Result<Connection, NetError> {
        let endpoint = self.endpoint.take().ok_or(AccessError::ServerEnded)?;
        match endpoint.accept().receive() {
            tcp_listener::ImpReadyAfterAccept::Accepted { connection, local, remote, next } => {
                self.endpoint = Some(next);
                Ok(Connection { endpoint: Some(connection), local, remote })
            }
            tcp_listener::ImpReadyAfterAccept::Failed { error, next } => {
                self.endpoint = Some(next);
                Err(error.into())
            }
            tcp_listener::ImpReadyAfterAccept::ChannelClosed(_) => Err(AccessError::ServerEnded.into()),
        }
    }
}

/// A connection. Dropping it aborts it, unless both ends have finished.
pub struct Connection {
    endpoint: Option<tcp_connection::Imp<tcp_connection::states::Ready>>,
    /// Local address.
    pub local: SocketAddress,
    /// Remote address.
    pub remote: SocketAddress,
}

/// Result of a read from a connection.
pub type Piece = (ExVec<u8>, usize);

impl Connection {
    /// Returns the endpoint.
    pub fn into_endpoint(self) -> Option<tcp_connection::Imp<tcp_connection::states::Ready>> {
        self.endpoint
    }

    fn take(&mut self) -> Result<tcp_connection::Imp<tcp_connection::states::Ready>, NetError> {
        self.endpoint.take().ok_or(NetError::Access(AccessError::ServerEnded))
    }

    /// Reads at most `most` bytes: a block and the number of bytes in it. `None` if the peer has finished.
    ///
    /// # Errors
    /// [`NetError::Silent`] if the timeout passed; the connection remains usable.
    pub fn read(&mut self, most: u32, timeout_ms: u32) -> Result<Option<Piece>, NetError> {
        match wait(self.take()?.read(most, timeout_ms), limit_beyond(timeout_ms))? {
            tcp_connection::ImpReadyAfterRead::Data { data, count, next } => {
                self.endpoint = Some(next);
                let count = (count as usize).min(data.len());
                Ok(Some((data, count)))
            }
            tcp_connection::ImpReadyAfterRead::NoData { next } => {
                self.endpoint = Some(next);
                Err(NetError::Silent)
            }
            tcp_connection::ImpReadyAfterRead::EndOfData { next } => {
                self.endpoint = Some(next);
                Ok(None)
            }
            tcp_connection::ImpReadyAfterRead::Failed { error, next } => {
                self.endpoint = Some(next);
                Err(error.into())
            }
            tcp_connection::ImpReadyAfterRead::ChannelClosed(_) => Err(AccessError::ServerEnded.into()),
        }
    }

    /// Sends the first `count` bytes of a block, and returns the block.
    ///
    /// # Errors
    /// Not all of them were sent; `timeout_ms` passed without progress, or the connection is broken.
    pub fn write_block(&mut self, data: ExVec<u8>, count: usize, timeout_ms: u32) -> Result<ExVec<u8>, NetError> {
        let count = u32::try_from(count.min(data.len())).unwrap_or(u32::MAX);
        match wait(self.take()?.write(data, 0, count, timeout_ms), limit_beyond(timeout_ms))? {
            tcp_connection::ImpReadyAfterWrite::Written { data, next } => {
                self.endpoint = Some(next);
                Ok(data)
            }
            tcp_connection::ImpReadyAfterWrite::WriteFailed { error, next, .. } => {
                self.endpoint = Some(next);
                Err(error.into())
            }
            tcp_connection::ImpReadyAfterWrite::ChannelClosed(_) => Err(AccessError::ServerEnded.into()),
        }
    }

    /// Sends bytes, which are copied into a block.
    ///
    /// # Errors
    /// As [`write_block`](Connection::write_block).
    pub fn write(&mut self, bytes: &[u8], timeout_ms: u32) -> Result<(), NetError> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.write_block(ExVec::from_slice(bytes)?, bytes.len(), timeout_ms).map(drop)
    }

    /// Closes the sending direction; data of the peer can still be read.
    ///
    /// # Errors
    /// The connection is broken.
    pub fn finish(&mut self) -> Result<(), NetError> {
        match wait(self.take()?.finish(), REQUEST_LIMIT)? {
            tcp_connection::ImpReadyAfterFinish::Done { next } => {
                self.endpoint = Some(next);
                Ok(())
            }
            tcp_connection::ImpReadyAfterFinish::Failed { error, next } => {
                self.endpoint = Some(next);
                Err(error.into())
            }
            tcp_connection::ImpReadyAfterFinish::ChannelClosed(_) => Err(AccessError::ServerEnded.into()),
        }
    }
}

/// Returns the remaining milliseconds until a deadline, at least 1, as contracts carry timeouts.
pub fn remaining_ms(deadline: Deadline) -> u32 {
    if deadline == Deadline::NEVER {
        return FOR_EVER;
    }
    let left_ms = deadline.as_ns().saturating_sub(sip::time::monotonic()) / 1_000_000;
    u32::try_from(left_ms).unwrap_or(FOR_EVER).clamp(1, FOR_EVER - 1)
}

/// Formats the speed of a link: `down`, `up`, `1 Gbit/s`, `100 Mbit/s`.
pub fn link_text(bits_per_s: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1_000_000_000, "Gbit/s"), (1_000_000, "Mbit/s"), (1_000, "kbit/s")];
    match bits_per_s {
        0 => "down".into(),
        u64::MAX => "up".into(),
        speed => {
            let unit = UNITS.iter().find(|(unit, _)| speed.is_multiple_of(*unit));
            unit.map_or_else(|| format!("{speed} bit/s"), |(unit, name)| format!("{} {name}", speed / unit))
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn errors_say_what_to_do() {
        assert_eq!(
            NetError::from(TcpError::ConnectionRefused).to_string(),
            "connection refused; check the port, and that the server runs"
        );
        assert!(NetError::from(AccessError::from(NameError::NotFound)).to_string().contains("no network stack"));
        assert!(NetError::from(DnsError::NoServer).to_string().contains("ipconfig --dns"));
        assert!(NetError::from(AddressError::BadPort).to_string().contains("65535"));
    }

    #[test]
    fn links_have_speeds() {
        assert_eq!(link_text(0), "down");
        assert_eq!(link_text(u64::MAX), "up");
        assert_eq!(link_text(10_000_000_000), "10 Gbit/s");
        assert_eq!(link_text(2_500_000_000), "2500 Mbit/s");
        assert_eq!(link_text(100_000_000), "100 Mbit/s");
        assert_eq!(link_text(300), "300 bit/s");
    }
}
