//! Reassembly of IP fragments (RFC 791, RFC 8200).
//!
//! Fragments are a classic way to exhaust a host's memory, so the limits are low, and fragments beyond them are
//! dropped. Overlapping fragments drop the whole packet (RFC 5722). Deliberately not here: fragmentation; this machine
//! sends no packet larger than the path MTU.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use smoltcp::wire::IpAddress;

use crate::checksum;
use crate::packet::{Fragment, IpHeader};

/// Maximum packets in reassembly.
const MAX_PACKETS: usize = 64;
/// Maximum packets in reassembly from one sender.
const MAX_PACKETS_OF_SENDER: usize = 16;
/// Maximum bytes of all fragments.
const MAX_BYTES: usize = 1 << 20;
/// Maximum fragments of one packet.
const MAX_PARTS: usize = 128;
/// Reassembly timeout, in nanoseconds.
const REASSEMBLY_TIMEOUT_NS: u64 = 30_000_000_000;
/// Maximum size of an IP packet, in bytes.
const MAX_PACKET_BYTES: usize = 65_535;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    source: IpAddress,
    destination: IpAddress,
    protocol: u8,
    identifier: u32,
}

#[derive(Default)]
struct Parts {
    pieces: BTreeMap<usize, Vec<u8>>,
    bytes: usize,
    /// End of the last fragment, once it is known.
    end: Option<usize>,
}

/// The outcome of receiving a fragment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reassembly {
    /// The reassembled packet.
    Whole(Vec<u8>),
    /// More fragments are needed.
    Waits,
    /// Dropped, perhaps with the rest of its packet.
    Lost,
}

#[derive(Default)]
pub(crate) struct Fragments {
    table: BTreeMap<Key, Parts>,
    /// Deadlines in order; some are of packets no longer here.
    order: VecDeque<(u64, Key)>,
    bytes: usize,
}

impl Fragments {
    /// Inserts a fragment: `packet` with its IP header.
    pub(crate) fn receive(&mut self, header: &IpHeader, part: &Fragment, packet: &[u8], now_ns: u64) -> Reassembly {
        self.serve(now_ns);
        let piece = header.payload(packet);
        let end = part.offset_bytes + piece.len();
        // All but the last are multiples of eight bytes.
        if piece.is_empty()
            || header.header_bytes + end > MAX_PACKET_BYTES
            || (!part.is_last && !piece.len().is_multiple_of(8))
        {
            return Reassembly::Lost;
        }
        let key = Key {
            source: header.source,
            destination: header.destination,
            protocol: header.protocol.into(),
            identifier: part.identifier,
        };
        if !self.table.contains_key(&key) {
            let of_one = self.table.keys().filter(|known| known.source == key.source).count();
            if of_one >= MAX_PACKETS_OF_SENDER {
                return Reassembly::Lost;
            }
            while self.table.len() >= MAX_PACKETS && self.forget_oldest() {}
            self.order.push_back((now_ns + REASSEMBLY_TIMEOUT_NS, key));
        }
        while self.bytes + piece.len() > MAX_BYTES && self.forget_oldest_but(&key) {}
        let parts = self.table.entry(key).or_default();
        match parts.add(part, piece) {
            Added::Again => Reassembly::Waits,
            Added::Clash => {
                self.forget(&key);
                Reassembly::Lost
            }
            Added::New => {
                self.bytes += piece.len();
                if !parts.is_whole() {
                    return Reassembly::Waits;
                }
                let whole = parts.join(header, packet);
                self.forget(&key);
                Reassembly::Whole(whole)
            }
        }
    }

    fn forget(&mut self, key: &Key) {
        if let Some(parts) = self.table.remove(key) {
            self.bytes -= parts.bytes;
            self.order.retain(|(_, other)| other != key);
        }
    }

    fn forget_oldest(&mut self) -> bool {
        let oldest = self.order.front().map(|(_, key)| *key);
        oldest.is_some_and(|key| {
            self.forget(&key);
            true
        })
    }

    fn forget_oldest_but(&mut self, kept: &Key) -> bool {
        let oldest = self.order.iter().map(|(_, key)| *key).find(|key| key != kept);
        oldest.is_some_and(|key| {
            self.forget(&key);
            true
        })
    }

    /// Drops packets whose timeout has expired; returns their number.
    pub(crate) fn serve(&mut self, now_ns: u64) -> u64 {
        let mut lost = 0;
        while self.order.front().is_some_and(|(until_ns, _)| *until_ns <= now_ns) && self.forget_oldest() {
            lost += 1;
        }
        lost
    }

    pub(crate) fn next_time_ns(&self) -> Option<u64> {
        self.order.front().map(|(until_ns, _)| *until_ns)
    }
}

enum Added {
    New,
    Again,
    Clash,
}

impl Parts {
    fn add(&mut self, part: &Fragment, piece: &[u8]) -> Added {
        let (from, to) = (part.offset_bytes, part.offset_bytes + piece.len());
        if self.pieces.get(&from).is_some_and(|known| known == piece) {
            return Added::Again;
        }
        let before = self.pieces.range(..=from).next_back().map_or(0, |(at, known)| at + known.len());
        let after = self.pieces.range(from..).next().map_or(usize::MAX, |(at, _)| *at);
        let is_beyond = self.end.is_some_and(|end| to > end || part.is_last);
        let is_short = part.is_last && self.pieces.keys().next_back().is_some_and(|last| *last >= to);
        if before > from || after < to || is_beyond || is_short || self.pieces.len() >= MAX_PARTS {
            return Added::Clash;
        }
        if part.is_last {
            self.end = Some(to);
        }
        self.bytes += piece.len();
        self.pieces.insert(from, piece.to_vec());
        Added::New
    }

    fn is_whole(&self) -> bool {
        // No overlaps and nothing beyond the end: complete when the byte counts agree.
        self.end == Some(self.bytes)
    }

    /// The reassembled packet. Its header is that of the last fragment received, without fragment fields.
    fn join(&self, header: &IpHeader, packet: &[u8]) -> Vec<u8> {
        let mut whole = Vec::new();
        if header.is_version_4() {
            whole.extend_from_slice(&packet[..header.header_bytes]);
            let total = (header.header_bytes + self.bytes) as u16;
            whole[2..4].copy_from_slice(&total.to_be_bytes());
            whole[6..8].fill(0);
            whole[10..12].fill(0);
            let sum = !checksum::sum(&whole, 0);
            whole[10..12].copy_from_slice(&sum.to_be_bytes());
        } else {
            whole.extend_from_slice(&packet[..40]);
            whole[4..6].copy_from_slice(&(self.bytes as u16).to_be_bytes());
            whole[6] = header.protocol.into();
        }
        for piece in self.pieces.values() {
            whole.extend_from_slice(piece);
        }
        whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A fragment of a UDP packet.
    fn part(identifier: u16, offset: usize, bytes: &[u8], is_last: bool) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
        packet[2..4].copy_from_slice(&(20 + bytes.len() as u16).to_be_bytes());
        packet[4..6].copy_from_slice(&identifier.to_be_bytes());
        let word = (offset / 8) as u16 | if is_last { 0 } else { 0x2000 };
        packet[6..8].copy_from_slice(&word.to_be_bytes());
        packet.extend(bytes);
        packet
    }

    fn take(fragments: &mut Fragments, packet: &[u8], now_ns: u64) -> Reassembly {
        let header = IpHeader::read(packet).expect("a header");
        let part = header.fragment.expect("a part");
        fragments.receive(&header, &part, packet, now_ns)
    }

    #[test]
    fn fragments_in_any_order_are_reassembled() {
        let data: Vec<u8> = (0..60u8).collect();
        let pieces =
            [part(7, 0, &data[..24], false), part(7, 24, &data[24..48], false), part(7, 48, &data[48..], true)];
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0], [2, 0, 1]] {
            let mut fragments = Fragments::default();
            assert_eq!(take(&mut fragments, &pieces[order[0]], 0), Reassembly::Waits);
            assert_eq!(take(&mut fragments, &pieces[order[0]], 0), Reassembly::Waits, "one that comes twice");
            assert_eq!(take(&mut fragments, &pieces[order[1]], 0), Reassembly::Waits);
            let Reassembly::Whole(packet) = take(&mut fragments, &pieces[order[2]], 0) else { panic!("not whole") };
            let header = IpHeader::read(&packet).expect("a header");
            assert_eq!((header.fragment, header.payload(&packet)), (None, &data[..]));
            assert_eq!(checksum::sum(&packet[..20], 0), u16::MAX);
            assert_eq!((fragments.bytes, fragments.order.len()), (0, 0));
        }
    }

    #[test]
    fn inconsistent_fragments_drop_the_packet() {
        let cases: [&[(usize, usize, bool)]; 5] = [
            &[(0, 16, false), (8, 16, false)],
            &[(8, 16, false), (0, 16, false)],
            &[(16, 8, true), (24, 8, false)],
            &[(16, 8, true), (8, 8, true)],
            &[(32, 8, false), (8, 8, true)],
        ];
        for case in cases {
            let mut fragments = Fragments::default();
            let last = case.iter().map(|(offset, bytes, is_last)| {
                take(&mut fragments, &part(1, *offset, &vec![*offset as u8; *bytes], *is_last), 0)
            });
            assert_eq!(last.last(), Some(Reassembly::Lost), "{case:?}");
            assert_eq!(fragments.bytes, 0, "{case:?}");
        }
        let mut fragments = Fragments::default();
        assert_eq!(take(&mut fragments, &part(1, 0, &[1; 7], false), 0), Reassembly::Lost, "not whole words");
        assert_eq!(take(&mut fragments, &part(1, 65_528, &[1; 800], true), 0), Reassembly::Lost, "too long");
    }

    #[test]
    fn reassembly_is_bounded_in_space_and_time() {
        let mut fragments = Fragments::default();
        for identifier in 0..1000 {
            take(&mut fragments, &part(identifier, 0, &[1; 1024], false), 0);
        }
        assert_eq!(fragments.table.len(), MAX_PACKETS_OF_SENDER);
        for sender in 0..200u8 {
            for offset in 0..40 {
                let mut packet = part(1, offset * 1024, &[1; 1024], false);
                packet[15] = sender;
                take(&mut fragments, &packet, 1);
            }
        }
        assert!(fragments.table.len() <= MAX_PACKETS && fragments.bytes <= MAX_BYTES);
        assert_eq!(fragments.order.len(), fragments.table.len());
        fragments.serve(REASSEMBLY_TIMEOUT_NS + 1);
        assert_eq!((fragments.table.len(), fragments.bytes), (0, 0));
    }
}
