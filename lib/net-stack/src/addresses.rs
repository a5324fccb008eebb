//! The interface's own addresses, and source address selection.

use alloc::vec::Vec;

use smoltcp::wire::{IpAddress, IpCidr, Ipv4Address, Ipv6Address};

/// Origin of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Statically.
    Set,
    /// Leased from a DHCP server.
    Dhcp,
    /// Link-local, derived from the hardware address.
    Link,
    /// Autoconfigured from a router advertisement and the hardware address (SLAAC).
    Router,
}

/// One of the interface's own addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// The address and its network.
    pub network: IpCidr,
    /// Origin of the address.
    pub origin: Origin,
}

/// Maximum number of addresses of the interface.
pub(crate) const MAX_ADDRESSES: usize = 6;

/// The interface's address table.
#[derive(Default)]
pub(crate) struct Addresses {
    table: Vec<Address>,
    /// Deprecated addresses: not used as the source of new traffic.
    old: Vec<IpAddress>,
}

impl Addresses {
    pub(crate) fn all(&self) -> &[Address] {
        &self.table
    }

    pub(crate) fn push(&mut self, address: Address) {
        self.table.push(address);
    }

    pub(crate) fn retain(&mut self, keep: impl FnMut(&Address) -> bool) {
        self.table.retain(keep);
        let table = &self.table;
        self.old.retain(|old| table.iter().any(|own| own.network.address() == *old));
    }

    /// Marks an address as deprecated, or clears the mark.
    pub(crate) fn set_old(&mut self, address: &IpAddress, is_old: bool) {
        self.old.retain(|old| old != address);
        if is_old && self.has(address) {
            self.old.push(*address);
        }
    }

    /// Returns whether an address is assigned to the interface.
    pub(crate) fn has(&self, address: &IpAddress) -> bool {
        self.table.iter().any(|own| own.network.address() == *address)
    }

    /// Returns whether traffic to an address stays on this machine.
    pub(crate) fn is_local(&self, address: &IpAddress) -> bool {
        is_loopback(address) || self.has(address)
    }

    /// Returns whether an address is on-link.
    pub(crate) fn is_neighbour(&self, address: &IpAddress) -> bool {
        self.table.iter().any(|own| own.network.contains_addr(address))
    }

    /// Returns whether an address is a broadcast address.
    pub(crate) fn is_broadcast(&self, address: &IpAddress) -> bool {
        let IpAddress::Ipv4(address) = address else { return false };
        let of = |own: &Address| match own.network {
            IpCidr::Ipv4(network) => network.broadcast(),
            IpCidr::Ipv6(_) => None,
        };
        address.is_broadcast() || self.table.iter().filter_map(of).any(|broadcast| broadcast == *address)
    }

    /// Selects the source address for a destination; `None` if there is no address of that IP version.
    pub(crate) fn source_for(&self, destination: &IpAddress) -> Option<IpAddress> {
        if self.is_local(destination) {
            return Some(*destination);
        }
        let same_version = |own: &&Address| own.network.address().version() == destination.version();
        let is_of_link = |own: &Address| is_link_local(&own.network.address());
        let stays_on_link = is_link_local(destination) || is_group_of_link(destination);
        let candidates = self.table.iter().filter(same_version).filter(|own| stays_on_link || !is_of_link(own));
        // The first of the highest-ranked ones (RFC 6724, 5).
        let rank = |own: &Address| {
            let is_old = self.old.contains(&own.network.address());
            (own.network.contains_addr(destination), is_of_link(own) == stays_on_link, !is_old)
        };
        let better = |best: &'_ Address, own: &'_ Address| rank(own) > rank(best);
        let chosen = candidates.reduce(|best, own| if better(best, own) { own } else { best });
        chosen.map(|own| own.network.address())
    }
}

/// Returns whether this is a loopback address.
pub(crate) fn is_loopback(address: &IpAddress) -> bool {
    match address {
        IpAddress::Ipv4(address) => address.is_loopback(),
        IpAddress::Ipv6(address) => address.is_loopback(),
    }
}

/// Returns whether an address has link-local scope.
pub(crate) fn is_link_local(address: &IpAddress) -> bool {
    match address {
        IpAddress::Ipv4(address) => address.is_link_local(),
        IpAddress::Ipv6(address) => address.segments()[0] & 0xffc0 == 0xfe80,
    }
}

/// Returns whether an address is a link-local multicast group.
fn is_group_of_link(address: &IpAddress) -> bool {
    matches!(address, IpAddress::Ipv6(address) if address.segments()[0] == 0xff02)
}

/// Returns whether an address is unicast.
pub(crate) fn is_one_host(address: &IpAddress) -> bool {
    match address {
        IpAddress::Ipv4(address) => {
            !address.is_broadcast() && !address.is_multicast() && *address != Ipv4Address::UNSPECIFIED
        }
        IpAddress::Ipv6(address) => !address.is_multicast() && *address != Ipv6Address::UNSPECIFIED,
    }
}

/// Returns whether an address is the network or broadcast address of its network. Both addresses of a /31 are hosts
/// (RFC 3021).
pub(crate) fn is_whole_network(network: &IpCidr) -> bool {
    let IpCidr::Ipv4(own) = network else { return false };
    let address = own.address();
    own.prefix_len() < 31 && (address == own.network().address() || Some(address) == own.broadcast())
}
