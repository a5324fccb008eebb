//! Wire format of neighbour discovery messages (RFC 4861, 4).
//!
//! Deliberately not here: processing of the messages.

use alloc::vec::Vec;

use smoltcp::wire::{EthernetAddress, IpAddress, Ipv6Address};

use crate::icmp::Message;
use crate::output::{Buffer, Output};
use crate::packet::IpHeader;

/// Hop limit of a packet that no router has forwarded: only neighbours can send these messages.
pub(super) const HOP_LIMIT: u8 = 255;
/// The all-nodes and all-routers groups.
pub(super) const ALL_HOSTS: Ipv6Address = Ipv6Address::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
const ALL_ROUTERS: Ipv6Address = Ipv6Address::new(0xff02, 0, 0, 0, 0, 0, 0, 2);
/// Maximum prefixes processed per advertisement, and name servers.
const MAX_PREFIXES: usize = 8;
const MAX_NAME_SERVERS: usize = 4;

const ROUTER_SOLICITATION: u8 = 133;
const ROUTER_ADVERTISEMENT: u8 = 134;
const NEIGHBOUR_SOLICITATION: u8 = 135;
const NEIGHBOUR_ADVERTISEMENT: u8 = 136;

const SOURCE_HARDWARE: u8 = 1;
const TARGET_HARDWARE: u8 = 2;
const PREFIX: u8 = 3;
const MTU: u8 = 5;
const NAME_SERVERS: u8 = 25;

/// Returns the solicited-node multicast address.
pub(crate) fn group_of(address: &Ipv6Address) -> Ipv6Address {
    let [.., a, b, c] = address.octets();
    Ipv6Address::new(0xff02, 0, 0, 0, 0, 1, 0xff00 | u16::from(a), u16::from(b) << 8 | u16::from(c))
}

/// A prefix information option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Prefix {
    pub(super) address: Ipv6Address,
    pub(super) bits: u8,
    pub(super) is_on_link: bool,
    /// Autonomous flag: hosts may form addresses from it.
    pub(super) is_for_hosts: bool,
    pub(super) valid_s: u32,
    pub(super) preferred_s: u32,
}

/// A router advertisement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Advertisement {
    /// Router lifetime in seconds; 0: not a default router.
    pub(super) router_s: u16,
    pub(super) hardware: Option<EthernetAddress>,
    pub(super) mtu: Option<u32>,
    pub(super) prefixes: Vec<Prefix>,
    pub(super) name_servers: Vec<IpAddress>,
}

/// A neighbour discovery message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Discovery {
    Router(Advertisement),
    /// Neighbour solicitation.
    Asked {
        target: Ipv6Address,
        hardware: Option<EthernetAddress>,
    },
    /// Neighbour advertisement.
    Answered {
        target: Ipv6Address,
        hardware: Option<EthernetAddress>,
        is_asked_for: bool,
        overrides: bool,
    },
}

/// Returns whether an ICMPv6 type is a neighbour discovery message.
pub(crate) fn is_one(kind: u8) -> bool {
    // Includes redirects (137), which are ignored: there is usually one router, and redirects can be forged.
    (ROUTER_SOLICITATION..=137).contains(&kind)
}

fn address_at(message: &[u8], at: usize) -> Option<Ipv6Address> {
    let bytes: [u8; 16] = message.get(at..at + 16)?.try_into().ok()?;
    Some(Ipv6Address::from(bytes))
}

fn number_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
    Some(u32::from_be_bytes(bytes))
}

/// Returns the options, each with its two header bytes; `None` if they are malformed.
fn options(mut rest: &[u8]) -> Option<Vec<(u8, &[u8])>> {
    let mut found = Vec::new();
    while !rest.is_empty() {
        let bytes = 8 * usize::from(*rest.get(1)?);
        let (option, after) = rest.split_at_checked(bytes).filter(|_| bytes > 0)?;
        found.push((option[0], option));
        rest = after;
    }
    Some(found)
}

fn hardware(options: &[(u8, &[u8])], kind: u8) -> Option<EthernetAddress> {
    let (_, option) = options.iter().find(|(other, option)| *other == kind && option.len() == 8)?;
    let address = EthernetAddress::from_bytes(&option[2..8]);
    address.is_unicast().then_some(address)
}

/// Parses a message whose checksum is right; `None` if it is malformed, meant for routers, or was forwarded.
pub(super) fn read(header: &IpHeader, message: &[u8]) -> Option<Discovery> {
    let IpAddress::Ipv6(source) = header.source else { return None };
    if header.hop_limit != HOP_LIMIT || *message.get(1)? != 0 {
        return None;
    }
    match *message.first()? {
        ROUTER_ADVERTISEMENT if is_link_local(&source) => read_router(message).map(Discovery::Router),
        NEIGHBOUR_SOLICITATION => {
            let options = options(message.get(24..)?)?;
            let target = address_at(message, 8).filter(|target| !target.is_multicast())?;
            let hardware = hardware(&options, SOURCE_HARDWARE);
            // A host without an address yet solicits the group, and cannot be answered at its hardware address.
            let IpAddress::Ipv6(destination) = header.destination else { return None };
            if source.is_unspecified() && (hardware.is_some() || destination != group_of(&target)) {
                return None;
            }
            Some(Discovery::Asked { target, hardware })
        }
        NEIGHBOUR_ADVERTISEMENT => {
            let options = options(message.get(24..)?)?;
            let target = address_at(message, 8).filter(|target| !target.is_multicast())?;
            let flags = message[4];
            let is_asked_for = flags & 0x40 != 0;
            if is_asked_for && header.destination.is_multicast() {
                return None;
            }
            let hardware = hardware(&options, TARGET_HARDWARE);
            Some(Discovery::Answered { target, hardware, is_asked_for, overrides: flags & 0x20 != 0 })
        }
        _ => None,
    }
}

pub(super) fn is_link_local(address: &Ipv6Address) -> bool {
    address.segments()[0] & 0xffc0 == 0xfe80
}

fn read_router(message: &[u8]) -> Option<Advertisement> {
    let options = options(message.get(16..)?)?;
    let mut found = Advertisement {
        router_s: u16::from_be_bytes([message[6], message[7]]),
        hardware: hardware(&options, SOURCE_HARDWARE),
        ..Advertisement::default()
    };
    for (kind, option) in options {
        match kind {
            MTU if option.len() == 8 => found.mtu = number_at(option, 4),
            PREFIX if option.len() == 32 && found.prefixes.len() < MAX_PREFIXES => {
                found.prefixes.push(Prefix {
                    bits: option[2],
                    is_on_link: option[3] & 0x80 != 0,
                    is_for_hosts: option[3] & 0x40 != 0,
                    valid_s: number_at(option, 4)?,
                    preferred_s: number_at(option, 8)?,
                    address: address_at(option, 16)?,
                });
            }
            NAME_SERVERS if option.len() >= 24 && number_at(option, 4)? > 0 => {
                for place in option[8..].chunks_exact(16) {
                    if found.name_servers.len() < MAX_NAME_SERVERS {
                        found.name_servers.extend(address_at(place, 0).map(IpAddress::Ipv6));
                    }
                }
            }
            _ => {}
        }
    }
    Some(found)
}

fn option(kind: u8, hardware: EthernetAddress) -> [u8; 8] {
    let [a, b, c, d, e, f] = hardware.0;
    [kind, 1, a, b, c, d, e, f]
}

/// Sends a neighbour solicitation. An unspecified source makes it a duplicate-address probe.
pub(crate) fn ask<B: Buffer>(output: &mut Output<B>, from: Ipv6Address, target: Ipv6Address) {
    let mut data = target.octets().to_vec();
    if !from.is_unspecified() {
        data.extend(option(SOURCE_HARDWARE, output.hardware));
    }
    send(output, from, group_of(&target), NEIGHBOUR_SOLICITATION, 0, &data);
}

/// Sends a neighbour advertisement, to the solicitor or to all nodes.
pub(crate) fn answer<B: Buffer>(output: &mut Output<B>, own: Ipv6Address, to: Option<Ipv6Address>) {
    let mut data = own.octets().to_vec();
    data.extend(option(TARGET_HARDWARE, output.hardware));
    let flags = if to.is_some() { 0x60 } else { 0x20 };
    send(output, own, to.unwrap_or(ALL_HOSTS), NEIGHBOUR_ADVERTISEMENT, flags, &data);
}

/// Sends a router solicitation.
pub(super) fn ask_routers<B: Buffer>(output: &mut Output<B>, from: Ipv6Address) {
    let data = option(SOURCE_HARDWARE, output.hardware);
    send(output, from, ALL_ROUTERS, ROUTER_SOLICITATION, 0, &data);
}

fn send<B: Buffer>(output: &mut Output<B>, from: Ipv6Address, to: Ipv6Address, kind: u8, flags: u8, data: &[u8]) {
    let (from, to) = (IpAddress::Ipv6(from), IpAddress::Ipv6(to));
    Message { from, to, hops: HOP_LIMIT, kind, code: 0, fields: [flags, 0, 0, 0], data }.send(output);
}

#[cfg(test)]
mod tests {
    use super::*;
    use smoltcp::wire::IpProtocol;

    fn header(source: &str, hop_limit: u8) -> IpHeader {
        IpHeader {
            source: source.parse().expect("an address"),
            destination: "ff02::1".parse().expect("an address"),
            protocol: IpProtocol::Icmpv6,
            hop_limit,
            header_bytes: 40,
            payload_bytes: 0,
            fragment: None,
        }
    }

    fn advertisement() -> Vec<u8> {
        let mut message = vec![134, 0, 0, 0, 64, 0, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0];
        message.extend([1, 1, 2, 0, 0, 0, 0, 9]);
        message.extend([5, 1, 0, 0, 0, 0, 5, 0xdc]);
        message.extend([3, 4, 64, 0xc0, 0, 0, 0, 100, 0, 0, 0, 50, 0, 0, 0, 0]);
        message.extend("2001:db8::".parse::<Ipv6Address>().expect("an address").octets());
        message.extend([25, 3, 0, 0, 0, 0, 0, 60]);
        message.extend("2001:db8::53".parse::<Ipv6Address>().expect("an address").octets());
        message
    }

    #[test]
    fn an_advertisement_is_parsed() {
        let Some(Discovery::Router(found)) = read(&header("fe80::1", HOP_LIMIT), &advertisement()) else {
            panic!("none")
        };
        assert_eq!((found.router_s, found.mtu), (0x0708, Some(1500)));
        assert_eq!(found.hardware, Some(EthernetAddress([2, 0, 0, 0, 0, 9])));
        let prefix = found.prefixes[0];
        assert_eq!((prefix.bits, prefix.is_on_link, prefix.is_for_hosts), (64, true, true));
        assert_eq!((prefix.valid_s, prefix.preferred_s), (100, 50));
        assert_eq!(found.name_servers, ["2001:db8::53".parse().expect("an address")]);
    }

    #[test]
    fn forwarded_or_truncated_messages_are_rejected() {
        assert_eq!(read(&header("fe80::1", 254), &advertisement()), None);
        assert_eq!(read(&header("2001:db8::1", HOP_LIMIT), &advertisement()), None);
        let whole = advertisement();
        for length in 0..whole.len() {
            // Truncated between options it is an advertisement with fewer; elsewhere it is malformed. It never
            // panics.
            let _ = read(&header("fe80::1", HOP_LIMIT), &whole[..length]);
        }
        let mut endless = whole.clone();
        endless[17] = 0;
        assert_eq!(read(&header("fe80::1", HOP_LIMIT), &endless), None);
    }
}
