//! Offloads of a simulated network card: checksums and TSO.

use net_stack::{IpAddress, Outgoing};

use super::raw;

/// Returns the frames that a card makes of a packet.
pub fn frames(packet: &Outgoing<Vec<u8>>) -> Vec<Vec<u8>> {
    let whole = packet.buffer[..packet.length].to_vec();
    if !packet.needs_checksum {
        assert_eq!(packet.segment_bytes, 0, "a card that cuts makes checksums too");
        return vec![whole];
    }
    let is_version_4 = whole[14] >> 4 == 4;
    let protocol = if is_version_4 { whole[23] } else { whole[20] };
    let at = if is_version_4 { 34 } else { 54 };
    let end = match is_version_4 {
        true => 14 + usize::from(u16::from_be_bytes([whole[16], whole[17]])),
        false => 54 + usize::from(u16::from_be_bytes([whole[18], whole[19]])),
    };
    assert_eq!(end, whole.len(), "the length is that of the packet");
    let address = |from: usize| -> IpAddress {
        match is_version_4 {
            true => IpAddress::v4(whole[from], whole[from + 1], whole[from + 2], whole[from + 3]),
            false => {
                let octets: [u8; 16] = whole[from..from + 16].try_into().unwrap();
                std::net::IpAddr::from(octets).into()
            }
        }
    };
    let (source, destination) = if is_version_4 { (address(26), address(30)) } else { (address(22), address(38)) };
    let (to, from) = (whole[..6].try_into().unwrap(), whole[6..12].try_into().unwrap());
    let make = |payload: &[u8]| raw::ip(to, from, source, destination, protocol, payload);
    if packet.segment_bytes == 0 {
        return vec![make(&whole[at..])];
    }
    assert!(is_version_4 && protocol == 6, "only TCP over IPv4 is cut");
    let header_bytes = usize::from(whole[at + 12] >> 4) * 4;
    let (header, data) = whole[at..].split_at(header_bytes);
    let sequence = u32::from_be_bytes(header[4..8].try_into().unwrap());
    let pieces = data.chunks(packet.segment_bytes.into());
    let count = pieces.len();
    let cut = |(number, piece): (usize, &[u8])| {
        let mut segment = header.to_vec();
        let place = sequence.wrapping_add((number * usize::from(packet.segment_bytes)) as u32);
        segment[4..8].copy_from_slice(&place.to_be_bytes());
        if number + 1 < count {
            // Only the last one has FIN and PSH.
            segment[13] &= !0x09;
        }
        segment.extend(piece);
        make(&segment)
    };
    pieces.enumerate().map(cut).collect()
}
