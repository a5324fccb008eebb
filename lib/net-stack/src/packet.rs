//! Packet views: header fields needed for connection lookup.
//!
//! Deliberately not here: anything beyond the Ethernet, IP, TCP and UDP headers.

use alloc::vec::Vec;

use smoltcp::wire::{IpAddress, IpProtocol, Ipv4Address, Ipv6Address};

use crate::ends::End;

/// Length of an Ethernet header, in bytes.
pub(crate) const ETHERNET_BYTES: usize = 14;
/// Length of an IPv6 header, in bytes.
const HEADER_6_BYTES: usize = 40;
/// Maximum IPv6 extension headers before the payload.
const MAX_EXTENSIONS: usize = 8;

/// A validated IP header: its lengths lie within the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IpHeader {
    pub(crate) source: IpAddress,
    pub(crate) destination: IpAddress,
    pub(crate) protocol: IpProtocol,
    pub(crate) hop_limit: u8,
    pub(crate) header_bytes: usize,
    pub(crate) payload_bytes: usize,
    /// Present in a fragment.
    pub(crate) fragment: Option<Fragment>,
}

/// Next-header values of IPv6 extension headers.
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const DESTINATION: u8 = 60;

/// Position of a fragment in its packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fragment {
    pub(crate) identifier: u32,
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

/// Walks the extension headers of an IPv6 packet (RFC 8200, 4); returns the protocol, the offset of the payload, and
/// the fragment. `None` if a header is malformed, or demands that the packet be discarded.
fn extensions(packet: &[u8]) -> Option<(u8, usize, Option<Fragment>)> {
    let (mut next, mut at) = (packet[6], HEADER_6_BYTES);
    for number in 0..MAX_EXTENSIONS {
        match next {
            HOP_BY_HOP | ROUTING | DESTINATION => {
                let fixed = packet.get(at..at + 8)?;
                let bytes = 8 + 8 * usize::from(fixed[1]);
                let header = packet.get(at..at + bytes)?;
                let may_go_on = match next {
                    HOP_BY_HOP => number == 0 && may_skip(&header[2..]),
                    // Not yet at its final destination.
                    ROUTING => header[3] == 0,
                    _ => may_skip(&header[2..]),
                };
                if !may_go_on {
                    return None;
                }
                (next, at) = (fixed[0], at + bytes);
            }
            FRAGMENT => {
                let FragmentHeader { next, place, identifier } = FragmentHeader::parse(packet.get(at..)?)?;
                let (offset_bytes, is_last) = (usize::from(place.eighths()) * 8, !place.more());
                let fragment = Fragment { identifier, offset_bytes, is_last };
                return Some((next, at + FragmentHeader::BYTES, Some(fragment)));
            }
            other => return Some((other, at, None)),
        }
    }
    None
}

/// IPv6 fragment header (RFC 8200, section 4.5).
#[derive(layout::Record)]
#[record(bytes = 8, order = "big")]
struct FragmentHeader {
    /// Next header.
    next: u8,
    /// Offset and flags.
    #[at(2)]
    place: FragmentPlace,
    /// Identification.
    identifier: u32,
}

#[layout::bits(u16)]
struct FragmentPlace {
    /// More fragments follow.
    #[bit(0)]
    more: bool,
    /// Offset, in units of eight bytes.
    #[bits(3..=15)]
    eighths: u16,
}

/// Returns whether unrecognized options may be skipped, by their two highest bits.
fn may_skip(options: &[u8]) -> bool {
    let mut rest = options;
    while let Some((kind, after)) = rest.split_first() {
        if *kind == 0 {
            rest = after;
            continue;
        }
        let Some(following) = after.first().and_then(|bytes| after.get(1 + usize::from(*bytes)..)) else {
            return false;
        };
        if kind >> 6 != 0 {
            return false;
        }
        rest = following;
    }
    true
}

impl IpHeader {
    /// Parses the header of a packet; `None` if it is malformed.
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
            hop_limit: packet[8],
            header_bytes,
            payload_bytes: total - header_bytes,
            fragment: (more || offset > 0).then(|| Fragment {
                identifier: word(packet, 4).into(),
                offset_bytes: offset,
                is_last: !more,
            }),
        })
    }

    fn read_version_6(packet: &[u8]) -> Option<IpHeader> {
        let total = HEADER_6_BYTES + usize::from(word(packet.get(..HEADER_6_BYTES)?, 4));
        let (protocol, header_bytes, fragment) = extensions(packet.get(..total)?)?;
        Some(IpHeader {
            source: version_6_address(&packet[8..]).into(),
            destination: version_6_address(&packet[24..]).into(),
            protocol: protocol.into(),
            hop_limit: packet[7],
            header_bytes,
            payload_bytes: total - header_bytes,
            fragment,
        })
    }

    /// Parses the header of a packet quoted in an error, and the packet's length. Its payload is truncated.
    pub(crate) fn read_quoted(quoted: &[u8]) -> Option<(IpHeader, usize)> {
        let (source, destination, protocol, hop_limit, header_bytes, length) = match quoted.first()? >> 4 {
            4 => {
                let header = quoted.get(..20)?;
                let header_bytes = usize::from(header[0] & 15) * 4;
                let (source, destination) = (version_4_address(&header[12..]), version_4_address(&header[16..]));
                let length = usize::from(word(header, 2));
                (source.into(), destination.into(), header[9], header[8], header_bytes, length)
            }
            6 => {
                let header = quoted.get(..HEADER_6_BYTES)?;
                let (source, destination) = (version_6_address(&header[8..]), version_6_address(&header[24..]));
                let length = HEADER_6_BYTES + usize::from(word(header, 4));
                (source.into(), destination.into(), header[6], header[7], HEADER_6_BYTES, length)
            }
            _ => return None,
        };
        let payload_bytes = length.checked_sub(header_bytes).filter(|_| header_bytes >= 20)?;
        let protocol = protocol.into();
        let header = IpHeader { source, destination, protocol, hop_limit, header_bytes, payload_bytes, fragment: None };
        Some((header, length))
    }

    /// Returns whether there are extension headers, which smoltcp does not parse.
    pub(crate) fn has_extensions(&self) -> bool {
        !self.is_version_4() && self.header_bytes > HEADER_6_BYTES
    }

    /// Returns the IPv6 packet without its extension headers.
    pub(crate) fn without_extensions(&self, packet: &[u8]) -> Vec<u8> {
        let mut plain = packet[..HEADER_6_BYTES].to_vec();
        plain[4..6].copy_from_slice(&(self.payload_bytes as u16).to_be_bytes());
        plain[6] = self.protocol.into();
        plain.extend_from_slice(self.payload(packet));
        plain
    }

    pub(crate) fn is_version_4(&self) -> bool {
        matches!(self.source, IpAddress::Ipv4(_))
    }

    /// Returns source and destination, as encoded in the packet.
    pub(crate) fn addresses<'a>(&self, packet: &'a [u8]) -> &'a [u8] {
        if self.is_version_4() { &packet[12..20] } else { &packet[8..40] }
    }

    /// Returns the payload.
    pub(crate) fn payload<'a>(&self, packet: &'a [u8]) -> &'a [u8] {
        &packet[self.header_bytes..self.header_bytes + self.payload_bytes]
    }

    /// Returns the packet without link-layer padding.
    pub(crate) fn whole<'a>(&self, packet: &'a [u8]) -> &'a [u8] {
        &packet[..self.header_bytes + self.payload_bytes]
    }
}

/// A parsed TCP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) source_port: u16,
    pub(crate) destination_port: u16,
    pub(crate) sequence: u32,
    pub(crate) acknowledged: u32,
    pub(crate) window: u16,
    pub(crate) is_syn: bool,
    pub(crate) is_ack: bool,
    pub(crate) is_reset: bool,
    pub(crate) is_fin: bool,
    pub(crate) data_bytes: usize,
}

/// TCP header (RFC 9293, section 3.1).
#[derive(layout::Record)]
#[record(bytes = 20, order = "big")]
struct SegmentHeader {
    source_port: u16,
    destination_port: u16,
    sequence: u32,
    acknowledged: u32,
    control: Control,
    window: u16,
}

#[layout::bits(u16)]
struct Control {
    #[bit(0)]
    fin: bool,
    #[bit(1)]
    syn: bool,
    #[bit(2)]
    reset: bool,
    #[bit(4)]
    ack: bool,
    /// Data offset, in units of four bytes.
    #[bits(12..=15)]
    header_words: u8,
}

impl Segment {
    /// Parses the header of a segment; `None` if it is malformed.
    pub(crate) fn read(segment: &[u8]) -> Option<Segment> {
        let header = SegmentHeader::parse(segment)?;
        let SegmentHeader { source_port, destination_port, sequence, acknowledged, control, window } = header;
        let header_bytes = usize::from(control.header_words()) * 4;
        let found = Segment {
            source_port,
            destination_port,
            sequence,
            acknowledged,
            window,
            is_fin: control.fin(),
            is_syn: control.syn(),
            is_reset: control.reset(),
            is_ack: control.ack(),
            data_bytes: segment.len().checked_sub(header_bytes)?,
        };
        (header_bytes >= SegmentHeader::BYTES && found.source_port != 0 && found.destination_port != 0).then_some(found)
    }

    /// Returns the ends as seen by the receiver: its own first.
    pub(crate) fn ends(&self, header: &IpHeader) -> (End, End) {
        (End::new(header.destination, self.destination_port), End::new(header.source, self.source_port))
    }

    /// Returns the length of the segment in sequence space.
    pub(crate) fn sequence_bytes(&self) -> u32 {
        self.data_bytes as u32 + u32::from(self.is_syn) + u32::from(self.is_fin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version_6(next: u8, rest: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x60, 0, 0, 0, 0, rest.len() as u8, next, 64];
        packet.extend([0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        packet.extend([0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
        packet.extend(rest);
        packet
    }

    #[test]
    fn extension_headers_are_skipped() {
        let options = [17, 0, 5, 2, 0, 0, 1, 0];
        let packet = version_6(HOP_BY_HOP, &[&options[..], b"carried"].concat());
        let header = IpHeader::read(&packet).expect("a header");
        assert_eq!((u8::from(header.protocol), header.payload(&packet)), (17, &b"carried"[..]));
        assert!(header.has_extensions());
        assert_eq!(header.without_extensions(&packet), version_6(17, b"carried"));
        let unknown = [17, 0, 0xc5, 2, 0, 0, 1, 0];
        assert!(IpHeader::read(&version_6(DESTINATION, &unknown)).is_none());
        assert!(IpHeader::read(&version_6(ROUTING, &[17, 0, 0, 1, 0, 0, 0, 0])).is_none());
        assert!(IpHeader::read(&version_6(ROUTING, &[17, 0, 0, 0, 0, 0, 0, 0])).is_some());
        assert!(IpHeader::read(&version_6(DESTINATION, &[17, 9, 0, 0])).is_none());
        let endless: Vec<u8> = [DESTINATION, 0, 1, 4, 0, 0, 0, 0].repeat(20);
        assert!(IpHeader::read(&version_6(DESTINATION, &endless)).is_none());
    }

    #[test]
    fn fragments_are_recognized() {
        let packet = version_6(FRAGMENT, &[17, 0, 0, 0x11, 1, 2, 3, 4, 9, 9]);
        let header = IpHeader::read(&packet).expect("a header");
        let part = Fragment { identifier: 0x0102_0304, offset_bytes: 16, is_last: false };
        assert_eq!((header.fragment, header.payload(&packet)), (Some(part), &[9, 9][..]));
    }
}
