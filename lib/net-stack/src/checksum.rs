//! The Internet checksum (RFC 1071), and where it is in a packet.

use smoltcp::wire::IpProtocol;

use crate::packet::IpHeader;

/// The one's complement sum of bytes, on top of another sum. Not complemented.
pub(crate) fn sum(bytes: &[u8], start: u16) -> u16 {
    // A sum of longer words folds to the sum of their 16-bit words, and the order of bytes in a word does not matter
    // as long as it is the same for all: so the processor's own is taken, in its longest words, four at a time.
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

/// The one's complement sum of as many bytes as there are whole fours of long words in, and the rest of them.
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

/// What is carried out of a word is carried in again at its lower end.
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

/// The one's complement sum of two sums.
pub(crate) fn add(one: u16, other: u16) -> u16 {
    fold(u64::from(one) + u64::from(other))
}

/// The sum of the pseudo header of what an IP packet carries.
pub(crate) fn pseudo(packet: &[u8], header: &IpHeader) -> u16 {
    let addresses = header.addresses(packet);
    let length = header.payload_bytes as u32;
    let tail = [(length >> 16) as u16, length as u16, u16::from(u8::from(header.protocol))];
    tail.iter().fold(sum(addresses, 0), |total, word| add(total, *word))
}

/// Where the checksum is in what the packet carries; nothing where this part of the stack does not know the protocol.
fn field(protocol: IpProtocol) -> Option<usize> {
    match protocol {
        IpProtocol::Tcp => Some(16),
        IpProtocol::Udp => Some(6),
        IpProtocol::Icmpv6 => Some(2),
        _ => None,
    }
}

/// Whether the checksum of a packet's TCP, UDP or ICMPv6 is right.
pub(crate) fn is_right(packet: &[u8], header: &IpHeader) -> bool {
    let payload = header.payload(packet);
    let Some(place) = field(header.protocol).and_then(|at| payload.get(at..at + 2)) else { return false };
    if header.protocol == IpProtocol::Udp && place == [0, 0] {
        // None was made, which is allowed with IPv4 alone.
        return header.is_version_4();
    }
    sum(payload, pseudo(packet, header)) == u16::MAX
}

/// Who makes the checksum of a packet to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Maker {
    /// This stack.
    Stack,
    /// The network interface, which needs the sum of the pseudo header in the field.
    Interface,
}

/// Fills in the checksum of a packet's TCP or UDP.
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
            // With UDP 0 says that there is none.
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
    fn the_sum_is_that_of_rfc_1071() {
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
