//! Output: buffers, checksums, routes and neighbours of packets to send.
//!
//! Buffers: the owner of the interface hands in empty ones; they stay here until they are handed out filled. Without a
//! buffer a packet is dropped; TCP retransmits. Deliberately not here: the content of packets.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use smoltcp::wire::{
    ArpOperation, ArpPacket, ArpRepr, EthernetAddress, EthernetProtocol, IpAddress, IpProtocol, Ipv4Address,
    Ipv6Address,
};

use crate::addresses::{Addresses, is_one_host};
use crate::checksum::{self, Maker};
use crate::counters::Counters;
use crate::discovery::messages;
use crate::icmp::{Error, ErrorKind};
use crate::neighbours::{Neighbours, Verdict};
use crate::packet::{ETHERNET_BYTES, IpHeader};
use crate::paths::Paths;
use crate::routes::Routes;

/// A buffer for one packet. The stack allocates none itself.
pub trait Buffer {
    /// All of its bytes.
    fn bytes(&mut self) -> &mut [u8];
}

impl Buffer for Vec<u8> {
    fn bytes(&mut self) -> &mut [u8] {
        self
    }
}

/// A packet to send.
#[derive(Debug)]
pub struct Outgoing<B> {
    /// The frame, from its Ethernet header on.
    pub buffer: B,
    /// Length of the frame, in bytes.
    pub length: usize,
    /// Checksum offload: the interface must fill in the TCP or UDP checksum.
    pub needs_checksum: bool,
    /// TSO segment size in bytes; 0: no segmentation.
    pub segment_bytes: u16,
}

/// Offloads of the interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// TCP and UDP checksums.
    pub checksum: bool,
    /// TSO for TCP over IPv4.
    pub segmentation_version_4: bool,
}

/// TSO limit: maximum packet in bytes, without its Ethernet header.
pub const MAX_TSO_BYTES: usize = 40 + MAX_TSO_PAYLOAD_BYTES;
/// Its payload in bytes without options: full segments on Ethernet.
pub(crate) const MAX_TSO_PAYLOAD_BYTES: usize = 42 * 1460;

/// Maximum packets in the loopback queue; more are dropped.
const MAX_LOOPBACK_PACKETS: usize = 1024;
/// Maximum of their bytes, likewise: a datagram to this machine may be as long as IP allows.
const MAX_LOOPBACK_BYTES: usize = 4 << 20;
/// Minimum number of packets that may wait for neighbour resolution, regardless of free buffers.
const MIN_WAITING: usize = 8;
/// Bytes of a packet that identify its owner: IP header and ports.
const MAX_QUOTED: usize = 64;
/// Output queue limit in bytes: beyond it no one sends until packets are taken, so that they are taken while still in
/// the processor's caches.
const MAX_READY_BYTES: usize = 256 << 10;

/// The output path of an interface.
pub(crate) struct Output<B> {
    pub(crate) hardware: EthernetAddress,
    pub(crate) mtu: usize,
    /// IPv6 MTU of the link, if a router advertises a smaller one.
    pub(crate) mtu_6: Option<usize>,
    /// Path MTUs below that of the link.
    pub(crate) paths: Paths,
    pub(crate) features: Features,
    pub(crate) addresses: Addresses,
    pub(crate) routes: Routes,
    pub(crate) counters: Counters,
    pub(crate) now_ns: u64,
    free: Vec<B>,
    ready: VecDeque<Outgoing<B>>,
    /// Bytes of all packets in the output queue.
    ready_bytes: usize,
    /// The loopback queue.
    loopback: VecDeque<Vec<u8>>,
    loopback_bytes: usize,
    neighbours: Neighbours<B>,
}

impl<B: Buffer> Output<B> {
    pub(crate) fn new(hardware: EthernetAddress, mtu: usize, features: Features) -> Output<B> {
        Output {
            hardware,
            mtu,
            mtu_6: None,
            paths: Paths::default(),
            features,
            addresses: Addresses::default(),
            routes: Routes::default(),
            counters: Counters::default(),
            now_ns: 0,
            free: Vec::new(),
            ready: VecDeque::new(),
            ready_bytes: 0,
            loopback: VecDeque::new(),
            loopback_bytes: 0,
            neighbours: Neighbours::new(),
        }
    }

    /// Hands in an empty buffer.
    pub(crate) fn give(&mut self, buffer: B) {
        self.free.push(buffer);
    }

    /// The next packet of the output queue.
    pub(crate) fn take(&mut self) -> Option<Outgoing<B>> {
        let packet = self.ready.pop_front()?;
        self.ready_bytes -= packet.length;
        self.counters.sent_packets += 1;
        self.counters.sent_bytes += packet.length as u64;
        Some(packet)
    }

    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// The next packet of the loopback queue.
    pub(crate) fn take_loopback(&mut self) -> Option<Vec<u8>> {
        let packet = self.loopback.pop_front()?;
        self.loopback_bytes -= packet.len();
        Some(packet)
    }

    pub(crate) fn has_loopback(&self) -> bool {
        !self.loopback.is_empty()
    }

    /// Whether there is a buffer, and room in the output queue.
    pub(crate) fn has_room(&self) -> bool {
        !self.free.is_empty() && self.loopback.len() < MAX_LOOPBACK_PACKETS && self.ready_bytes < MAX_READY_BYTES
    }

    /// Number of empty buffers.
    pub(crate) fn free_buffers(&self) -> usize {
        self.free.len()
    }

    /// Drops all buffers and neighbours after a change of interface.
    pub(crate) fn forget_link(&mut self) {
        self.free.clear();
        self.ready.clear();
        self.ready_bytes = 0;
        drop(self.neighbours.forget_all());
        self.mtu_6 = None;
    }

    /// Next hop to an address that is not local.
    fn next_host(&self, destination: &IpAddress) -> Option<IpAddress> {
        if self.addresses.is_neighbour(destination) || !is_one_host(destination) {
            return Some(*destination);
        }
        self.routes.gateway(destination)
    }

    /// Path MTU to a host, in bytes.
    pub(crate) fn mtu_to(&self, destination: &IpAddress) -> usize {
        let of_version = match destination {
            IpAddress::Ipv6(_) => self.mtu_6,
            IpAddress::Ipv4(_) => None,
        };
        [of_version, self.paths.mtu(destination, self.now_ns)].into_iter().flatten().fold(self.mtu, usize::min)
    }

    /// Lowers a path MTU after an ICMP error; returns false if nothing changed.
    pub(crate) fn update_path_mtu(&mut self, error: &Error) -> bool {
        match error.kind {
            ErrorKind::TooLong { mtu } => self.paths.lower(error.header.destination, error.length, mtu, self.now_ns),
            ErrorKind::Refused | ErrorKind::Unreachable | ErrorKind::Silent => false,
        }
    }

    /// Whether there is a route to an address.
    pub(crate) fn reaches(&self, destination: &IpAddress) -> bool {
        self.addresses.is_local(destination) || self.next_host(destination).is_some()
    }

    /// Queues a packet for this machine itself.
    fn loop_back(&mut self, packet: Vec<u8>) {
        if self.loopback.len() < MAX_LOOPBACK_PACKETS && packet.len() <= MAX_LOOPBACK_BYTES - self.loopback_bytes {
            self.loopback_bytes += packet.len();
            self.loopback.push_back(packet);
        }
    }

    /// Builds and sends an IP packet; only one to this machine itself may be longer than the MTU. With `segment_bytes` it
    /// is a TCP packet for TSO. Fills in the TCP or UDP checksum unless it is offloaded.
    pub(crate) fn send<R>(&mut self, bytes: usize, segment_bytes: u16, fill: impl FnOnce(&mut [u8]) -> R) -> R {
        let is_long = bytes > self.mtu && segment_bytes == 0;
        let usable = |buffer: &mut B| buffer.bytes().len() >= ETHERNET_BYTES + bytes;
        let buffer = if is_long { None } else { self.free.pop() };
        let Some(mut buffer) = buffer.and_then(|mut buffer| match usable(&mut buffer) {
            true => Some(buffer),
            false => {
                self.free.push(buffer);
                None
            }
        }) else {
            let mut packet = alloc::vec![0; bytes];
            let result = fill(&mut packet);
            match IpHeader::read(&packet) {
                Some(header) if self.addresses.is_local(&header.destination) => self.loop_back(packet),
                _ => self.counters.without_buffer += 1,
            }
            return result;
        };
        let packet = &mut buffer.bytes()[ETHERNET_BYTES..ETHERNET_BYTES + bytes];
        let result = fill(packet);
        let Some(header) = IpHeader::read(packet) else {
            self.free.push(buffer);
            return result;
        };
        if self.addresses.is_local(&header.destination) {
            let packet = packet.to_vec();
            self.free.push(buffer);
            self.loop_back(packet);
            return result;
        }
        let needs_checksum = self.finish_checksum(packet, &header);
        let length = ETHERNET_BYTES + bytes;
        self.pass_on(&header, Outgoing { buffer, length, needs_checksum, segment_bytes });
        result
    }

    /// Whether the checksum is offloaded.
    fn finish_checksum(&self, packet: &mut [u8], header: &IpHeader) -> bool {
        if !matches!(header.protocol, IpProtocol::Tcp | IpProtocol::Udp) {
            return false;
        }
        let maker = if self.features.checksum { Maker::Interface } else { Maker::Stack };
        checksum::fill(packet, header, maker);
        maker == Maker::Interface
    }

    /// Resolves the next hop, and queues the packet for output or for resolution.
    fn pass_on(&mut self, header: &IpHeader, packet: Outgoing<B>) {
        let protocol = if header.is_version_4() { EthernetProtocol::Ipv4 } else { EthernetProtocol::Ipv6 };
        if let Some(group) = self.group(&header.destination) {
            self.frame(packet, group, protocol);
            return;
        }
        let Some(next) = self.next_host(&header.destination) else {
            self.free.push(packet.buffer);
            return;
        };
        let (answer, dropped) = self.neighbours.look_up(&next, self.now_ns);
        self.take_back(dropped);
        match answer {
            Verdict::Send(hardware) => self.frame(packet, hardware, protocol),
            Verdict::SendAndProbe(hardware) => {
                self.frame(packet, hardware, protocol);
                self.solicit(&next);
            }
            Verdict::Resolve => {
                self.queue(&next, packet);
                self.solicit(&next);
            }
            Verdict::Queue => self.queue(&next, packet),
        }
    }

    /// A host does not answer: the neighbour on the way to it is probed with the next packet.
    pub(crate) fn doubt(&mut self, host: &IpAddress) {
        if let Some(next) = self.next_host(host) {
            self.neighbours.doubt(&next);
        }
    }

    fn queue(&mut self, next: &IpAddress, packet: Outgoing<B>) {
        // At most as many packets wait as buffers are free, so that dead neighbours do not hold all of them.
        let dropped = self.neighbours.queue(next, packet, self.free.len().max(MIN_WAITING));
        self.take_back(dropped);
    }

    fn take_back(&mut self, dropped: impl IntoIterator<Item = Outgoing<B>>) {
        self.free.extend(dropped.into_iter().map(|packet| packet.buffer));
    }

    /// The link-layer address of a broadcast or multicast destination.
    fn group(&self, address: &IpAddress) -> Option<EthernetAddress> {
        match address {
            _ if self.addresses.is_broadcast(address) => Some(EthernetAddress::BROADCAST),
            IpAddress::Ipv4(address) if address.is_multicast() => {
                let [_, b, c, d] = address.octets();
                Some(EthernetAddress([0x01, 0x00, 0x5e, b & 0x7f, c, d]))
            }
            IpAddress::Ipv6(address) if address.is_multicast() => {
                let octets = address.octets();
                Some(EthernetAddress([0x33, 0x33, octets[12], octets[13], octets[14], octets[15]]))
            }
            _ => None,
        }
    }

    /// Builds a frame and queues it.
    pub(crate) fn send_frame<R>(&mut self, bytes: usize, fill: impl FnOnce(&mut [u8]) -> R) -> R {
        let mut buffer = self.free.pop();
        match buffer.as_mut().and_then(|buffer| buffer.bytes().get_mut(..bytes)) {
            Some(place) => {
                place.fill(0);
                let result = fill(place);
                let packet =
                    buffer.map(|buffer| Outgoing { buffer, length: bytes, needs_checksum: false, segment_bytes: 0 });
                self.ready_bytes += bytes;
                self.ready.extend(packet);
                result
            }
            None => {
                self.free.extend(buffer);
                self.counters.without_buffer += 1;
                fill(&mut alloc::vec![0; bytes])
            }
        }
    }

    /// Writes the Ethernet header and queues the packet.
    fn frame(&mut self, mut packet: Outgoing<B>, to: EthernetAddress, protocol: EthernetProtocol) {
        let header = &mut packet.buffer.bytes()[..ETHERNET_BYTES];
        header[..6].copy_from_slice(&to.0);
        header[6..12].copy_from_slice(&self.hardware.0);
        header[12..].copy_from_slice(&u16::from(protocol).to_be_bytes());
        self.ready_bytes += packet.length;
        self.ready.push_back(packet);
    }

    /// Sends an ARP request or neighbour solicitation; without a buffer it is dropped and retried later.
    fn solicit(&mut self, neighbour: &IpAddress) {
        match neighbour {
            IpAddress::Ipv4(wanted) => {
                if let Some(IpAddress::Ipv4(own)) = self.addresses.source_for(neighbour) {
                    self.send_arp(
                        ArpOperation::Request,
                        EthernetAddress::BROADCAST,
                        own,
                        EthernetAddress([0; 6]),
                        *wanted,
                    );
                }
            }
            IpAddress::Ipv6(wanted) => {
                if let Some(IpAddress::Ipv6(own)) = self.addresses.source_for(neighbour) {
                    messages::ask(self, own, *wanted);
                }
            }
        }
    }

    /// Sends an ARP message.
    pub(crate) fn send_arp(
        &mut self,
        operation: ArpOperation,
        to: EthernetAddress,
        own: Ipv4Address,
        target_hardware: EthernetAddress,
        target: Ipv4Address,
    ) {
        let message = ArpRepr::EthernetIpv4 {
            operation,
            source_hardware_addr: self.hardware,
            source_protocol_addr: own,
            target_hardware_addr: target_hardware,
            target_protocol_addr: target,
        };
        let length = ETHERNET_BYTES + message.buffer_len();
        let Some(mut buffer) = self.free.pop() else { return };
        let Some(place) = buffer.bytes().get_mut(ETHERNET_BYTES..length) else {
            self.free.push(buffer);
            return;
        };
        message.emit(&mut ArpPacket::new_unchecked(place));
        let packet = Outgoing { buffer, length, needs_checksum: false, segment_bytes: 0 };
        self.frame(packet, to, EthernetProtocol::Arp);
    }

    /// Processes an ARP message: replies to requests for this machine, and learns from replies.
    pub(crate) fn receive_arp(&mut self, message: &[u8]) {
        let read = ArpPacket::new_checked(message).ok().and_then(|packet| ArpRepr::parse(&packet).ok());
        let Some(ArpRepr::EthernetIpv4 {
            operation,
            source_hardware_addr,
            source_protocol_addr,
            target_protocol_addr,
            ..
        }) = read
        else {
            self.counters.malformed += 1;
            return;
        };
        let sender = IpAddress::Ipv4(source_protocol_addr);
        if !is_one_host(&sender) || !self.addresses.is_neighbour(&sender) || self.addresses.has(&sender) {
            return;
        }
        let is_for_us = self.addresses.has(&target_protocol_addr.into());
        // The requester is about to send to this machine: learn its address (RFC 826).
        self.learn(sender, source_hardware_addr, is_for_us);
        if is_for_us && operation == ArpOperation::Request {
            let (to, own) = (source_hardware_addr, target_protocol_addr);
            self.send_arp(ArpOperation::Reply, to, own, to, source_protocol_addr);
        }
    }

    /// Records a neighbour's link-layer address, and sends the packets that waited for it.
    pub(crate) fn learn(&mut self, address: IpAddress, hardware: EthernetAddress, note_new: bool) {
        let waiting = self.neighbours.learn(address, hardware, self.now_ns, note_new);
        let protocol = match address {
            IpAddress::Ipv4(_) => EthernetProtocol::Ipv4,
            IpAddress::Ipv6(_) => EthernetProtocol::Ipv6,
        };
        for packet in waiting {
            self.frame(packet, hardware, protocol);
        }
    }

    /// Processes a neighbour advertisement. Without the override flag it does not replace a known address.
    pub(crate) fn learn_answer(
        &mut self,
        target: Ipv6Address,
        hardware: EthernetAddress,
        is_asked_for: bool,
        overrides: bool,
    ) {
        let known = self.neighbours.hardware(&target.into());
        let is_same = known.is_none_or(|known| known == hardware);
        // An unsolicited advertisement confirms nothing.
        if (is_same && (is_asked_for || known.is_none())) || (!is_same && overrides) {
            self.learn(target.into(), hardware, false);
        }
    }

    /// Announces this machine's addresses by gratuitous ARP or unsolicited advertisements.
    pub(crate) fn announce(&mut self) {
        let own: Vec<IpAddress> = self.addresses.all().iter().map(|address| address.network.address()).collect();
        for address in own {
            match address {
                IpAddress::Ipv4(own) => {
                    self.send_arp(ArpOperation::Request, EthernetAddress::BROADCAST, own, EthernetAddress([0; 6]), own);
                }
                IpAddress::Ipv6(own) => messages::answer(self, own, None),
            }
        }
    }

    /// Retries neighbour resolution. Returns the first bytes of packets whose next hop did not answer.
    pub(crate) fn serve(&mut self) -> Vec<Vec<u8>> {
        let (solicit, mut dropped) = self.neighbours.due(self.now_ns);
        let beginning = |packet: &mut Outgoing<B>| {
            let end = packet.length.min(ETHERNET_BYTES + MAX_QUOTED);
            packet.buffer.bytes().get(ETHERNET_BYTES..end).map(<[u8]>::to_vec)
        };
        let beginnings = dropped.iter_mut().filter_map(beginning).collect();
        self.take_back(dropped);
        for neighbour in solicit {
            self.solicit(&neighbour);
        }
        beginnings
    }

    pub(crate) fn next_time_ns(&self) -> Option<u64> {
        self.neighbours.next_time_ns()
    }
}
