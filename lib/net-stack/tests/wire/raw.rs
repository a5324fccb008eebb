//! Hand-built frames.
#![allow(dead_code)]

use net_stack::IpAddress;

/// Returns the one's complement sum of bytes, added to another.
pub fn sum(bytes: &[u8], start: u16) -> u16 {
    let mut sum = u32::from(start);
    for pair in bytes.chunks(2) {
        sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
    }
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}

/// Returns the bytes of an address.
pub fn octets(address: IpAddress) -> Vec<u8> {
    match address {
        IpAddress::Ipv4(address) => address.octets().to_vec(),
        IpAddress::Ipv6(address) => address.octets().to_vec(),
    }
}

/// Builds a frame with a packet of either version; the payload's checksum is computed where its protocol has one.
pub fn ip(
    to: [u8; 6],
    from: [u8; 6],
    source: IpAddress,
    destination: IpAddress,
    protocol: u8,
    payload: &[u8],
) -> Vec<u8> {
    let mut frame = [to, from].concat();
    let is_version_4 = matches!(source, IpAddress::Ipv4(_));
    let mut payload = payload.to_vec();
    let addresses = [octets(source), octets(destination)].concat();
    let place = match protocol {
        1 | 58 => 2,
        6 => 16,
        _ => 6,
    };
    let pseudo =
        if protocol == 1 { 0 } else { sum(&addresses, sum(&(payload.len() as u32).to_be_bytes(), protocol.into())) };
    payload[place..place + 2].fill(0);
    let value = !sum(&payload, pseudo);
    payload[place..place + 2].copy_from_slice(&value.to_be_bytes());
    if is_version_4 {
        frame.extend([8, 0]);
        let mut header = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0];
        header[2..4].copy_from_slice(&(20 + payload.len() as u16).to_be_bytes());
        header.extend(addresses);
        let value = !sum(&header, 0);
        header[10..12].copy_from_slice(&value.to_be_bytes());
        frame.extend(header);
    } else {
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
        frame.extend((payload.len() as u16).to_be_bytes());
        frame.extend([protocol, 64]);
        frame.extend(addresses);
    }
    frame.extend(payload);
    frame
}

/// Builds an ICMPv6 message: type and code, and the bytes after the checksum.
pub fn icmp_6(
    to: [u8; 6],
    from: [u8; 6],
    source: IpAddress,
    destination: IpAddress,
    hops: u8,
    kind: (u8, u8),
    rest: &[u8],
) -> Vec<u8> {
    let message = [&[kind.0, kind.1, 0, 0][..], rest].concat();
    let mut frame = ip(to, from, source, destination, 58, &message);
    frame[14 + 7] = hops;
    frame
}

/// Recomputes the checksum of an ICMPv6 message.
pub fn update_icmp_6_checksum(frame: &mut [u8]) {
    let length = (frame.len() - 54) as u32;
    frame[56..58].fill(0);
    let pseudo = sum(&frame[22..54], sum(&length.to_be_bytes(), 58));
    let value = !sum(&frame[54..], pseudo);
    frame[56..58].copy_from_slice(&value.to_be_bytes());
}

/// Builds a neighbour solicitation.
pub fn solicitation(source: IpAddress, target: IpAddress, hardware: Option<[u8; 6]>) -> Vec<u8> {
    let mut rest = vec![0; 4];
    let wanted = octets(target);
    rest.extend(&wanted);
    if let Some(hardware) = hardware {
        rest.extend([1, 1]);
        rest.extend(hardware);
    }
    let [a, b, c] = [wanted[13], wanted[14], wanted[15]];
    let group = format!("ff02::1:ff{a:02x}:{b:02x}{c:02x}").parse().expect("an address");
    let from = hardware.unwrap_or([2, 0, 0, 0, 0, 0x99]);
    icmp_6([0x33, 0x33, 0xff, a, b, c], from, source, group, 255, (135, 0), &rest)
}

/// Builds a neighbour advertisement.
pub fn advertisement(target: IpAddress, to: IpAddress, flags: u8, hardware: [u8; 6]) -> Vec<u8> {
    let mut rest = vec![flags, 0, 0, 0];
    rest.extend(octets(target));
    rest.extend([2, 1]);
    rest.extend(hardware);
    icmp_6([0x33, 0x33, 0, 0, 0, 1], hardware, target, to, 255, (136, 0), &rest)
}
