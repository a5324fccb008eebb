//! The link's own station: a server of addresses (RFC 2131). Each machine gets the address that its number says.
//!
//! Deliberately not here: leases that end, and anything but DISCOVER and REQUEST.

use std::net::Ipv4Addr;

const ETHERNET_BYTES: usize = 14;
const IP_BYTES: usize = 20;
const UDP_BYTES: usize = 8;
/// Offsets in the message: the transaction and what follows it, the client's hardware address, the magic number.
const TRANSACTION: usize = 4;
const HARDWARE: usize = 28;
const MAGIC_AT: usize = 236;
const OPTIONS_AT: usize = 240;
const MAGIC: [u8; 4] = [99, 130, 83, 99];
/// Ports of server and client.
const PORTS: [u8; 4] = [0, 67, 0, 68];
const DISCOVER: u8 = 1;
const OFFER: u8 = 2;
const REQUEST: u8 = 3;
const ACK: u8 = 5;
const OPTION_TYPE: u8 = 53;
const OPTION_PAD: u8 = 0;
const OPTION_END: u8 = 255;
/// Its own address.
const SERVER: Ipv4Addr = Ipv4Addr::new(192, 168, 77, 1);
const LEASE_S: u32 = 600;

/// Returns the address of a station.
pub fn address_of(station: u8) -> Ipv4Addr {
    let [first, second, third, _] = SERVER.octets();
    Ipv4Addr::new(first, second, third, 10 + station)
}

/// Returns the frame that answers one, if it asks for an address.
pub fn answer(frame: &[u8]) -> Option<Vec<u8>> {
    let packet = frame.get(ETHERNET_BYTES..).filter(|_| frame.get(12..14) == Some(&[8, 0]))?;
    let header = packet.first().filter(|&&first| first >> 4 == 4).map(|first| usize::from(first & 15) * 4)?;
    let datagram = packet.get(header..).filter(|_| packet.get(9) == Some(&17))?;
    let message = datagram.get(UDP_BYTES..).filter(|_| datagram.get(2..4) == Some(&PORTS[..2]))?;
    if message.get(MAGIC_AT..OPTIONS_AT) != Some(&MAGIC) || message.first() != Some(&1) {
        return None;
    }
    let reply = match option(message.get(OPTIONS_AT..)?, OPTION_TYPE)? {
        [DISCOVER] => OFFER,
        [REQUEST] => ACK,
        _ => return None,
    };
    let hardware: [u8; 6] = message.get(HARDWARE..HARDWARE + 6)?.try_into().ok()?;
    Some(reply_frame(message.get(TRANSACTION..TRANSACTION + 4)?, hardware, reply))
}

/// Returns the value of an option.
fn option(options: &[u8], wanted: u8) -> Option<&[u8]> {
    match options {
        [OPTION_PAD, rest @ ..] => option(rest, wanted),
        [OPTION_END, ..] | [] | [_] => None,
        [kind, length, rest @ ..] => {
            let (value, rest) = rest.split_at_checked(usize::from(*length))?;
            if *kind == wanted { Some(value) } else { option(rest, wanted) }
        }
    }
}

fn reply_frame(transaction: &[u8], hardware: [u8; 6], reply: u8) -> Vec<u8> {
    let server = SERVER.octets();
    let mut message = vec![0; OPTIONS_AT];
    message[..4].copy_from_slice(&[2, 1, 6, 0]);
    message[TRANSACTION..TRANSACTION + 4].copy_from_slice(transaction);
    message[16..20].copy_from_slice(&address_of(hardware[5]).octets());
    message[20..24].copy_from_slice(&server);
    message[HARDWARE..HARDWARE + 6].copy_from_slice(&hardware);
    message[MAGIC_AT..].copy_from_slice(&MAGIC);
    let lease = LEASE_S.to_be_bytes();
    for (kind, value) in [(OPTION_TYPE, &[reply][..]), (54, &server), (51, &lease), (1, &[255, 255, 255, 0])] {
        // Options are short.
        message.extend([kind, value.len() as u8]);
        message.extend(value);
    }
    message.push(OPTION_END);
    // Of a message of this size: far below 2^16.
    let datagram_bytes = ((UDP_BYTES + message.len()) as u16).to_be_bytes();
    let packet_bytes = ((IP_BYTES + UDP_BYTES + message.len()) as u16).to_be_bytes();
    let mut header = vec![0x45, 0, packet_bytes[0], packet_bytes[1], 0, 0, 0, 0, 64, 17, 0, 0];
    header.extend(server);
    header.extend([255; 4]);
    let sum = checksum(&header).to_be_bytes();
    header[10..12].copy_from_slice(&sum);
    let mut frame = vec![255; 6];
    frame.extend(simulated_link::address_of(0));
    frame.extend([8, 0]);
    frame.extend(header);
    frame.extend(PORTS);
    frame.extend(datagram_bytes);
    // Without a checksum, which IPv4 allows (RFC 768).
    frame.extend([0, 0]);
    frame.extend(message);
    frame
}

/// The checksum of an IPv4 header (RFC 1071), whose own field is 0.
fn checksum(header: &[u8]) -> u16 {
    let words = header.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(kind: u8) -> Vec<u8> {
        let mut frame = vec![0; ETHERNET_BYTES + IP_BYTES + UDP_BYTES + OPTIONS_AT];
        frame[12] = 8;
        frame[14] = 0x45;
        frame[23] = 17;
        frame[37] = 67;
        let message = ETHERNET_BYTES + IP_BYTES + UDP_BYTES;
        frame[message] = 1;
        frame[message + TRANSACTION..][..4].copy_from_slice(&[1, 2, 3, 4]);
        frame[message + HARDWARE..][..6].copy_from_slice(&simulated_link::address_of(2));
        frame[message + MAGIC_AT..].copy_from_slice(&MAGIC);
        frame.extend([OPTION_PAD, OPTION_TYPE, 1, kind, OPTION_END]);
        frame
    }

    #[test]
    fn a_machine_is_offered_the_address_of_its_number() {
        for (asked, answered) in [(DISCOVER, OFFER), (REQUEST, ACK)] {
            let frame = answer(&question(asked)).expect("an answer");
            let message = &frame[ETHERNET_BYTES + IP_BYTES + UDP_BYTES..];
            assert_eq!(message[16..20], [192, 168, 77, 12]);
            assert_eq!(message[TRANSACTION..TRANSACTION + 4], [1, 2, 3, 4]);
            assert_eq!(option(&message[OPTIONS_AT..], OPTION_TYPE), Some(&[answered][..]));
            assert_eq!(checksum(&frame[ETHERNET_BYTES..ETHERNET_BYTES + IP_BYTES]), 0);
        }
        assert_eq!(answer(&question(7)), None);
    }

    #[test]
    fn what_is_cut_off_or_damaged_is_no_question() {
        let whole = question(DISCOVER);
        for end in 0..whole.len() - 1 {
            assert_eq!(answer(&whole[..end]), None, "{end}");
        }
        for at in 0..whole.len() * 8 {
            let mut damaged = whole.clone();
            damaged[at / 8] ^= 1 << (at % 8);
            let _ = answer(&damaged);
        }
    }
}
