//! The Internet checksum (RFC 1071), and its offset in a packet.

use smoltcp::wire::IpProtocol;

use crate::packet::IpHeader;

/// Returns the one's complement sum of `bytes`, added to `start`. Not complemented.
pub(crate) fn sum(bytes: &[u8], start: u16) -> u16 {
    // A sum of longer words folds to the sum of their 16-bit words, and byte order does not matter as long as it is
    // the same for all. So native order and the longest words are used, four at a time.
    let (total, bytes) = sum_of_long_words(bytes);
    let mut total = u64::from(fold(total));
    let mut chunks = bytes.chunks_exact(4);
    for chunk in &mut chunks {
        total += u64::from(u32::from_ne_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]));
    }
    let mut rest = [0; 4];
    rest[..chunks.remainder().len()].copy_from_slice(chunks.remainder());
    total += u64::from(u32::from_ne_bytes(rest));
    add(u16::from_be(fold(total)), start)
}

/// Returns the one's complement sum of all whole groups of four long words, and the remaining bytes.
fn sum_of_long_words(bytes: &[u8]) -> (u64, &[u8]) {
    let (fours, rest) = bytes.as_chunks::<32>();
    let mut sums = [0_u64; 4];
    for four in fours {
        for (sum, word) in sums.iter_mut().zip(four.as_chunks::<8>().0) {
            *sum = add_long(*sum, u64::from_ne_bytes(*word));
        }
    }
    (sums.into_iter().fold(0, add_long), rest)
}

/// Adds with end-around carry.
fn add_long(one: u64, other: u64) -> u64 {
    let (sum, is_carried) = one.overflowing_add(other);
    sum + u64::from(is_carried)
}

fn fold(mut total: u64) -> u16 {
    while total > u64::from(u16::MAX) {
        total = (total >> 16) + (total & 0xffff);
    }
    total as u16
}

/// Returns the one's complement sum of two sums.
pub(crate) fn add(one: u16, other: u16) -> u16 {
    fold(u64::from(one) + u64::from(other))
}

/// Returns the sum of the pseudo header for the payload of an IP packet.
pub(crate) fn pseudo(packet: &[u8], header: &IpHeader) -> u16 {
    let addresses = header.addresses(packet);
    let length = header.payload_bytes as u32;
    let tail = [(length >> 16) as u16, length as u16, u16::from(u8::from(header.protocol))];
    tail.iter().fold(sum(addresses, 0), |total, word| add(total, *word))
}

/// Returns the offset of the checksum in the payload; `None` for protocols not handled here.
fn field(protocol: IpProtocol) -> Option<usize> {
    match protocol {
        IpProtocol::Tcp => Some(16),
        IpProtocol::Udp => Some(6),
        IpProtocol::Icmpv6 => Some(2),
        _ => None,
    }
}

/// Verifies the TCP, UDP or ICMPv6 checksum of a packet.
pub(crate) fn is_right(packet: &[u8], header: &IpHeader) -> bool {
    let payload = header.payload(packet);
    let Some(place) = field(header.protocol).and_then(|at| payload.get(at..at + 2)) else { return false };
    if header.protocol == IpProtocol::Udp && place == [0, 0] {
        // No checksum, which only IPv4 permits.
        return header.is_version_4();
    }
    sum(payload, pseudo(packet, header)) == u16::MAX
}

/// Who computes the checksum of an outgoing packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Maker {
    /// This stack, in software.
    Stack,
    /// The network interface (checksum offload), which expects the pseudo-header sum in the field.
    Interface,
}

/// Fills in the TCP or UDP checksum of a packet.
pub(crate) fn fill(packet: &mut [u8], header: &IpHeader, maker: Maker) {
    let Some(at) = field(header.protocol).map(|at| header.header_bytes + at) else { return };
    if packet.len() < at + 2 {
        return;
    }
    packet[at..at + 2].fill(0);
    let pseudo = pseudo(packet, header);
    let value = match maker {
        Maker::Interface => pseudo,
        Maker::Stack => match !sum(header.payload(packet), pseudo) {
            // In UDP, 0 means no checksum.
            0 if header.protocol == IpProtocol::Udp => u16::MAX,
            value => value,
        },
    };
    packet[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_matches_rfc_1071() {
        assert_eq!(sum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7], 0), 0xddf2);
    }

    #[test]
    fn every_length_is_summed_as_words() {
        let bytes: Vec<u8> = (0..251u8).map(|number| number.wrapping_mul(53) | 0x80).collect();
        for length in 0..bytes.len() {
            let words = bytes[..length].chunks(2);
            let slow = words
                .fold(0, |total, word| add(total, u16::from(word[0]) << 8 | u16::from(*word.get(1).unwrap_or(&0))));
            assert_eq!(sum(&bytes[..length], 0), slow, "{length} bytes");
        }
    }
}
