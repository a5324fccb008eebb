//! Frames of a link as lines of text: what was sent when, what it was, and what became of it.
//!
//! Deliberately not here: frames that are of neither ARP nor IPv4 are named by their type alone.

use std::fmt::Write as _;
use std::net::Ipv4Addr;

const ETHERNET_BYTES: usize = 14;
const ARP: u16 = 0x0806;
const IPV4: u16 = 0x0800;
const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
/// Flags of a TCP header (RFC 9293, section 3.1), as letters, from the lowest bit.
const FLAGS: [char; 6] = ['F', 'S', 'R', 'P', 'A', 'U'];

/// Returns the line of a frame. `from`: the number of the machine that sent it; `fate`: what became of it.
pub fn line(time_ns: u64, number: u64, from: usize, fate: &str, bytes: &[u8]) -> String {
    let what = describe(bytes).unwrap_or_else(|| format!("{} bytes", bytes.len()));
    format!("{:>14.6} {number} from {from}: {what}{fate}\n", time_ns as f64 / 1e9)
}

fn describe(frame: &[u8]) -> Option<String> {
    let packet = frame.get(ETHERNET_BYTES..)?;
    match word(frame, 12)? {
        ARP => describe_arp(packet),
        IPV4 => describe_ip(packet),
        other => Some(format!("type {other:04x}, {} bytes", packet.len())),
    }
}

fn describe_arp(packet: &[u8]) -> Option<String> {
    let (sender, target) = (address(packet, 14)?, address(packet, 24)?);
    let what = match word(packet, 6)? {
        1 => format!("who has {target}"),
        2 => format!("{sender} answers {target}"),
        other => format!("operation {other}"),
    };
    Some(format!("arp {sender} {what}"))
}

fn describe_ip(packet: &[u8]) -> Option<String> {
    let header_bytes = usize::from(packet.first()? & 15) * 4;
    let total_bytes = usize::from(word(packet, 2)?).min(packet.len());
    let content = packet.get(header_bytes..total_bytes)?;
    let (from, to) = (address(packet, 12)?, address(packet, 16)?);
    match packet.get(9)? {
        &TCP => describe_tcp(content, from, to),
        &UDP => Some(format!("udp {from}:{} > {to}:{}, {} bytes", word(content, 0)?, word(content, 2)?, content.len())),
        &ICMP => Some(format!("icmp {from} > {to} type {}", content.first()?)),
        other => Some(format!("protocol {other} {from} > {to}, {} bytes", content.len())),
    }
}

fn describe_tcp(segment: &[u8], from: Ipv4Addr, to: Ipv4Addr) -> Option<String> {
    let double = |at| Some(u32::from(word(segment, at)?) << 16 | u32::from(word(segment, at + 2)?));
    let header_bytes = usize::from(segment.get(12)? >> 4) * 4;
    let bits = segment.get(13)?;
    let flags: String = (0..).zip(FLAGS).filter(|(bit, _)| bits >> bit & 1 == 1).map(|(_, letter)| letter).collect();
    let mut text = format!("tcp {from}:{} > {to}:{} {flags} seq {}", word(segment, 0)?, word(segment, 2)?, double(4)?);
    let _ = write!(
        text,
        " ack {} window {}, {} bytes",
        double(8)?,
        word(segment, 14)?,
        segment.len().checked_sub(header_bytes)?
    );
    Some(text)
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn address(bytes: &[u8], at: usize) -> Option<Ipv4Addr> {
    Some(Ipv4Addr::from(<[u8; 4]>::try_from(bytes.get(at..at + 4)?).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_named_by_what_they_carry() {
        let mut frame = vec![0; ETHERNET_BYTES];
        frame[12..14].copy_from_slice(&[8, 0]);
        frame.extend([0x45, 0, 0, 43, 0, 0, 0, 0, 64, TCP, 0, 0, 192, 168, 77, 11, 192, 168, 77, 12]);
        frame.extend([0, 80, 4, 210, 0, 0, 0, 7, 0, 0, 0, 9, 0x50, 0x12, 1, 0, 0, 0, 0, 0, b'a', b'b', b'c']);
        let said = line(1_500_000_000, 3, 1, "; lost", &frame);
        let tcp = "tcp 192.168.77.11:80 > 192.168.77.12:1234 SA seq 7 ack 9 window 256, 3 bytes";
        assert_eq!(said, format!("      1.500000 3 from 1: {tcp}; lost\n"));
        // A damaged header says what is left to say.
        (0..frame.len()).for_each(|length| assert!(line(0, 0, 1, "", &frame[..length]).ends_with('\n')));
        frame[14] = 0x4f;
        assert!(line(0, 0, 1, "", &frame).contains("57 bytes"));
        frame[12..14].copy_from_slice(&[0x86, 0xdd]);
        assert!(line(0, 0, 1, "", &frame).contains("type 86dd, 43 bytes"));
    }
}
