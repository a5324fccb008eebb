//! Locates the TCP or UDP checksum of a packet and its payload, for a device with checksum and segmentation offload.
//!
//! Deliberately not here: checksums and segmentation.

use sip::device::packets::Treatment;

const ETHERNET_BYTES: usize = 14;
const VERSION_4: [u8; 2] = [0x08, 0x00];
const VERSION_6: [u8; 2] = [0x86, 0xdd];
const VERSION_6_BYTES: usize = 40;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// Returns the offload request for a packet, with segmentation unless `segment_bytes` is 0; `None` if the packet
/// is neither TCP nor UDP, or ends before its payload.
pub fn treatment(packet: &[u8], segment_bytes: u16) -> Option<Treatment> {
    let kind: [u8; 2] = packet.get(12..ETHERNET_BYTES)?.try_into().ok()?;
    let first = *packet.get(ETHERNET_BYTES)?;
    let (header_bytes, protocol_at) = match kind {
        VERSION_4 => (usize::from(first & 0xf) * 4, ETHERNET_BYTES + 9),
        VERSION_6 => (VERSION_6_BYTES, ETHERNET_BYTES + 6),
        _ => return None,
    };
    let checksum_offset = match *packet.get(protocol_at)? {
        TCP => 16,
        UDP => 6,
        _ => return None,
    };
    let start = ETHERNET_BYTES + header_bytes;
    // Both bytes of the checksum are in the packet.
    packet.get(start + usize::from(checksum_offset) + 1)?;
    let checksum_start = u16::try_from(start).ok()?;
    let whole = Treatment { checksum_start, checksum_offset, ..Treatment::default() };
    if segment_bytes == 0 || packet[protocol_at] != TCP {
        return Some(whole);
    }
    let payload = start + usize::from(*packet.get(start + 12)? >> 4) * 4;
    packet.get(payload)?;
    let header_bytes = u8::try_from(payload).ok()?;
    Some(Treatment { segment_bytes, header_bytes, version_6: kind == VERSION_6, ..whole })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(kind: [u8; 2], first: u8, protocol_at: usize, protocol: u8) -> [u8; 128] {
        let mut packet = [0; 128];
        packet[12..14].copy_from_slice(&kind);
        packet[14] = first;
        packet[protocol_at] = protocol;
        packet
    }

    #[test]
    fn the_checksum_field_is_located() {
        let places = |packet: &[u8]| treatment(packet, 0).map(|found| (found.checksum_start, found.checksum_offset));
        assert_eq!(places(&packet(VERSION_4, 0x45, 23, TCP)), Some((34, 16)));
        assert_eq!(places(&packet(VERSION_4, 0x4f, 23, UDP)), Some((74, 6)));
        assert_eq!(places(&packet(VERSION_6, 0x60, 20, TCP)), Some((54, 16)));
        assert_eq!(places(&packet(VERSION_4, 0x45, 23, 1)), None);
        assert_eq!(places(&packet([0x08, 0x06], 0x45, 23, TCP)), None);
    }

    #[test]
    fn a_long_packet_is_segmented_after_its_headers() {
        for (kind, first, protocol_at, start) in [(VERSION_4, 0x45, 23, 34), (VERSION_6, 0x60, 20, 54)] {
            let mut long = packet(kind, first, protocol_at, TCP);
            long[start + 12] = 8 << 4;
            let found = treatment(&long, 1000).expect("a whole packet");
            assert_eq!((found.segment_bytes, usize::from(found.header_bytes)), (1000, start + 32));
            assert_eq!(found.version_6, kind == VERSION_6);
            assert_eq!(treatment(&long[..start + 32], 1000), None, "there is nothing to segment");
        }
    }

    #[test]
    fn a_truncated_packet_has_none() {
        let whole = packet(VERSION_4, 0x45, 23, TCP);
        for length in 0..52 {
            assert_eq!(treatment(&whole[..length], 0), None, "{length}");
        }
        assert!(treatment(&whole[..52], 0).is_some());
    }
}
