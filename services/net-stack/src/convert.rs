//! Conversion of addresses and errors between the contracts and the stack.

use alloc::format;
use alloc::string::String;
use core::net::IpAddr;

use contracts::SocketAddress;
use contracts::tcp::TcpError;
use net_stack::{End, Failure, IpAddress, IpCidr, Route};
use network::address;
use network::address::Network;

/// Converts an endpoint for a contract. `scope` is that of the interface.
pub fn to_contract(end: End) -> SocketAddress {
    let mut address = SocketAddress::new(IpAddr::from(end.address), end.port);
    if let IpAddress::Ipv6(own) = end.address
        && own.segments()[0] & 0xffc0 == 0xfe80
    {
        address.scope = INTERFACE;
    }
    address
}

/// Index of the only interface.
pub const INTERFACE: u32 = 1;

/// Converts a contract's address and port; `None` for the unspecified address.
pub fn from_contract(address: &SocketAddress) -> (Option<IpAddress>, u16) {
    let is_any = address::is_unspecified(address.address);
    ((!is_any).then(|| address.ip().into()), address.port)
}

/// Maps a failure to a contract error.
pub fn error(failure: Failure) -> TcpError {
    match failure {
        Failure::BadAddress | Failure::TooLong => TcpError::BadAddress,
        Failure::AddressInUse => TcpError::AddressInUse,
        Failure::Refused => TcpError::ConnectionRefused,
        Failure::Reset => TcpError::Reset,
        Failure::TimedOut => TcpError::TimedOut,
        Failure::Unreachable => TcpError::Unreachable,
        Failure::Closed => TcpError::Closed,
        Failure::Exhausted => TcpError::Exhausted,
    }
}

/// Parses a route: a network and its gateway.
pub fn route(text: &str) -> Result<Route, String> {
    let wrong = |why: &dyn core::fmt::Display| format!("route {text}: {why}");
    let (network, gateway) = text.split_once('=').ok_or_else(|| wrong(&"write NETWORK/BITS=GATEWAY"))?;
    let network = Network::parse(network).map_err(|error| wrong(&error))?.masked();
    let gateway = address::parse_address(gateway).map_err(|error| wrong(&error))?;
    if network.address.is_ipv4() != gateway.is_ipv4() {
        return Err(wrong(&"the network is of another version of IP than the gateway"));
    }
    let network = IpCidr::new(network.address.into(), network.prefix_bits);
    Ok(Route { network, gateway: gateway.into(), learnt: false, until_ns: None })
}

/// Returns the default route through a gateway.
pub fn default_route(gateway: IpAddr) -> Route {
    let network = match gateway {
        IpAddr::V4(_) => IpCidr::new(IpAddress::v4(0, 0, 0, 0), 0),
        IpAddr::V6(_) => IpCidr::new(IpAddress::v6(0, 0, 0, 0, 0, 0, 0, 0), 0),
    };
    Route { network, gateway: gateway.into(), learnt: false, until_ns: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_round_trip_through_contracts() {
        for text in ["192.0.2.7", "2001:db8::7", "fe80::7", "127.0.0.1", "::1"] {
            let end = End::new(text.parse::<IpAddress>().expect("an address"), 80);
            let carried = to_contract(end);
            assert_eq!(from_contract(&carried), (Some(end.address), 80), "{text}");
            assert_eq!(carried.scope, if text.starts_with("fe80") { INTERFACE } else { 0 }, "{text}");
        }
        assert_eq!(from_contract(&SocketAddress::ANY), (None, 0));
    }

    #[test]
    fn routes_are_parsed() {
        let found = route("198.51.100.77/24=192.0.2.1").expect("a route");
        assert_eq!(found.network, IpCidr::new(IpAddress::v4(198, 51, 100, 0), 24));
        assert_eq!((found.gateway, found.learnt), (IpAddress::v4(192, 0, 2, 1), false));
        let found = route("2001:db8::/32=fe80::1").expect("a route");
        assert_eq!(found.network.prefix_len(), 32);
        for wrong in ["", "192.0.2.0/24", "192.0.2.0/33=192.0.2.1", "192.0.2.0/24=fe80::1", "192.0.2.0/24=here"] {
            assert!(route(wrong).is_err_and(|why| why.starts_with("route ")), "{wrong}");
        }
    }

    #[test]
    fn a_default_route_covers_all_networks_of_its_version() {
        for (gateway, everywhere) in [("192.0.2.1", "0.0.0.0/0"), ("fe80::1", "::/0")] {
            let route = default_route(gateway.parse().expect("an address"));
            assert_eq!(route.network, everywhere.parse::<IpCidr>().expect("a network"));
        }
    }
}
