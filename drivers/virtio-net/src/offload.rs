//! The device's header of each packet: offload requests when sending, verification results when receiving (virtio 1.2,
//! section 5.1.6).
//!
//! A client's request is validated against the packet, because a device may trust such a header.
//! Deliberately not here: checksums and segmentation.

/// Length of the header in bytes.
pub const BYTES: usize = Header::BYTES;

/// `struct virtio_net_hdr`.
#[derive(Default, layout::Record)]
#[record(bytes = 12, order = "little")]
struct Header {
    flags: Flags,
    /// GSO type: [`GSO_TCP_V4`] or [`GSO_TCP_V6`]; 0: none.
    gso: u8,
    /// Length of all headers, which each segment gets.
    header_bytes: u16,
    /// Maximum payload of a segment in bytes.
    segment_bytes: u16,
    /// Offset from which the checksum is computed.
    checksum_start: u16,
    /// Offset of the checksum field from `checksum_start`.
    checksum_offset: u16,
    /// Number of buffers of a received packet.
    buffers: u16,
}

#[layout::bits(u8)]
struct Flags {
    /// The checksum has to be computed.
    #[bit(0)]
    needs_checksum: bool,
    /// The checksums were verified.
    #[bit(1)]
    data_valid: bool,
}

/// Offloads that a client requests for one packet to send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// Fill in the checksum of TCP or UDP.
    pub checksum: bool,
    /// Split the packet into segments with this maximum payload in bytes; 0: do not.
    pub segment_bytes: u16,
}

/// Offloads of a device; see `NicDevice.DeviceInfo`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offered {
    /// Checksums of TCP and UDP.
    pub checksum: bool,
    /// TCP segmentation for IPv4.
    pub segmentation_version_4: bool,
    /// TCP segmentation for IPv6.
    pub segmentation_version_6: bool,
}

const GSO_TCP_V4: u8 = 1;
const GSO_TCP_V6: u8 = 4;

const ETHERNET_BYTES: usize = 14;
const VLAN_BYTES: usize = 4;
const VLAN: u16 = 0x8100;
const VERSION_4: u16 = 0x0800;
const VERSION_6: u16 = 0x86dd;
const VERSION_6_BYTES: usize = 40;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// Layout of a packet.
struct Place {
    is_version_6: bool,
    is_tcp: bool,
    /// Offset of the TCP or UDP header.
    start: usize,
    /// Offset of its payload.
    payload: usize,
}

fn word(packet: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*packet.get(at)?, *packet.get(at + 1)?]))
}

/// Parses the headers; `None` if it is not a TCP or UDP packet with complete headers.
fn find(packet: &[u8]) -> Option<Place> {
    let (kind, ip) = match word(packet, 12)? {
        VLAN => (word(packet, 12 + VLAN_BYTES)?, ETHERNET_BYTES + VLAN_BYTES),
        kind => (kind, ETHERNET_BYTES),
    };
    let (protocol, header_bytes) = match kind {
        VERSION_4 => (*packet.get(ip + 9)?, usize::from(*packet.get(ip)? & 15) * 4),
        VERSION_6 => (*packet.get(ip + 6)?, VERSION_6_BYTES),
        _ => return None,
    };
    let start = ip + header_bytes;
    let own_bytes = match protocol {
        TCP => usize::from(*packet.get(start + 12)? >> 4) * 4,
        UDP => 8,
        _ => return None,
    };
    let is_whole = header_bytes >= 20 && own_bytes >= 8 && start + own_bytes <= packet.len();
    let place = Place { is_version_6: kind == VERSION_6, is_tcp: protocol == TCP, start, payload: start + own_bytes };
    (is_whole && (!place.is_tcp || own_bytes >= 20)).then_some(place)
}

/// Builds the header of a packet to send, which starts with its Ethernet header. `None` if the packet does not match
/// the request, or the device does not offer it.
pub fn header(packet: &[u8], request: Request, offered: Offered) -> Option<[u8; BYTES]> {
    if request == Request::default() {
        return Some([0; BYTES]);
    }
    let place = find(packet).filter(|_| request.checksum && offered.checksum)?;
    let place_in = |place: usize| u16::try_from(place).unwrap_or(u16::MAX);
    let header = Header {
        flags: Flags::NONE.with_needs_checksum(true),
        checksum_start: place_in(place.start),
        checksum_offset: if place.is_tcp { 16 } else { 6 },
        ..Header::default()
    };
    if request.segment_bytes == 0 {
        return Some(header.to_bytes());
    }
    let is_possible = if place.is_version_6 { offered.segmentation_version_6 } else { offered.segmentation_version_4 };
    if !is_possible || !place.is_tcp || place.payload >= packet.len() {
        return None;
    }
    let gso = if place.is_version_6 { GSO_TCP_V6 } else { GSO_TCP_V4 };
    let header = Header { gso, header_bytes: place_in(place.payload), segment_bytes: request.segment_bytes, ..header };
    Some(header.to_bytes())
}

/// Returns whether the device has verified a received packet's checksums, or has passed on a partial one: then the
/// packet has never left the machine.
pub fn is_checked(header: &[u8]) -> bool {
    let flags = header.first().map_or(Flags::NONE, |&flags| Flags::from_bits(flags));
    flags.needs_checksum() || flags.data_valid()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;

    const ALL: Offered = Offered { checksum: true, segmentation_version_4: true, segmentation_version_6: true };

    fn packet(is_version_6: bool, protocol: u8, payload: usize) -> Vec<u8> {
        let mut packet = vec![0; ETHERNET_BYTES];
        let own_bytes = if protocol == TCP { 32 } else { 8 };
        if is_version_6 {
            packet[12..].copy_from_slice(&VERSION_6.to_be_bytes());
            packet.extend([0x60, 0, 0, 0, 0, 0, protocol, 64]);
            packet.resize(ETHERNET_BYTES + VERSION_6_BYTES, 0);
        } else {
            packet[12..].copy_from_slice(&VERSION_4.to_be_bytes());
            packet.extend([0x45, 0, 0, 0, 0, 0, 0, 0, 64, protocol]);
            packet.resize(ETHERNET_BYTES + 20, 0);
        }
        let start = packet.len();
        packet.resize(start + own_bytes, 0);
        if protocol == TCP {
            packet[start + 12] = 8 << 4;
        }
        packet.resize(start + own_bytes + payload, 7);
        packet
    }

    #[test]
    fn a_packet_without_offloads_has_an_empty_header() {
        assert_eq!(header(&[], Request::default(), Offered::default()), Some([0; BYTES]));
    }

    #[test]
    fn the_checksum_field_is_located() {
        let request = Request { checksum: true, segment_bytes: 0 };
        let tcp = header(&packet(false, TCP, 5), request, ALL);
        assert_eq!(tcp, Some([1, 0, 0, 0, 0, 0, 34, 0, 16, 0, 0, 0]));
        let udp = header(&packet(true, UDP, 5), request, ALL);
        assert_eq!(udp, Some([1, 0, 0, 0, 0, 0, 54, 0, 6, 0, 0, 0]));
    }

    #[test]
    fn long_packets_are_segmented() {
        let request = Request { checksum: true, segment_bytes: 1448 };
        let sent = header(&packet(false, TCP, 4000), request, ALL);
        assert_eq!(sent, Some([1, 1, 66, 0, 0xa8, 0x05, 34, 0, 16, 0, 0, 0]));
        let sent = header(&packet(true, TCP, 4000), request, ALL);
        assert_eq!(sent, Some([1, 4, 86, 0, 0xa8, 0x05, 54, 0, 16, 0, 0, 0]));
        let only_4 = Offered { segmentation_version_6: false, ..ALL };
        assert_eq!(header(&packet(true, TCP, 4000), request, only_4), None);
    }

    #[test]
    fn truncated_and_mismatched_packets_are_refused() {
        let request = Request { checksum: true, segment_bytes: 1448 };
        assert_eq!(header(&packet(false, UDP, 4000), request, ALL), None);
        assert_eq!(header(&packet(false, TCP, 0), request, ALL), None);
        assert_eq!(header(&packet(false, 1, 4000), request, ALL), None);
        assert_eq!(header(&packet(false, TCP, 9), request, Offered::default()), None);
        for is_version_6 in [false, true] {
            let whole = packet(is_version_6, TCP, 1);
            for length in 0..whole.len() {
                assert_eq!(header(&whole[..length], request, ALL), None, "{length} bytes");
            }
        }
    }

    #[test]
    fn received_packets_are_checked_if_flagged() {
        assert!(is_checked(&[2]) && is_checked(&[1]));
        assert!(!is_checked(&[0]) && !is_checked(&[]));
    }
}
