//! The way of a packet out: its buffer, its checksum, its route, its neighbour.
//!
//! Who owns a buffer: the interface's owner gives empty ones, this keeps them, fills them and gives them out filled.
//! With none left nothing is sent; TCP tries again. Deliberately not here: what packets mean.

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
use crate::neighbours::{Answer, Neighbours};
use crate::packet::{ETHERNET_BYTES, IpHeader};
use crate::paths::Paths;
use crate::routes::Routes;

/// A buffer for one packet. The stack never asks for its own.
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
    /// It begins with its Ethernet header.
    pub buffer: B,
    /// Bytes of the packet.
    pub length: usize,
    /// The interface has to fill in the checksum of TCP or UDP.
    pub needs_checksum: bool,
    /// The interface has to cut it into segments of so many bytes; 0: it has not.
    pub segment_bytes: u16,
}

/// What the interface takes over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// Checksums of TCP and UDP.
    pub checksum: bool,
    /// It cuts long packets of TCP over IPv4 into segments.
    pub segmentation_version_4: bool,
}

/// Bytes of the longest packet that an interface cuts, without its Ethernet header.
pub const MAX_TSO_BYTES: usize = 40 + MAX_TSO_PAYLOAD_BYTES;
/// Bytes of its payload where there are no options: whole segments of the usual links.
pub(crate) const MAX_TSO_PAYLOAD_BYTES: usize = 42 * 1460;

/// Packets on their way within this machine; with more, packets are lost.
const MAX_LOOPED: usize = 1024;
/// Packets that may wait for the answers of neighbours, however few buffers are left.
const MIN_WAITING: usize = 8;
/// Bytes of a packet that tell whose it is: its header of IP and the first ones behind it.
const MAX_QUOTED: usize = 64;
/// With so many bytes ready to be taken nobody sends more before they are: so packets are taken while they are still in
/// the processor's caches, and their buffers come back so.
const MAX_READY_BYTES: usize = 256 << 10;

/// The way out.
pub(crate) struct Output<B> {
    pub(crate) hardware: EthernetAddress,
    pub(crate) mtu: usize,
    /// The most that packets of IPv6 may have, where a router tells of less.
    pub(crate) mtu_6: Option<usize>,
    /// Ways that carry less than the link.
    pub(crate) paths: Paths,
    pub(crate) features: Features,
    pub(crate) addresses: Addresses,
    pub(crate) routes: Routes,
    pub(crate) counters: Counters,
    pub(crate) now_ns: u64,
    free: Vec<B>,
    ready: VecDeque<Outgoing<B>>,
    /// Bytes of all that are ready.
    ready_bytes: usize,
    /// Packets from this machine to itself.
    looped: VecDeque<Vec<u8>>,
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
            looped: VecDeque::new(),
            neighbours: Neighbours::new(),
        }
    }

    /// Takes an empty buffer.
    pub(crate) fn give(&mut self, buffer: B) {
        self.free.push(buffer);
    }

    /// A filled buffer.
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

    /// A packet from this machine to itself.
    pub(crate) fn take_looped(&mut self) -> Option<Vec<u8>> {
        self.looped.pop_front()
    }

    pub(crate) fn has_looped(&self) -> bool {
        !self.looped.is_empty()
    }

    /// Whether a packet can be sent now.
    pub(crate) fn has_room(&self) -> bool {
        !self.free.is_empty() && self.looped.len() < MAX_LOOPED && self.ready_bytes < MAX_READY_BYTES
    }

    /// Empty buffers that are here.
    pub(crate) fn free_buffers(&self) -> usize {
        self.free.len()
    }

    /// Forgets all buffers and neighbours: the interface is another one now.
    pub(crate) fn forget_link(&mut self) {
        self.free.clear();
        self.ready.clear();
        self.ready_bytes = 0;
        drop(self.neighbours.forget_all());
        self.mtu_6 = None;
    }

    /// The next host on the way to an address that is not in this machine.
    fn next_host(&self, destination: &IpAddress) -> Option<IpAddress> {
        if self.addresses.is_neighbour(destination) || !is_one_host(destination) {
            return Some(*destination);
        }
        self.routes.gateway(destination)
    }

    /// The longest packet that gets to a host.
    pub(crate) fn mtu_to(&self, destination: &IpAddress) -> usize {
        let of_version = match destination {
            IpAddress::Ipv6(_) => self.mtu_6,
            IpAddress::Ipv4(_) => None,
        };
        [of_version, self.paths.mtu(destination, self.now_ns)].into_iter().flatten().fold(self.mtu, usize::min)
    }

    /// Hears that a packet was too long for its way; false: that is nothing new.
    pub(crate) fn update_path_mtu(&mut self, error: &Error) -> bool {
        match error.kind {
            ErrorKind::TooLong { mtu } => self.paths.lower(error.header.destination, error.length, mtu, self.now_ns),
            ErrorKind::Refused | ErrorKind::Unreachable | ErrorKind::Silent => false,
        }
    }

    /// Whether there is a way to an address.
    pub(crate) fn reaches(&self, destination: &IpAddress) -> bool {
        self.addresses.is_here(destination) || self.next_host(destination).is_some()
    }

    /// Makes an IP packet of so many bytes and sends it. With `segment_bytes` it is a long one of TCP, which the
    /// interface cuts. The checksum of TCP and UDP is filled in here.
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
            self.counters.without_buffer += 1;
            let mut lost = alloc::vec![0; bytes];
            return fill(&mut lost);
        };
        let packet = &mut buffer.bytes()[ETHERNET_BYTES..ETHERNET_BYTES + bytes];
        let result = fill(packet);
        let Some(header) = IpHeader::read(packet) else {
            self.free.push(buffer);
            return result;
        };
        if self.addresses.is_here(&header.destination) {
            if self.looped.len() < MAX_LOOPED {
                self.looped.push_back(packet.to_vec());
            }
            self.free.push(buffer);
            return result;
        }
        let needs_checksum = self.finish_checksum(packet, &header);
        let length = ETHERNET_BYTES + bytes;
        self.pass_on(&header, Outgoing { buffer, length, needs_checksum, segment_bytes });
        result
    }

    /// Whether the interface has to do the rest.
    fn finish_checksum(&self, packet: &mut [u8], header: &IpHeader) -> bool {
        if !matches!(header.protocol, IpProtocol::Tcp | IpProtocol::Udp) {
            return false;
        }
        let maker = if self.features.checksum { Maker::Interface } else { Maker::Stack };
        checksum::fill(packet, header, maker);
        maker == Maker::Interface
    }

    /// Finds the neighbour that takes a packet, and gives it out or lets it wait for that.
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
        let (answer, lost) = self.neighbours.look_up(&next, self.now_ns);
        self.take_back(lost);
        match answer {
            Answer::Send(hardware) => self.frame(packet, hardware, protocol),
            Answer::SendAndAsk(hardware) => {
                self.frame(packet, hardware, protocol);
                self.ask(&next);
            }
            Answer::Ask => {
                self.keep(&next, packet);
                self.ask(&next);
            }
            Answer::Keep => self.keep(&next, packet),
        }
    }

    fn keep(&mut self, next: &IpAddress, packet: Outgoing<B>) {
        // Not more wait than are left for the others: neighbours that never answer do not hold all buffers.
        let lost = self.neighbours.keep(next, packet, self.free.len().max(MIN_WAITING));
        self.take_back(lost);
    }

    fn take_back(&mut self, lost: impl IntoIterator<Item = Outgoing<B>>) {
        self.free.extend(lost.into_iter().map(|packet| packet.buffer));
    }

    /// The hardware address of many hosts at once.
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

    /// Makes a whole frame and gives it out.
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

    /// Writes the Ethernet header and gives the packet out.
    fn frame(&mut self, mut packet: Outgoing<B>, to: EthernetAddress, protocol: EthernetProtocol) {
        let header = &mut packet.buffer.bytes()[..ETHERNET_BYTES];
        header[..6].copy_from_slice(&to.0);
        header[6..12].copy_from_slice(&self.hardware.0);
        header[12..].copy_from_slice(&u16::from(protocol).to_be_bytes());
        self.ready_bytes += packet.length;
        self.ready.push_back(packet);
    }

    /// Asks for a neighbour's hardware address. With no buffer left the question is lost and asked again later.
    fn ask(&mut self, neighbour: &IpAddress) {
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

    /// Sends a message of ARP.
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

    /// Takes a message of ARP: answers questions for this machine, and learns from answers.
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
        // Who asks is about to talk to this machine, which then need not ask back (RFC 826).
        self.learn(sender, source_hardware_addr, is_for_us);
        if is_for_us && operation == ArpOperation::Request {
            let (to, own) = (source_hardware_addr, target_protocol_addr);
            self.send_arp(ArpOperation::Reply, to, own, to, source_protocol_addr);
        }
    }

    /// Notes where a neighbour is, and sends what waited for it.
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

    /// Takes a neighbour's answer to where it is. One that does not override is of no use against what is known.
    pub(crate) fn learn_answer(
        &mut self,
        target: Ipv6Address,
        hardware: EthernetAddress,
        is_asked_for: bool,
        overrides: bool,
    ) {
        let known = self.neighbours.hardware(&target.into());
        let is_same = known.is_none_or(|known| known == hardware);
        // What nobody asked for confirms nothing.
        if (is_same && (is_asked_for || known.is_none())) || (!is_same && overrides) {
            self.learn(target.into(), hardware, false);
        }
    }

    /// Tells the link where this machine's addresses are: those who knew it elsewhere learn it.
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

    /// Asks again for neighbours that did not answer. The beginnings of packets for those that are given up.
    pub(crate) fn serve(&mut self) -> Vec<Vec<u8>> {
        let (ask, mut lost) = self.neighbours.due(self.now_ns);
        let beginning = |packet: &mut Outgoing<B>| {
            let end = packet.length.min(ETHERNET_BYTES + MAX_QUOTED);
            packet.buffer.bytes().get(ETHERNET_BYTES..end).map(<[u8]>::to_vec)
        };
        let beginnings = lost.iter_mut().filter_map(beginning).collect();
        self.take_back(lost);
        for neighbour in ask {
            self.ask(&neighbour);
        }
        beginnings
    }

    pub(crate) fn next_time_ns(&self) -> Option<u64> {
        self.neighbours.next_time_ns()
    }
}
