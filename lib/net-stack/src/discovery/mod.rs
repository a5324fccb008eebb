//! IPv6 neighbour discovery and stateless autoconfiguration (RFC 4861, 4862, 8106).
//!
//! Key type: [`Discovery`]. An address is *tentative* until duplicate address detection has passed. Addresses are
//! derived from the hardware address (link-local, and one per advertised prefix) or configured statically. Ownership:
//! the output owns the addresses in use; this owns tentative addresses and the lifetimes of learnt state. Deliberately
//! not here: the neighbour cache, which both versions of IP share.

pub(crate) mod messages;

use alloc::vec::Vec;

use smoltcp::wire::{EthernetAddress, IpAddress, IpCidr, Ipv6Address};

use crate::addresses::{Address, Origin};
use crate::output::{Buffer, Output};
use crate::packet::IpHeader;
use crate::routes::Route;

use messages::{Advertisement, Discovery as Message, Prefix};

/// Time for other hosts to object to a tentative address, in nanoseconds (RFC 4861, 10: RETRANS_TIMER).
const DAD_TIMEOUT_NS: u64 = 1_000_000_000;
/// Router solicitations sent, and the interval between them.
const MAX_SOLICITATIONS: u8 = 3;
const SOLICITATION_INTERVAL_NS: u64 = 4_000_000_000;
/// Retry interval when no buffer is free, in nanoseconds.
const RETRY_NS: u64 = 10_000_000;
/// Maximum addresses formed from advertisements, and maximum known routers: hosts on the link could advertise any
/// number.
const MAX_LEARNT: usize = 3;
const MAX_ROUTERS: usize = 4;
/// Maximum tentative addresses.
const MAX_TENTATIVE: usize = 8;
/// Unauthenticated messages cannot lower a lifetime below this, in nanoseconds (RFC 4862, 5.5.3).
const MIN_NS: u64 = 7200 * SECOND_NS;
const SECOND_NS: u64 = 1_000_000_000;
/// Marks an expiry that has already been processed.
const DEPRECATED: u64 = 0;
/// Minimum MTU of an IPv6 link.
const MIN_MTU: u32 = 1280;

/// A tentative address.
struct Tentative {
    address: Address,
    is_probed: bool,
    until_ns: u64,
}

/// An address formed from an advertisement.
#[derive(Clone, Copy)]
struct Learnt {
    address: Ipv6Address,
    valid_ns: u64,
    preferred_ns: u64,
}

/// Change to the set of addresses in use.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// No duplicate was found: use it.
    Use(Address),
    /// Its lifetime is over.
    Gone(IpAddress),
    /// The name servers that routers advertise.
    NameServers(Vec<IpAddress>),
}

/// IPv6 state of the link.
#[derive(Default)]
pub(crate) struct Discovery {
    /// Whether autoconfiguration is enabled.
    is_on: bool,
    tentative: Vec<Tentative>,
    learnt: Vec<Learnt>,
    solicitations: u8,
    next_solicitation_ns: u64,
}

/// Returns the modified EUI-64 interface identifier (RFC 4291, appendix A).
fn interface_id(hardware: EthernetAddress) -> [u8; 8] {
    let [a, b, c, d, e, f] = hardware.0;
    [a ^ 2, b, c, 0xff, 0xfe, d, e, f]
}

fn with_interface_id(prefix: &Ipv6Address, hardware: EthernetAddress) -> Ipv6Address {
    let mut octets = prefix.octets();
    octets[8..].copy_from_slice(&interface_id(hardware));
    Ipv6Address::from(octets)
}

/// The default route.
fn default_route() -> IpCidr {
    IpCidr::new(IpAddress::Ipv6(Ipv6Address::UNSPECIFIED), 0)
}

impl Discovery {
    /// Enables autoconfiguration.
    pub(crate) fn start(&mut self, hardware: EthernetAddress) {
        self.is_on = true;
        let link = Ipv6Address::new(0xfe80, 0, 0, 0, 0, 0, 0, 0);
        let network = IpCidr::new(with_interface_id(&link, hardware).into(), 64);
        self.detect_duplicates(Address { network, origin: Origin::Link });
        self.ask_again();
    }

    /// Drops tentative and learnt addresses; the caller removes the corresponding addresses in use.
    pub(crate) fn stop(&mut self) {
        self.is_on = false;
        self.tentative.retain(|tentative| tentative.address.origin == Origin::Set);
        self.learnt.clear();
    }

    pub(crate) fn is_on(&self) -> bool {
        self.is_on
    }

    /// Solicits routers again: it may be another link.
    pub(crate) fn ask_again(&mut self) {
        (self.solicitations, self.next_solicitation_ns) = (MAX_SOLICITATIONS, 0);
    }

    /// Starts duplicate address detection; returns `false` if there are too many tentative addresses.
    pub(crate) fn detect_duplicates(&mut self, address: Address) -> bool {
        if self.tentative.len() >= MAX_TENTATIVE {
            return false;
        }
        self.tentative.push(Tentative { address, is_probed: false, until_ns: 0 });
        true
    }

    /// Returns whether an address is tentative.
    pub(crate) fn is_tentative(&self, address: &IpAddress) -> bool {
        self.tentative.iter().any(|tentative| tentative.address.network.address() == *address)
    }

    /// Ends duplicate address detection of an address; returns `false` if it was not tentative.
    pub(crate) fn forget(&mut self, address: &IpAddress) -> bool {
        let before = self.tentative.len();
        self.tentative.retain(|tentative| tentative.address.network.address() != *address);
        self.learnt.retain(|learnt| IpAddress::Ipv6(learnt.address) != *address);
        self.tentative.len() < before
    }

    /// Returns whether the interface is a member of a multicast group.
    pub(crate) fn is_member<B: Buffer>(&self, output: &Output<B>, group: &Ipv6Address) -> bool {
        let tentative = self.tentative.iter().map(|tentative| &tentative.address);
        let mut all = output.addresses.all().iter().chain(tentative);
        *group == messages::ALL_HOSTS
            || all.any(|own| match own.network.address() {
                IpAddress::Ipv6(own) => messages::group_of(&own) == *group,
                IpAddress::Ipv4(_) => false,
            })
    }

    /// Processes a neighbour discovery message whose checksum is right.
    pub(crate) fn receive<B: Buffer>(
        &mut self,
        output: &mut Output<B>,
        header: &IpHeader,
        message: &[u8],
    ) -> Vec<Change> {
        let IpAddress::Ipv6(source) = header.source else { return Vec::new() };
        match messages::read(header, message) {
            None => output.counters.dropped += 1,
            Some(Message::Asked { target, hardware }) => {
                if source.is_unspecified() && self.is_tentative(&target.into()) {
                    // Another host is probing the same address: neither gets it.
                    self.collide(output, target);
                } else {
                    self.answer(output, source, target, hardware);
                }
            }
            Some(Message::Answered { target, .. }) if self.is_tentative(&target.into()) => self.collide(output, target),
            Some(Message::Answered { target, hardware, is_asked_for, overrides }) => {
                if output.addresses.has(&target.into()) {
                    output.counters.duplicate_addresses += 1;
                } else if let Some(hardware) = hardware {
                    output.learn_answer(target, hardware, is_asked_for, overrides);
                }
            }
            Some(Message::Router(advertisement)) if self.is_on => return self.listen(output, source, &advertisement),
            Some(Message::Router(_)) => {}
        }
        Vec::new()
    }

    fn collide<B: Buffer>(&mut self, output: &mut Output<B>, target: Ipv6Address) {
        self.forget(&target.into());
        output.counters.duplicate_addresses += 1;
    }

    fn answer<B: Buffer>(
        &self,
        output: &mut Output<B>,
        source: Ipv6Address,
        target: Ipv6Address,
        hardware: Option<EthernetAddress>,
    ) {
        if !output.addresses.has(&target.into()) {
            return;
        }
        if source.is_unspecified() {
            messages::answer(output, target, None);
            return;
        }
        if !output.addresses.is_neighbour(&source.into()) {
            return;
        }
        if let Some(hardware) = hardware {
            // The solicitor is about to send to this machine, which then need not solicit it.
            output.learn(source.into(), hardware, true);
        }
        messages::answer(output, target, Some(source));
    }

    /// Processes a router advertisement.
    fn listen<B: Buffer>(
        &mut self,
        output: &mut Output<B>,
        router: Ipv6Address,
        advertisement: &Advertisement,
    ) -> Vec<Change> {
        if let Some(hardware) = advertisement.hardware
            && output.addresses.is_neighbour(&router.into())
        {
            output.learn(router.into(), hardware, true);
        }
        self.solicitations = 0;
        let now_ns = output.now_ns;
        let until_ns = now_ns + u64::from(advertisement.router_s) * SECOND_NS;
        let route = Route { network: default_route(), gateway: router.into(), learnt: true, until_ns: Some(until_ns) };
        let learnt =
            |route: &&Route| route.learnt && route.network == default_route() && route.gateway != router.into();
        if advertisement.router_s == 0 {
            output.routes.remove_learnt(&route);
        } else if output.routes.all().iter().filter(learnt).count() < MAX_ROUTERS {
            output.routes.add_learnt(route);
        }
        if let Some(mtu) = advertisement.mtu.filter(|mtu| *mtu >= MIN_MTU) {
            output.mtu_6 = usize::try_from(mtu).ok().filter(|mtu| *mtu < output.mtu);
        }
        let mut changes = Vec::new();
        for prefix in advertisement.prefixes.iter().filter(|prefix| prefix.is_for_hosts && prefix.bits == 64) {
            self.receive_prefix(output, prefix, now_ns, &mut changes);
        }
        if !advertisement.name_servers.is_empty() {
            changes.push(Change::NameServers(advertisement.name_servers.clone()));
        }
        changes
    }

    fn receive_prefix<B: Buffer>(
        &mut self,
        output: &mut Output<B>,
        prefix: &Prefix,
        now_ns: u64,
        changes: &mut Vec<Change>,
    ) {
        if prefix.preferred_s > prefix.valid_s
            || messages::is_link_local(&prefix.address)
            || prefix.address.is_multicast()
            || prefix.address.is_unspecified()
        {
            return;
        }
        let address = with_interface_id(&prefix.address, output.hardware);
        let ends = |seconds: u32| match seconds {
            u32::MAX => u64::MAX,
            seconds => now_ns.saturating_add(u64::from(seconds) * SECOND_NS),
        };
        let (valid_ns, preferred_ns) = (ends(prefix.valid_s), ends(prefix.preferred_s));
        if let Some(known) = self.learnt.iter_mut().find(|known| known.address == address) {
            let min_ns = now_ns + MIN_NS;
            known.preferred_ns = preferred_ns;
            known.valid_ns =
                if valid_ns > min_ns || valid_ns > known.valid_ns { valid_ns } else { known.valid_ns.min(min_ns) };
        } else if prefix.valid_s > 0
            && self.learnt.len() < MAX_LEARNT
            && !output.addresses.has(&address.into())
            && !self.is_tentative(&address.into())
        {
            // Without the on-link flag everything but the router itself is behind the router.
            let bits = if prefix.is_on_link { prefix.bits } else { 128 };
            let network = IpCidr::new(address.into(), bits);
            if self.detect_duplicates(Address { network, origin: Origin::Router }) {
                self.learnt.push(Learnt { address, valid_ns, preferred_ns });
            }
        }
        self.age(output, changes);
    }

    /// Expires state learnt from routers.
    fn age<B: Buffer>(&mut self, output: &mut Output<B>, changes: &mut Vec<Change>) {
        let now_ns = output.now_ns;
        for learnt in &mut self.learnt {
            let is_old = learnt.preferred_ns <= now_ns;
            output.addresses.set_old(&learnt.address.into(), is_old);
            if is_old {
                learnt.preferred_ns = DEPRECATED;
            }
        }
        let over: Vec<Ipv6Address> =
            self.learnt.iter().filter(|learnt| learnt.valid_ns <= now_ns).map(|learnt| learnt.address).collect();
        for address in over {
            if !self.forget(&address.into()) {
                changes.push(Change::Gone(address.into()));
            }
        }
    }

    /// Runs expired timers.
    pub(crate) fn serve<B: Buffer>(&mut self, output: &mut Output<B>) -> Vec<Change> {
        let mut changes = Vec::new();
        if self.next_time_ns(output).is_none_or(|time_ns| time_ns > output.now_ns) {
            return changes;
        }
        let now_ns = output.now_ns;
        self.age(output, &mut changes);
        output.routes.forget_old(now_ns);
        for tentative in &mut self.tentative {
            let IpAddress::Ipv6(target) = tentative.address.network.address() else { continue };
            if tentative.is_probed && tentative.until_ns <= now_ns {
                changes.push(Change::Use(tentative.address));
            } else if !tentative.is_probed && output.has_room() {
                messages::ask(output, Ipv6Address::UNSPECIFIED, target);
                (tentative.is_probed, tentative.until_ns) = (true, now_ns + DAD_TIMEOUT_NS);
            }
        }
        self.tentative.retain(|tentative| !tentative.is_probed || tentative.until_ns > now_ns);
        if let Some(own) = self.solicits_routers_from(output)
            && self.next_solicitation_ns <= now_ns
            && output.has_room()
        {
            messages::ask_routers(output, own);
            self.solicitations -= 1;
            self.next_solicitation_ns = now_ns + SOLICITATION_INTERVAL_NS;
        }
        changes
    }

    /// Returns the source for router solicitations, while any are to be sent.
    fn solicits_routers_from<B: Buffer>(&self, output: &Output<B>) -> Option<Ipv6Address> {
        if !self.is_on || self.solicitations == 0 {
            return None;
        }
        let own = output.addresses.all().iter().find(|own| own.origin == Origin::Link)?;
        match own.network.address() {
            IpAddress::Ipv6(own) => Some(own),
            IpAddress::Ipv4(_) => None,
        }
    }

    /// Returns when [`Discovery::serve`] is next due.
    pub(crate) fn next_time_ns<B: Buffer>(&self, output: &Output<B>) -> Option<u64> {
        let soon_ns = |time_ns: u64| if output.has_room() { time_ns } else { time_ns.max(output.now_ns + RETRY_NS) };
        let tentative =
            self.tentative.iter().map(|tentative| if tentative.is_probed { tentative.until_ns } else { soon_ns(0) });
        let solicitation = self.solicits_routers_from(output).map(|_| soon_ns(self.next_solicitation_ns));
        let learnt = self.learnt.iter().flat_map(|learnt| {
            let preferred = Some(learnt.preferred_ns).filter(|time_ns| *time_ns != DEPRECATED);
            [Some(learnt.valid_ns), preferred]
        });
        let routes = output.routes.next_time_ns();
        tentative.chain(solicitation).chain(learnt.flatten()).chain(routes).filter(|time_ns| *time_ns < u64::MAX).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interface_id_is_that_of_rfc_4291() {
        let end = interface_id(EthernetAddress([0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde]));
        assert_eq!(end, [0x36, 0x56, 0x78, 0xff, 0xfe, 0x9a, 0xbc, 0xde]);
    }
}
