//! Where a packet's checksum of TCP or UDP is, for a device that fills it in.
//!
//! Deliberately not here: checksums themselves.

use sip::device::packets::Treatment;

const ETHERNET_BYTES: usize = 14;
const VERSION_4: [u8; 2] = [0x08, 0x00];
const VERSION_6: [u8; 2] = [0x86, 0xdd];
const VERSION_6_BYTES: usize = 40;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// Tells the device where the checksum is; nothing where the packet is none of TCP or UDP, or ends before it.
pub fn treatment(packet: &[u8]) -> Option<Treatment> {
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
    Some(Treatment { checksum_start, checksum_offset, ..Treatment::default() })
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
    fn the_checksum_is_behind_the_headers() {
        let places = |packet: &[u8]| treatment(packet).map(|found| (found.checksum_start, found.checksum_offset));
        assert_eq!(places(&packet(VERSION_4, 0x45, 23, TCP)), Some((34, 16)));
        assert_eq!(places(&packet(VERSION_4, 0x4f, 23, UDP)), Some((74, 6)));
        assert_eq!(places(&packet(VERSION_6, 0x60, 20, TCP)), Some((54, 16)));
        assert_eq!(places(&packet(VERSION_4, 0x45, 23, 1)), None);
        assert_eq!(places(&packet([0x08, 0x06], 0x45, 23, TCP)), None);
    }

    #[test]
    fn a_packet_that_ends_before_has_none() {
        let whole = packet(VERSION_4, 0x45, 23, TCP);
        for length in 0..52 {
            assert_eq!(treatment(&whole[..length]), None, "{length}");
        }
        assert!(treatment(&whole[..52]).is_some());
    }
}
