//! Views of packets: what the table of connections must know of one before smoltcp sees it.
//!
//! Deliberately not here: anything beyond the fixed headers of Ethernet, IP, TCP and UDP.

use smoltcp::wire::{IpAddress, IpProtocol, Ipv4Address, Ipv6Address};

use crate::ends::End;

/// Bytes of an Ethernet header.
pub(crate) const ETHERNET_BYTES: usize = 14;

/// What the header of an IP packet says, as far as it is true: its lengths lie within the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IpHeader {
    pub(crate) source: IpAddress,
    pub(crate) destination: IpAddress,
    pub(crate) protocol: IpProtocol,
    pub(crate) hops_left: u8,
    pub(crate) header_bytes: usize,
    pub(crate) payload_bytes: usize,
    /// Of a part of a packet of IPv4.
    pub(crate) fragment: Option<Fragment>,
}

/// Which part of a packet this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fragment {
    pub(crate) identifier: u16,
    pub(crate) offset_bytes: usize,
    pub(crate) is_last: bool,
}

fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn version_4_address(bytes: &[u8]) -> Ipv4Address {
    Ipv4Address::new(bytes[0], bytes[1], bytes[2], bytes[3])
}

fn version_6_address(bytes: &[u8]) -> Ipv6Address {
    let mut octets = [0; 16];
    octets.copy_from_slice(&bytes[..16]);
    Ipv6Address::from(octets)
}

impl IpHeader {
    /// Reads the header of a packet. Nothing where it is none.
    pub(crate) fn read(packet: &[u8]) -> Option<IpHeader> {
        match packet.first()? >> 4 {
            4 => IpHeader::read_version_4(packet),
            6 => IpHeader::read_version_6(packet),
            _ => None,
        }
    }

    fn read_version_4(packet: &[u8]) -> Option<IpHeader> {
        let header_bytes = usize::from(packet.first()? & 15) * 4;
        let total = usize::from(word(packet.get(..20)?, 2));
        if header_bytes < 20 || total < header_bytes || total > packet.len() {
            return None;
        }
        let fragmentation = word(packet, 6);
        let (offset, more) = (usize::from(fragmentation & 0x1fff) * 8, fragmentation & 0x2000 != 0);
        Some(IpHeader {
            source: version_4_address(&packet[12..]).into(),
            destination: version_4_address(&packet[16..]).into(),
            protocol: packet[9].into(),
            hops_left: packet[8],
            header_bytes,
            payload_bytes: total - header_bytes,
            fragment: (more || offset > 0).then(|| Fragment {
                identifier: word(packet, 4),
                offset_bytes: offset,
                is_last: !more,
            }),
        })
    }

    fn read_version_6(packet: &[u8]) -> Option<IpHeader> {
        let payload_bytes = usize::from(word(packet.get(..40)?, 4));
        if payload_bytes > packet.len() - 40 {
            return None;
        }
        Some(IpHeader {
            source: version_6_address(&packet[8..]).into(),
            destination: version_6_address(&packet[24..]).into(),
            protocol: packet[6].into(),
            hops_left: packet[7],
            header_bytes: 40,
            payload_bytes,
            fragment: None,
        })
    }

    pub(crate) fn is_version_4(&self) -> bool {
        matches!(self.source, IpAddress::Ipv4(_))
    }

    /// Source and destination, as they lie in the packet.
    pub(crate) fn addresses<'a>(&self, packet: &'a [u8]) -> &'a [u8] {
        if self.is_version_4() { &packet[12..20] } else { &packet[8..40] }
    }

    /// What the packet carries.
    pub(crate) fn payload<'a>(&self, packet: &'a [u8]) -> &'a [u8] {
        &packet[self.header_bytes..self.header_bytes + self.payload_bytes]
    }

    /// The packet without what an interface put behind it.
    pub(crate) fn whole<'a>(&self, packet: &'a [u8]) -> &'a [u8] {
        &packet[..self.header_bytes + self.payload_bytes]
    }
}

/// What the header of a TCP segment says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) source_port: u16,
    pub(crate) destination_port: u16,
    pub(crate) sequence: u32,
    pub(crate) acknowledged: u32,
    pub(crate) is_syn: bool,
    pub(crate) is_ack: bool,
    pub(crate) is_reset: bool,
    pub(crate) is_fin: bool,
    pub(crate) data_bytes: usize,
}

impl Segment {
    /// Reads the header of a segment. Nothing where it is none.
    pub(crate) fn read(segment: &[u8]) -> Option<Segment> {
        let header = segment.get(..20)?;
        let header_bytes = usize::from(header[12] >> 4) * 4;
        let number = |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let flags = header[13];
        let found = Segment {
            source_port: word(header, 0),
            destination_port: word(header, 2),
            sequence: number(4),
            acknowledged: number(8),
            is_fin: flags & 1 != 0,
            is_syn: flags & 2 != 0,
            is_reset: flags & 4 != 0,
            is_ack: flags & 16 != 0,
            data_bytes: segment.len().checked_sub(header_bytes)?,
        };
        (header_bytes >= 20 && found.source_port != 0 && found.destination_port != 0).then_some(found)
    }

    /// The ends as the receiver sees them: its own first.
    pub(crate) fn ends(&self, header: &IpHeader) -> (End, End) {
        (End::new(header.destination, self.destination_port), End::new(header.source, self.source_port))
    }

    /// How far the segment goes in the space of sequence numbers.
    pub(crate) fn sequence_bytes(&self) -> u32 {
        self.data_bytes as u32 + u32::from(self.is_syn) + u32::from(self.is_fin)
    }
}
