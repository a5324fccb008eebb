//! Size limits of buffers and packets.

use contracts::Packet;

/// Bytes of an Ethernet header with a VLAN tag.
pub const ETHERNET_HEADER_BYTES: usize = 18;
/// Maximum bytes of a packet that the card segments: a maximal IP packet with its Ethernet header.
const MAX_SEGMENTED_BYTES: usize = u16::MAX as usize + ETHERNET_HEADER_BYTES;

/// Returns the maximum bytes of a packet with its Ethernet header.
pub fn packet_bytes(mtu: u32) -> usize {
    mtu as usize + ETHERNET_HEADER_BYTES
}

/// Returns the maximum bytes of a packet to send from a buffer of this size, with the offloads of its record.
pub fn max_length(record: &Packet, buffer_bytes: usize, packet_bytes: usize) -> usize {
    buffer_bytes.min(if record.segment_bytes == 0 { packet_bytes } else { MAX_SEGMENTED_BYTES })
}

/// Checks the length of a packet to send.
///
/// # Errors
/// The maximum, if the length is 0 or greater.
pub fn check_length(record: &Packet, buffer_bytes: usize, packet_bytes: usize) -> Result<(), usize> {
    let most = max_length(record, buffer_bytes, packet_bytes);
    if record.length == 0 || record.length as usize > most { Err(most) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use contracts::PacketFlags;

    use super::*;

    #[test]
    fn a_packet_fits_its_buffer_and_the_card() {
        let check = |length, segment_bytes, buffer| {
            let record = Packet { received_ns: 0, length, flags: PacketFlags::empty(), segment_bytes };
            check_length(&record, buffer, packet_bytes(1500))
        };
        assert_eq!(check(1518, 0, 4096), Ok(()));
        assert_eq!(check(1519, 0, 4096), Err(1518));
        assert_eq!(check(0, 0, 4096), Err(1518));
        assert_eq!(check(100, 0, 99), Err(99));
        assert_eq!(check(65553, 1460, 1 << 17), Ok(()));
        assert_eq!(check(65554, 1460, 1 << 17), Err(65553));
        assert_eq!(check(1519, 1460, 1518), Err(1518));
    }
}
