//! The interface's own addresses, and which of them a packet is sent from.

use alloc::vec::Vec;

use smoltcp::wire::{IpAddress, IpCidr, Ipv4Address, Ipv6Address};

/// Where an address comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Somebody set it.
    Set,
    /// A DHCP server lent it.
    Dhcp,
    /// The interface made it for its link, of its hardware address.
    Link,
    /// The interface made it of what a router tells, and of its hardware address.
    Router,
}

/// One of the interface's own addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// The address and its network.
    pub network: IpCidr,
    /// Where it comes from.
    pub origin: Origin,
}

/// Most addresses of the interface.
pub(crate) const MOST: usize = 6;

/// The addresses.
#[derive(Default)]
pub(crate) struct Addresses {
    table: Vec<Address>,
    /// Those in the table that nothing new is to be sent from.
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

    /// Notes whether an address is one that nothing new is to be sent from.
    pub(crate) fn set_old(&mut self, address: &IpAddress, is_old: bool) {
        self.old.retain(|old| old != address);
        if is_old && self.has(address) {
            self.old.push(*address);
        }
    }

    /// Whether an address is one of the interface's.
    pub(crate) fn has(&self, address: &IpAddress) -> bool {
        self.table.iter().any(|own| own.network.address() == *address)
    }

    /// Whether what is sent to an address stays in this machine.
    pub(crate) fn is_here(&self, address: &IpAddress) -> bool {
        is_loopback(address) || self.has(address)
    }

    /// Whether an address is on the link.
    pub(crate) fn is_neighbour(&self, address: &IpAddress) -> bool {
        self.table.iter().any(|own| own.network.contains_addr(address))
    }

    /// Whether all hosts on the link are meant.
    pub(crate) fn is_broadcast(&self, address: &IpAddress) -> bool {
        let IpAddress::Ipv4(address) = address else { return false };
        let of = |own: &Address| match own.network {
            IpCidr::Ipv4(network) => network.broadcast(),
            IpCidr::Ipv6(_) => None,
        };
        address.is_broadcast() || self.table.iter().filter_map(of).any(|broadcast| broadcast == *address)
    }

    /// The address that a packet to there is sent from; none where there is none of that version.
    pub(crate) fn source_for(&self, destination: &IpAddress) -> Option<IpAddress> {
        if self.is_here(destination) {
            return Some(*destination);
        }
        let same_version = |own: &&Address| own.network.address().version() == destination.version();
        let is_of_link = |own: &Address| is_link_local(&own.network.address());
        let stays_on_link = is_link_local(destination) || is_group_of_link(destination);
        let candidates = self.table.iter().filter(same_version).filter(|own| stays_on_link || !is_of_link(own));
        // The first of those that rank highest (RFC 6724, 5).
        let rank = |own: &Address| {
            let is_old = self.old.contains(&own.network.address());
            (own.network.contains_addr(destination), is_of_link(own) == stays_on_link, !is_old)
        };
        let better = |best: &'_ Address, own: &'_ Address| rank(own) > rank(best);
        let chosen = candidates.reduce(|best, own| if better(best, own) { own } else { best });
        chosen.map(|own| own.network.address())
    }
}

/// Whether this is how a machine calls itself.
pub(crate) fn is_loopback(address: &IpAddress) -> bool {
    match address {
        IpAddress::Ipv4(address) => address.is_loopback(),
        IpAddress::Ipv6(address) => address.is_loopback(),
    }
}

/// Whether an address has a meaning on its link alone.
pub(crate) fn is_link_local(address: &IpAddress) -> bool {
    match address {
        IpAddress::Ipv4(address) => address.is_link_local(),
        IpAddress::Ipv6(address) => address.segments()[0] & 0xffc0 == 0xfe80,
    }
}

/// Whether an address is that of a group of hosts on the link.
fn is_group_of_link(address: &IpAddress) -> bool {
    matches!(address, IpAddress::Ipv6(address) if address.segments()[0] == 0xff02)
}

/// Whether an address is one host's.
pub(crate) fn is_one_host(address: &IpAddress) -> bool {
    match address {
        IpAddress::Ipv4(address) => {
            !address.is_broadcast() && !address.is_multicast() && *address != Ipv4Address::UNSPECIFIED
        }
        IpAddress::Ipv6(address) => !address.is_multicast() && *address != Ipv6Address::UNSPECIFIED,
    }
}

/// Whether an address stands for its whole network, or for all hosts of it. Where there are only two, each is one host's
/// (RFC 3021).
pub(crate) fn is_whole_network(network: &IpCidr) -> bool {
    let IpCidr::Ipv4(own) = network else { return false };
    let address = own.address();
    own.prefix_len() < 31 && (address == own.network().address() || Some(address) == own.broadcast())
}
