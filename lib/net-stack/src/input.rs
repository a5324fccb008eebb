//! Input: validation of received packets, and dispatch to their protocol.
//!
//! Deliberately not here: protocol processing.

use smoltcp::wire::{EthernetProtocol, IpAddress, IpProtocol};

use crate::addresses;
use crate::checksum;
use crate::discovery::messages;
use crate::ends::End;
use crate::fragments::Reassembly;
use crate::icmp::{self, Error};
use crate::output::Buffer;
use crate::packet::{ETHERNET_BYTES, IpHeader};
use crate::stack::Stack;

/// DNS port.
const DNS_PORT: u16 = 53;

/// Whether a packet's checksums have been verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Checked {
    Yes,
    No,
}

/// Whether a packet is a DHCP reply, by its ports.
fn is_for_dhcp(packet: &[u8]) -> bool {
    let header = IpHeader::read(packet).filter(|header| header.is_version_4() && header.protocol == IpProtocol::Udp);
    header.is_some_and(|header| header.fragment.is_none() && header.payload(packet).starts_with(&[0, 67, 0, 68]))
}

impl<B: Buffer> Stack<B> {
    /// Processes a frame, from its Ethernet header on. `is_checked`: the interface has verified its checksums.
    pub fn receive(&mut self, frame: &[u8], is_checked: bool) {
        self.output.counters.received_packets += 1;
        self.output.counters.received_bytes += frame.len() as u64;
        let Some((header, packet)) = frame.split_at_checked(ETHERNET_BYTES) else {
            self.output.counters.malformed += 1;
            return;
        };
        let is_for_group = header[0] & 1 != 0;
        if !is_for_group && header[..6] != self.output.hardware.0 {
            self.output.counters.dropped += 1;
            return;
        }
        let checked = if is_checked { Checked::Yes } else { Checked::No };
        match EthernetProtocol::from(u16::from_be_bytes([header[12], header[13]])) {
            EthernetProtocol::Arp => {
                self.output.receive_arp(packet);
                // The DHCP client needs ARP replies in its own view of the link, or a lease could not be renewed.
                if let Some(dhcp) = self.dhcp.as_mut().filter(|_| packet.get(6..8) == Some(&[0, 2])) {
                    dhcp.receive(&mut self.output, frame);
                }
            }
            EthernetProtocol::Ipv4 if is_for_dhcp(packet) => {
                if let Some(dhcp) = &mut self.dhcp {
                    dhcp.receive_answer(&mut self.output, frame, checked);
                }
            }
            EthernetProtocol::Ipv4 if packet.first().is_some_and(|byte| byte >> 4 == 4) => {
                self.receive_from_link(packet, checked, is_for_group);
            }
            EthernetProtocol::Ipv6 if packet.first().is_some_and(|byte| byte >> 4 == 6) => {
                self.receive_from_link(packet, checked, is_for_group);
            }
            _ => self.output.counters.dropped += 1,
        }
    }

    fn receive_from_link(&mut self, packet: &[u8], checked: Checked, is_for_group: bool) {
        let Some(header) = IpHeader::read(packet) else {
            self.output.counters.malformed += 1;
            return;
        };
        if header.is_version_4() && checksum::sum(&packet[..header.header_bytes], 0) != u16::MAX {
            self.output.counters.malformed += 1;
            return;
        }
        if self.is_spoofed(&header) || !self.is_for_us(&header, is_for_group) {
            self.output.counters.dropped += 1;
            return;
        }
        if let Some(part) = header.fragment {
            let whole = header.whole(packet);
            match self.fragments.receive(&header, &part, whole, self.output.now_ns) {
                Reassembly::Whole(packet) => {
                    self.output.counters.joined += 1;
                    // The checksum covers all fragments, so no interface has verified it.
                    self.receive_reassembled(&packet, is_for_group);
                }
                Reassembly::Waits => {}
                Reassembly::Lost => self.output.counters.parts_lost += 1,
            }
        } else if header.has_extensions() {
            self.receive_ip(&header.without_extensions(packet), checked);
        } else {
            self.receive_ip(packet, checked);
        }
    }

    /// Processes a reassembled packet, which must be no fragment itself.
    fn receive_reassembled(&mut self, packet: &[u8], is_for_group: bool) {
        match IpHeader::read(packet).filter(|header| header.fragment.is_none()) {
            Some(header) if !self.is_for_us(&header, is_for_group) => self.output.counters.dropped += 1,
            Some(header) if header.has_extensions() => {
                self.receive_ip(&header.without_extensions(packet), Checked::No);
            }
            Some(_) => self.receive_ip(packet, Checked::No),
            None => self.output.counters.malformed += 1,
        }
    }

    /// Whether a packet from outside has an address that only this machine's own packets can have.
    fn is_spoofed(&self, header: &IpHeader) -> bool {
        let addresses = &self.output.addresses;
        addresses::is_loopback(&header.source)
            || addresses::is_loopback(&header.destination)
            || addresses.has(&header.source)
            || header.source.is_multicast()
            || addresses.is_broadcast(&header.source)
    }

    /// Whether a packet is addressed to this machine. `is_for_group`: it was a link-layer broadcast or multicast.
    fn is_for_us(&self, header: &IpHeader, is_for_group: bool) -> bool {
        match header.destination {
            // Neighbours without an address use the unspecified one.
            IpAddress::Ipv6(group) if group.is_multicast() => {
                header.protocol == IpProtocol::Icmpv6 && self.discovery.is_member(&self.output, &group)
            }
            address if self.output.addresses.has(&address) => {
                let may_be_for_many = matches!(header.protocol, IpProtocol::Udp | IpProtocol::Icmpv6);
                !header.source.is_unspecified() && (!is_for_group || may_be_for_many)
            }
            address => self.output.addresses.is_broadcast(&address) && header.protocol == IpProtocol::Udp,
        }
    }

    /// Dispatches a packet with a valid header that is addressed to this machine.
    pub(crate) fn receive_ip(&mut self, packet: &[u8], checked: Checked) {
        let Some(header) = IpHeader::read(packet) else { return };
        let packet = header.whole(packet);
        let is_right = match header.protocol {
            IpProtocol::Icmp => checksum::sum(header.payload(packet), 0) == u16::MAX,
            _ => checked == Checked::Yes || checksum::is_right(packet, &header),
        };
        if !is_right {
            self.output.counters.malformed += 1;
            return;
        }
        match header.protocol {
            IpProtocol::Tcp => self.tcp.receive(&mut self.output, &header, packet),
            IpProtocol::Udp => {
                if !self.udp.receive(&mut self.output, &header, packet) {
                    self.receive_unmatched(&header, packet);
                }
            }
            IpProtocol::Icmp if header.is_version_4() => self.receive_icmp(&header, packet),
            IpProtocol::Icmpv6 if !header.is_version_4() => self.receive_icmp(&header, packet),
            _ => self.output.counters.dropped += 1,
        }
    }

    fn receive_icmp(&mut self, header: &IpHeader, packet: &[u8]) {
        let message = header.payload(packet);
        let kind = message.first().copied().unwrap_or(0);
        if !header.is_version_4() && messages::is_one(kind) {
            let changes = self.discovery.receive(&mut self.output, header, message);
            self.change_addresses(changes);
        } else if let Some(error) = icmp::read_error(header, message) {
            let is_believed = self.receive_error(&error);
            let counters = &mut self.output.counters;
            counters.errors_believed += u64::from(is_believed);
            counters.errors_ignored += u64::from(!is_believed);
        } else if !header.source.is_unspecified() {
            self.echoes.receive(&mut self.output, header, packet);
        }
    }

    /// Delivers an ICMP error to the owner of the quoted packet; false if there is none.
    pub(crate) fn receive_error(&mut self, error: &Error) -> bool {
        if !self.output.addresses.has(&error.header.source) {
            return false;
        }
        let (own_port, port) = error.ports();
        match error.header.protocol {
            IpProtocol::Tcp => self.tcp.receive_error(&mut self.output, error),
            IpProtocol::Udp => {
                let is_ours = self.udp.is_from_here(End::new(error.header.source, own_port));
                is_ours && self.output.update_path_mtu(error)
                    || self.names.receive_error(error, own_port, port, self.output.now_ns)
            }
            IpProtocol::Icmp | IpProtocol::Icmpv6 => {
                let is_ours = self.echoes.fail(error);
                if is_ours {
                    self.output.update_path_mtu(error);
                }
                is_ours
            }
            _ => false,
        }
    }

    /// A datagram without a socket: a DNS reply, or unsolicited.
    fn receive_unmatched(&mut self, header: &IpHeader, packet: &[u8]) {
        let is_answer = header.payload(packet).starts_with(&DNS_PORT.to_be_bytes());
        if is_answer && self.names.receive(self.output.now_ns, header, packet) {
            return;
        }
        self.output.counters.dropped += 1;
        if self.output.addresses.has(&header.destination) {
            self.errors.refuse(&mut self.output, header, packet);
        }
    }
}
