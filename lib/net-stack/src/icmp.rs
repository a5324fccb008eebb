//! Messages of ICMP, of both versions: how they are sent, and what errors say of packets that were sent before.
//!
//! Anybody can send an error, so what one says is believed only by whom it belongs to and as far as the part of the
//! packet that it quotes fits (RFC 5927). Deliberately not here: echoes, and what follows from an error.

use smoltcp::wire::{IpAddress, IpProtocol, IpRepr};

use crate::checksum;
use crate::output::{Buffer, Output};
use crate::packet::IpHeader;
use crate::udp::only_ip;

/// Bytes of the fixed part of every message.
pub(crate) const HEADER_BYTES: usize = 8;
/// Errors that are sent in a row, and how many more there may be in a second (RFC 4443, 2.4 f).
const MAX_ERRORS: u64 = 50;
const ERRORS_A_SECOND: u64 = 100;
/// Bytes of a packet that an error quotes: it has to fit into the smallest packet every host takes.
const QUOTED_4: usize = 576 - 20 - HEADER_BYTES;
const QUOTED_6: usize = 1280 - 40 - HEADER_BYTES;

/// A message to send.
pub(crate) struct Message<'a> {
    pub(crate) from: IpAddress,
    pub(crate) to: IpAddress,
    pub(crate) hops: u8,
    pub(crate) kind: u8,
    pub(crate) code: u8,
    /// What comes after the checksum.
    pub(crate) fields: [u8; 4],
    pub(crate) data: &'a [u8],
}

impl Message<'_> {
    /// Sends it. With no buffer left it is lost.
    pub(crate) fn send<B: Buffer>(&self, output: &mut Output<B>) {
        if !output.has_room() {
            output.counters.without_buffer += 1;
            return;
        }
        let is_version_4 = matches!(self.from, IpAddress::Ipv4(_));
        let protocol = if is_version_4 { IpProtocol::Icmp } else { IpProtocol::Icmpv6 };
        let ip = IpRepr::new(self.from, self.to, protocol, HEADER_BYTES + self.data.len(), self.hops);
        output.send(ip.buffer_len(), 0, |packet| {
            ip.emit(&mut *packet, &only_ip());
            let place = &mut packet[ip.header_len()..];
            place[..4].copy_from_slice(&[self.kind, self.code, 0, 0]);
            place[4..HEADER_BYTES].copy_from_slice(&self.fields);
            place[HEADER_BYTES..].copy_from_slice(self.data);
            let start = match IpHeader::read(packet) {
                Some(header) if !is_version_4 => checksum::pseudo(packet, &header),
                _ => 0,
            };
            let place = &mut packet[ip.header_len()..];
            let sum = !checksum::sum(place, start);
            place[2..4].copy_from_slice(&sum.to_be_bytes());
        });
    }
}

/// What an error says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ErrorKind {
    /// Nobody is at that port, or that protocol is not there.
    Refused,
    /// There is no way there, or none is allowed.
    Unreachable,
    /// The neighbour that would have passed it on did not say where it is, or what it said was lost.
    Silent,
    /// The packet was longer than the way carries; so much it does. 0: it was not said.
    TooLong {
        /// The longest packet that gets through.
        mtu: usize,
    },
}

/// An error about a packet of this machine.
pub(crate) struct Error<'a> {
    pub(crate) kind: ErrorKind,
    /// The header of the packet that it is about.
    pub(crate) header: IpHeader,
    /// What that packet carried, as far as it is quoted: at least 8 bytes.
    pub(crate) payload: &'a [u8],
    /// The length of that packet.
    pub(crate) length: usize,
}

impl Error<'_> {
    /// The ports of the packet: its sender's and its receiver's.
    pub(crate) fn ports(&self) -> (u16, u16) {
        let word = |at: usize| u16::from_be_bytes([self.payload[at], self.payload[at + 1]]);
        (word(0), word(2))
    }

    /// Of a segment of TCP: the number of its first byte.
    pub(crate) fn sequence(&self) -> u32 {
        u32::from_be_bytes([self.payload[4], self.payload[5], self.payload[6], self.payload[7]])
    }
}

/// Reads an error. Nothing where the message is none, or none of use.
pub(crate) fn read_error<'a>(header: &IpHeader, message: &'a [u8]) -> Option<Error<'a>> {
    let (fields, quoted) = message.split_at_checked(HEADER_BYTES)?;
    let long = u32::from_be_bytes([fields[4], fields[5], fields[6], fields[7]]);
    let kind = match (header.is_version_4(), fields[0], fields[1]) {
        (true, 3, 2 | 3) => ErrorKind::Refused,
        (true, 3, 4) => ErrorKind::TooLong { mtu: usize::from(long as u16) },
        // Those about types of service and precedence are no one's fault here.
        (true, 3, 0 | 1 | 5..=10 | 13) => ErrorKind::Unreachable,
        (true, 11, 0) => ErrorKind::Unreachable,
        (false, 1, 4) => ErrorKind::Refused,
        (false, 1, _) => ErrorKind::Unreachable,
        (false, 2, 0) => ErrorKind::TooLong { mtu: usize::try_from(long).unwrap_or(usize::MAX) },
        (false, 3, 0) => ErrorKind::Unreachable,
        // It does not know what this machine sends: as good as nobody there (RFC 4443, 3.4).
        (false, 4, 1) => ErrorKind::Refused,
        _ => return None,
    };
    about(kind, quoted).filter(|error| error.header.is_version_4() == header.is_version_4())
}

/// The error for a packet of this machine's own, of which the beginning is quoted, that never left it.
pub(crate) fn not_reached(quoted: &[u8]) -> Option<Error<'_>> {
    about(ErrorKind::Silent, quoted)
}

fn about(kind: ErrorKind, quoted: &[u8]) -> Option<Error<'_>> {
    let (header, length) = IpHeader::read_quoted(quoted)?;
    let payload = quoted.get(header.header_bytes..).filter(|payload| payload.len() >= 8)?;
    Some(Error { kind, header, payload, length })
}

/// How many errors may be sent now.
pub(crate) struct ErrorLimit {
    left: u64,
    filled_ns: u64,
}

impl Default for ErrorLimit {
    fn default() -> ErrorLimit {
        ErrorLimit { left: MAX_ERRORS, filled_ns: 0 }
    }
}

impl ErrorLimit {
    /// Whether one more may be sent.
    pub(crate) fn take(&mut self, now_ns: u64) -> bool {
        let new = now_ns.saturating_sub(self.filled_ns) / (1_000_000_000 / ERRORS_A_SECOND);
        if new > 0 {
            self.left = self.left.saturating_add(new).min(MAX_ERRORS);
            self.filled_ns = now_ns;
        }
        let may = self.left > 0;
        self.left -= u64::from(may);
        may
    }

    /// Tells the sender of a datagram that nobody is at that port. `packet` was sent to this machine alone.
    pub(crate) fn refuse<B: Buffer>(&mut self, output: &mut Output<B>, header: &IpHeader, packet: &[u8]) {
        if !crate::addresses::is_one_host(&header.source) || !output.has_room() || !self.take(output.now_ns) {
            return;
        }
        let (kind, code, most) = if header.is_version_4() { (3, 3, QUOTED_4) } else { (1, 4, QUOTED_6) };
        let data = &packet[..packet.len().min(most)];
        let (from, to) = (header.destination, header.source);
        Message { from, to, hops: 64, kind, code, fields: [0; 4], data }.send(output);
        output.counters.udp_refused += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_few() {
        let mut limit = ErrorLimit::default();
        let sent = (0..1000).filter(|_| limit.take(0)).count();
        assert_eq!(sent as u64, MAX_ERRORS);
        let sent = (0..10_000u64).filter(|number| limit.take(number * 1_000_000)).count();
        assert!((990..=1001).contains(&sent), "{sent} in ten seconds");
    }
}
