//! IPv6 on the link: neighbours, the own address of the link, and what routers tell (RFC 4861, 4862, 8106).
//!
//! Key type: [`Discovery`]. An address is *tried* before it is used: others are asked whether they have it. Addresses
//! come from the hardware address (of the link, and of each prefix that a router tells of) or from people. Who owns
//! what: the addresses in use are the output's; here is what is tried, and until when what was learnt is true.
//! Deliberately not here: the cache of neighbours, which is the same for both versions of IP.

pub(crate) mod messages;

use alloc::vec::Vec;

use smoltcp::wire::{EthernetAddress, IpAddress, IpCidr, Ipv6Address};

use crate::addresses::{Address, Origin};
use crate::output::{Buffer, Output};
use crate::packet::IpHeader;
use crate::routes::Route;

use messages::{Advertisement, Discovery as Message, Prefix};

/// How long others may take to say that they have an address (RFC 4861, 10: RETRANS_TIMER).
const TRIED_NS: u64 = 1_000_000_000;
/// Questions for routers, and between them.
const QUESTIONS: u8 = 3;
const BETWEEN_QUESTIONS_NS: u64 = 4_000_000_000;
/// How long to wait for a buffer.
const AGAIN_NS: u64 = 10_000_000;
/// Addresses that routers may bring about, and routers that may be known: others on the link could claim any number.
const MAX_LEARNT: usize = 3;
const MAX_ROUTERS: usize = 4;
/// Addresses that are tried at once.
const MAX_TRIED: usize = 8;
/// A message that is not authenticated does not make a time shorter than this (RFC 4862, 5.5.3).
const MIN_NS: u64 = 7200 * SECOND_NS;
const SECOND_NS: u64 = 1_000_000_000;
/// A time that is past and was noted.
const NOTED: u64 = 0;
/// Less than this no link of IPv6 carries.
const MIN_MTU: u32 = 1280;

/// An address that others are asked about.
struct Tried {
    address: Address,
    is_asked: bool,
    until_ns: u64,
}

/// An address that a router brought about.
#[derive(Clone, Copy)]
struct Learnt {
    address: Ipv6Address,
    valid_ns: u64,
    preferred_ns: u64,
}

/// What is to be done with the addresses in use.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Nobody else has it.
    Use(Address),
    /// Its time is over.
    Gone(IpAddress),
    /// Routers tell of these name servers.
    NameServers(Vec<IpAddress>),
}

/// IPv6 on the link.
#[derive(Default)]
pub(crate) struct Discovery {
    /// The interface makes its own addresses.
    is_on: bool,
    tried: Vec<Tried>,
    learnt: Vec<Learnt>,
    questions: u8,
    next_question_ns: u64,
}

/// The end of addresses that belongs to a hardware address (RFC 4291, appendix A).
fn own_end(hardware: EthernetAddress) -> [u8; 8] {
    let [a, b, c, d, e, f] = hardware.0;
    [a ^ 2, b, c, 0xff, 0xfe, d, e, f]
}

fn with_own_end(prefix: &Ipv6Address, hardware: EthernetAddress) -> Ipv6Address {
    let mut octets = prefix.octets();
    octets[8..].copy_from_slice(&own_end(hardware));
    Ipv6Address::from(octets)
}

/// The way to everywhere.
fn everywhere() -> IpCidr {
    IpCidr::new(IpAddress::Ipv6(Ipv6Address::UNSPECIFIED), 0)
}

impl Discovery {
    /// Lets the interface make its own addresses.
    pub(crate) fn start(&mut self, hardware: EthernetAddress) {
        self.is_on = true;
        let link = Ipv6Address::new(0xfe80, 0, 0, 0, 0, 0, 0, 0);
        let network = IpCidr::new(with_own_end(&link, hardware).into(), 64);
        self.try_out(Address { network, origin: Origin::Link });
        self.ask_again();
    }

    /// Forgets what it made and learnt; which addresses are to go is the caller's to know.
    pub(crate) fn stop(&mut self) {
        self.is_on = false;
        self.tried.retain(|tried| tried.address.origin == Origin::Set);
        self.learnt.clear();
    }

    pub(crate) fn is_on(&self) -> bool {
        self.is_on
    }

    /// Asks routers anew: the link may be another one.
    pub(crate) fn ask_again(&mut self) {
        (self.questions, self.next_question_ns) = (QUESTIONS, 0);
    }

    /// Asks whether somebody else has an address before it is used; false: there are too many of them.
    pub(crate) fn try_out(&mut self, address: Address) -> bool {
        if self.tried.len() >= MAX_TRIED {
            return false;
        }
        self.tried.push(Tried { address, is_asked: false, until_ns: 0 });
        true
    }

    /// Whether an address is being tried.
    pub(crate) fn is_tried(&self, address: &IpAddress) -> bool {
        self.tried.iter().any(|tried| tried.address.network.address() == *address)
    }

    /// Does not try an address any more; false: it was not tried.
    pub(crate) fn forget(&mut self, address: &IpAddress) -> bool {
        let before = self.tried.len();
        self.tried.retain(|tried| tried.address.network.address() != *address);
        self.learnt.retain(|learnt| IpAddress::Ipv6(learnt.address) != *address);
        self.tried.len() < before
    }

    /// Whether a packet to a group is for this machine.
    pub(crate) fn is_member<B: Buffer>(&self, output: &Output<B>, group: &Ipv6Address) -> bool {
        let tried = self.tried.iter().map(|tried| &tried.address);
        let mut all = output.addresses.all().iter().chain(tried);
        *group == messages::ALL_HOSTS
            || all.any(|own| match own.network.address() {
                IpAddress::Ipv6(own) => messages::group_of(&own) == *group,
                IpAddress::Ipv4(_) => false,
            })
    }

    /// Takes a message of neighbour discovery whose checksum is right.
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
                if source.is_unspecified() && self.is_tried(&target.into()) {
                    // Somebody else is about to take it: neither gets it.
                    self.collide(output, target);
                } else {
                    self.answer(output, source, target, hardware);
                }
            }
            Some(Message::Answered { target, .. }) if self.is_tried(&target.into()) => self.collide(output, target),
            Some(Message::Answered { target, hardware, is_asked_for, overrides }) => {
                if output.addresses.has(&target.into()) {
                    output.counters.duplicate_addresses += 1;
                } else if let Some(hardware) = hardware {
                    output.learn_answer(target, hardware, is_asked_for, overrides);
                }
            }
            Some(Message::Router(told)) if self.is_on => return self.listen(output, source, &told),
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
            // Who asks is about to talk to this machine, which then need not ask back.
            output.learn(source.into(), hardware, true);
        }
        messages::answer(output, target, Some(source));
    }

    /// Hears what a router tells.
    fn listen<B: Buffer>(&mut self, output: &mut Output<B>, router: Ipv6Address, told: &Advertisement) -> Vec<Change> {
        if let Some(hardware) = told.hardware
            && output.addresses.is_neighbour(&router.into())
        {
            output.learn(router.into(), hardware, true);
        }
        self.questions = 0;
        let now_ns = output.now_ns;
        let until_ns = now_ns + u64::from(told.router_s) * SECOND_NS;
        let route = Route { network: everywhere(), gateway: router.into(), learnt: true, until_ns: Some(until_ns) };
        let learnt = |route: &&Route| route.learnt && route.network == everywhere() && route.gateway != router.into();
        if told.router_s == 0 {
            output.routes.remove_learnt(&route);
        } else if output.routes.all().iter().filter(learnt).count() < MAX_ROUTERS {
            output.routes.add_learnt(route);
        }
        if let Some(mtu) = told.mtu.filter(|mtu| *mtu >= MIN_MTU) {
            output.mtu_6 = usize::try_from(mtu).ok().filter(|mtu| *mtu < output.mtu);
        }
        let mut changes = Vec::new();
        for prefix in told.prefixes.iter().filter(|prefix| prefix.is_for_hosts && prefix.bits == 64) {
            self.receive_prefix(output, prefix, now_ns, &mut changes);
        }
        if !told.name_servers.is_empty() {
            changes.push(Change::NameServers(told.name_servers.clone()));
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
        let address = with_own_end(&prefix.address, output.hardware);
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
            && !self.is_tried(&address.into())
        {
            // Without the flag all but the router itself are behind the router.
            let bits = if prefix.is_on_link { prefix.bits } else { 128 };
            let network = IpCidr::new(address.into(), bits);
            if self.try_out(Address { network, origin: Origin::Router }) {
                self.learnt.push(Learnt { address, valid_ns, preferred_ns });
            }
        }
        self.age(output, changes);
    }

    /// Looks at the times of what routers brought about.
    fn age<B: Buffer>(&mut self, output: &mut Output<B>, changes: &mut Vec<Change>) {
        let now_ns = output.now_ns;
        for learnt in &mut self.learnt {
            let is_old = learnt.preferred_ns <= now_ns;
            output.addresses.set_old(&learnt.address.into(), is_old);
            if is_old {
                learnt.preferred_ns = NOTED;
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

    /// Does what is due.
    pub(crate) fn serve<B: Buffer>(&mut self, output: &mut Output<B>) -> Vec<Change> {
        let mut changes = Vec::new();
        if self.next_time_ns(output).is_none_or(|time_ns| time_ns > output.now_ns) {
            return changes;
        }
        let now_ns = output.now_ns;
        self.age(output, &mut changes);
        output.routes.forget_old(now_ns);
        for tried in &mut self.tried {
            let IpAddress::Ipv6(target) = tried.address.network.address() else { continue };
            if tried.is_asked && tried.until_ns <= now_ns {
                changes.push(Change::Use(tried.address));
            } else if !tried.is_asked && output.has_room() {
                messages::ask(output, Ipv6Address::UNSPECIFIED, target);
                (tried.is_asked, tried.until_ns) = (true, now_ns + TRIED_NS);
            }
        }
        self.tried.retain(|tried| !tried.is_asked || tried.until_ns > now_ns);
        if let Some(own) = self.asks_routers_from(output)
            && self.next_question_ns <= now_ns
            && output.has_room()
        {
            messages::ask_routers(output, own);
            self.questions -= 1;
            self.next_question_ns = now_ns + BETWEEN_QUESTIONS_NS;
        }
        changes
    }

    /// Where routers are asked from, as long as they are to be asked.
    fn asks_routers_from<B: Buffer>(&self, output: &Output<B>) -> Option<Ipv6Address> {
        if !self.is_on || self.questions == 0 {
            return None;
        }
        let own = output.addresses.all().iter().find(|own| own.origin == Origin::Link)?;
        match own.network.address() {
            IpAddress::Ipv6(own) => Some(own),
            IpAddress::Ipv4(_) => None,
        }
    }

    /// When [`Discovery::serve`] has something to do.
    pub(crate) fn next_time_ns<B: Buffer>(&self, output: &Output<B>) -> Option<u64> {
        let soon_ns = |time_ns: u64| if output.has_room() { time_ns } else { time_ns.max(output.now_ns + AGAIN_NS) };
        let tried = self.tried.iter().map(|tried| if tried.is_asked { tried.until_ns } else { soon_ns(0) });
        let question = self.asks_routers_from(output).map(|_| soon_ns(self.next_question_ns));
        let learnt = self.learnt.iter().flat_map(|learnt| {
            let preferred = Some(learnt.preferred_ns).filter(|time_ns| *time_ns != NOTED);
            [Some(learnt.valid_ns), preferred]
        });
        let routes = output.routes.next_time_ns();
        tried.chain(question).chain(learnt.flatten()).chain(routes).filter(|time_ns| *time_ns < u64::MAX).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_end_is_that_of_rfc_4291() {
        let end = own_end(EthernetAddress([0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde]));
        assert_eq!(end, [0x36, 0x56, 0x78, 0xff, 0xfe, 0x9a, 0xbc, 0xde]);
    }
}
