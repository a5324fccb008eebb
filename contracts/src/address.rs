//! Addresses in the records of contracts: conversions to and from [`IpAddr`], and [`SocketAddress`] as text.
//!
//! They are here because only the crate of a type can implement methods and traits for it. Records hold IPv6 addresses
//! only; IPv4 is mapped (RFC 4291, 2.5.5.2). Deliberately not here: parsing, which is in `network`.

use core::fmt;
use core::net::{IpAddr, Ipv6Addr};

use crate::{HostAddress, SocketAddress};

/// Returns an address in record form.
pub fn to_bytes(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

/// Returns the address in a record; an IPv4-mapped one as IPv4.
pub fn from_bytes(address: [u8; 16]) -> IpAddr {
    Ipv6Addr::from(address).to_canonical()
}

impl SocketAddress {
    /// The unspecified address and port.
    pub const ANY: SocketAddress = SocketAddress { address: [0; 16], port: 0, reserved: 0, scope: 0 };

    /// An address and a port.
    pub fn new(address: IpAddr, port: u16) -> SocketAddress {
        SocketAddress { address: to_bytes(address), port, ..SocketAddress::ANY }
    }

    /// The address without the port.
    pub fn ip(&self) -> IpAddr {
        from_bytes(self.address)
    }
}

/// `192.0.2.1:80`, `[2001:db8::1]:80`, `[fe80::1%2]:80`.
impl fmt::Display for SocketAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.ip(), self.scope) {
            (IpAddr::V4(address), _) => write!(formatter, "{address}:{}", self.port),
            (IpAddr::V6(address), 0) => write!(formatter, "[{address}]:{}", self.port),
            (IpAddr::V6(address), scope) => write!(formatter, "[{address}%{scope}]:{}", self.port),
        }
    }
}

impl HostAddress {
    /// The address.
    pub fn ip(&self) -> IpAddr {
        from_bytes(self.address)
    }
}

impl From<IpAddr> for HostAddress {
    fn from(address: IpAddr) -> HostAddress {
        HostAddress { address: to_bytes(address) }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn sockets_are_shown_as_they_are_written() {
        let shown = |text: &str, port| SocketAddress::new(text.parse().expect("an address"), port).to_string();
        assert_eq!(shown("192.0.2.1", 80), "192.0.2.1:80");
        assert_eq!(shown("2001:db8::1", 80), "[2001:db8::1]:80");
        let mut local = SocketAddress::new("fe80::1".parse().expect("an address"), 7);
        local.scope = 2;
        assert_eq!(local.to_string(), "[fe80::1%2]:7");
        assert_eq!(SocketAddress::ANY.to_string(), "[::]:0");
    }
}
