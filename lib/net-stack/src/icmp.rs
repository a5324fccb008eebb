//! ICMPv4 and ICMPv6 messages: sending, and parsing errors about packets sent before.
//!
//! Anyone can forge an error, so it is acted on only by the owner of the quoted packet, and only if the quoted part
//! matches (RFC 5927). Deliberately not here: echoes, and the reaction to an error.

use smoltcp::wire::{IpAddress, IpProtocol, IpRepr};

use crate::checksum;
use crate::output::{Buffer, Output};
use crate::packet::IpHeader;
use crate::udp::only_ip;

/// Header of a message, in bytes.
pub(crate) const HEADER_BYTES: usize = 8;
/// Rate limit of errors sent: burst, and errors per second (RFC 4443, 2.4 f).
const MAX_ERRORS: u64 = 50;
const ERRORS_A_SECOND: u64 = 100;
/// Bytes of the invoking packet quoted in an error: the error must fit the minimum MTU.
const QUOTED_4: usize = 576 - 20 - HEADER_BYTES;
const QUOTED_6: usize = 1280 - 40 - HEADER_BYTES;

/// A message to send.
pub(crate) struct Message<'a> {
    pub(crate) from: IpAddress,
    pub(crate) to: IpAddress,
    pub(crate) hops: u8,
    pub(crate) kind: u8,
    pub(crate) code: u8,
    /// The four bytes after the checksum.
    pub(crate) fields: [u8; 4],
    pub(crate) data: &'a [u8],
}

impl Message<'_> {
    /// Sends the message, or drops it if there is no buffer.
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

/// The kind of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ErrorKind {
    /// Port or protocol unreachable.
    Refused,
    /// Network or host unreachable, or administratively prohibited.
    Unreachable,
    /// Neighbour resolution failed: the next hop did not answer.
    Silent,
    /// Fragmentation needed, or packet too big.
    TooLong {
        /// Next-hop MTU in bytes; 0 if it was not given.
        mtu: usize,
    },
}

/// An error about a packet that this machine sent.
pub(crate) struct Error<'a> {
    pub(crate) kind: ErrorKind,
    /// Header of the quoted packet.
    pub(crate) header: IpHeader,
    /// Quoted payload: at least 8 bytes.
    pub(crate) payload: &'a [u8],
    /// Total length of the quoted packet, in bytes.
    pub(crate) length: usize,
}

impl Error<'_> {
    /// Source and destination port of the quoted packet.
    pub(crate) fn ports(&self) -> (u16, u16) {
        let word = |at: usize| u16::from_be_bytes([self.payload[at], self.payload[at + 1]]);
        (word(0), word(2))
    }

    /// Sequence number of a quoted TCP segment.
    pub(crate) fn sequence(&self) -> u32 {
        u32::from_be_bytes([self.payload[4], self.payload[5], self.payload[6], self.payload[7]])
    }
}

/// Parses an error; `None` if the message is none, or is ignored.
pub(crate) fn read_error<'a>(header: &IpHeader, message: &'a [u8]) -> Option<Error<'a>> {
    let (fields, quoted) = message.split_at_checked(HEADER_BYTES)?;
    let long = u32::from_be_bytes([fields[4], fields[5], fields[6], fields[7]]);
    let kind = match (header.is_version_4(), fields[0], fields[1]) {
        (true, 3, 2 | 3) => ErrorKind::Refused,
        (true, 3, 4) => ErrorKind::TooLong { mtu: usize::from(long as u16) },
        // Codes about type of service and precedence are ignored.
        (true, 3, 0 | 1 | 5..=10 | 13) => ErrorKind::Unreachable,
        (true, 11, 0) => ErrorKind::Unreachable,
        (false, 1, 4) => ErrorKind::Refused,
        (false, 1, _) => ErrorKind::Unreachable,
        (false, 2, 0) => ErrorKind::TooLong { mtu: usize::try_from(long).unwrap_or(usize::MAX) },
        (false, 3, 0) => ErrorKind::Unreachable,
        // Unrecognized next header: equivalent to no listener (RFC 4443, 3.4).
        (false, 4, 1) => ErrorKind::Refused,
        _ => return None,
    };
    about(kind, quoted).filter(|error| error.header.is_version_4() == header.is_version_4())
}

/// The error for a packet that never left this machine, from its first bytes.
pub(crate) fn not_reached(quoted: &[u8]) -> Option<Error<'_>> {
    about(ErrorKind::Silent, quoted)
}

fn about(kind: ErrorKind, quoted: &[u8]) -> Option<Error<'_>> {
    let (header, length) = IpHeader::read_quoted(quoted)?;
    let payload = quoted.get(header.header_bytes..).filter(|payload| payload.len() >= 8)?;
    Some(Error { kind, header, payload, length })
}

/// Token bucket for errors.
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
    /// Takes a token, if there is one.
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

    /// Sends port unreachable for a datagram. `packet` must have been unicast to this machine.
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
    fn errors_are_rate_limited() {
        let mut limit = ErrorLimit::default();
        let sent = (0..1000).filter(|_| limit.take(0)).count();
        assert_eq!(sent as u64, MAX_ERRORS);
        let sent = (0..10_000u64).filter(|number| limit.take(number * 1_000_000)).count();
        assert!((990..=1001).contains(&sent), "{sent} in ten seconds");
    }
}
