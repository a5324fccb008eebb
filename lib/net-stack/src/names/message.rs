//! Wire format of DNS messages (RFC 1035, 4).
//!
//! Names are in wire form, lower-case and uncompressed. Responses are untrusted, so compression pointers may only
//! lead backwards, and everything is bounded.

use alloc::vec::Vec;

use smoltcp::wire::{IpAddress, Ipv4Address, Ipv6Address};

/// Maximum length of a name in wire form in bytes, and of a label.
const MAX_NAME_BYTES: usize = 255;
const MAX_LABEL_BYTES: usize = 63;

/// Message header (RFC 1035, section 4.1.1).
#[derive(Default, layout::Record)]
#[record(bytes = 12, order = "big")]
struct Header {
    id: u16,
    flags: Flags,
    questions: u16,
    answers: u16,
    authorities: u16,
    additions: u16,
}

#[layout::bits(u16)]
struct Flags {
    /// RCODE. 0: no error; 3: NXDOMAIN; others: a failure.
    #[bits(0..=3)]
    outcome: u8,
    /// Recursion desired.
    #[bit(8)]
    ask_others: bool,
    /// Truncated.
    #[bit(9)]
    cut: bool,
    /// Opcode. 0: a standard query.
    #[bits(11..=14)]
    operation: u8,
    /// Response flag (QR).
    #[bit(15)]
    answer: bool,
}

/// Fixed fields of a record behind its name (section 4.1.3).
#[derive(layout::Record)]
#[record(bytes = 10, order = "big")]
struct RecordHead {
    kind: u16,
    class: u16,
    seconds: u32,
    data_bytes: u16,
}
/// Maximum records parsed per response.
const MAX_RECORDS: usize = 128;
/// Maximum addresses kept per name.
const MAX_ADDRESSES: usize = 16;
/// Maximum length of a CNAME chain.
pub(super) const MAX_ALIASES: usize = 16;
/// TTL of a negative response without an SOA record, in seconds.
const NEGATIVE_TTL_S: u32 = 30;

const INTERNET: u16 = 1;
const ALIAS: u16 = 5;
const AUTHORITY: u16 = 6;

/// Record type of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Version4,
    Version6,
}

impl Kind {
    fn number(self) -> u16 {
        match self {
            Kind::Version4 => 1,
            Kind::Version6 => 28,
        }
    }
}

/// A parsed response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// The addresses of the name, and their TTL in seconds.
    Addresses(Vec<IpAddress>, u32),
    /// A CNAME whose target the response does not resolve.
    Alias(Vec<u8>, u32),
    /// There is no such name, or it has no such addresses; with the TTL in seconds.
    Nothing(u32),
    /// The response was truncated.
    Cut,
    /// The server cannot or will not answer.
    Failed,
}

/// Converts a name to wire form; `None` if it is invalid.
pub(super) fn name(text: &str) -> Option<Vec<u8>> {
    let text = text.strip_suffix('.').unwrap_or(text);
    let mut name = Vec::new();
    for label in text.split('.') {
        let is_right = label.bytes().all(|byte| byte.is_ascii_graphic());
        if label.is_empty() || label.len() > MAX_LABEL_BYTES || !is_right {
            return None;
        }
        name.push(label.len() as u8);
        name.extend(label.bytes().map(|byte| byte.to_ascii_lowercase()));
    }
    name.push(0);
    (name.len() <= MAX_NAME_BYTES).then_some(name)
}

/// Builds a query.
pub(super) fn question(id: u16, name: &[u8], kind: Kind) -> Vec<u8> {
    let mut message = Vec::with_capacity(Header::BYTES + name.len() + 4);
    let flags = Flags::NONE.with_ask_others(true);
    message.extend(Header { id, flags, questions: 1, ..Header::default() }.to_bytes());
    message.extend_from_slice(name);
    message.extend(kind.number().to_be_bytes());
    message.extend(INTERNET.to_be_bytes());
    message
}

fn word(message: &[u8], at: usize) -> Option<u16> {
    let bytes: [u8; 2] = message.get(at..at + 2)?.try_into().ok()?;
    Some(u16::from_be_bytes(bytes))
}

/// Parses a name; returns it and where it ends. `None` if it is malformed.
fn read_name(message: &[u8], at: usize) -> Option<(Vec<u8>, usize)> {
    let (mut name, mut place, mut end) = (Vec::new(), at, None);
    // Start of the current label sequence: a pointer must precede it, so the loop terminates.
    let mut begins = at;
    loop {
        let length = *message.get(place)?;
        match length >> 6 {
            0 => {
                let label = message.get(place + 1..place + 1 + usize::from(length))?;
                name.push(length);
                name.extend(label.iter().map(u8::to_ascii_lowercase));
                if name.len() > MAX_NAME_BYTES {
                    return None;
                }
                place += 1 + usize::from(length);
                if length == 0 {
                    return Some((name, end.unwrap_or(place)));
                }
            }
            3 => {
                let target = usize::from(word(message, place)? & 0x3fff);
                end.get_or_insert(place + 2);
                if target >= begins {
                    return None;
                }
                (place, begins) = (target, target);
            }
            _ => return None,
        }
    }
}

struct Record<'a> {
    owner: Vec<u8>,
    kind: u16,
    is_internet: bool,
    seconds: u32,
    data: &'a [u8],
    /// Offset of the data, and end of the record.
    data_at: usize,
    end: usize,
}

fn read_record(message: &[u8], at: usize) -> Option<Record<'_>> {
    let (owner, after) = read_name(message, at)?;
    let RecordHead { kind, class, seconds, data_bytes } = RecordHead::parse(message.get(after..)?)?;
    let data_at = after + RecordHead::BYTES;
    let end = data_at + usize::from(data_bytes);
    Some(Record {
        owner,
        kind,
        is_internet: class == INTERNET,
        // A TTL beyond half of the range counts as 0 (RFC 2181, 8).
        seconds: if seconds <= i32::MAX as u32 { seconds } else { 0 },
        data: message.get(data_at..end)?,
        data_at,
        end,
    })
}

fn address(record: &Record, kind: Kind) -> Option<IpAddress> {
    if record.kind != kind.number() {
        return None;
    }
    match kind {
        Kind::Version4 => Some(Ipv4Address::from(<[u8; 4]>::try_from(record.data).ok()?).into()),
        Kind::Version6 => Some(Ipv6Address::from(<[u8; 16]>::try_from(record.data).ok()?).into()),
    }
}

/// Parses the response to a query; `None` if it is malformed, or belongs to another query.
pub(super) fn read(message: &[u8], id: u16, name: &[u8], kind: Kind) -> Option<Reply> {
    let header = Header::parse(message)?;
    let flags = header.flags;
    let is_answer = header.id == id && flags.answer() && flags.operation() == 0 && header.questions == 1;
    let (asked, after) = read_name(message, Header::BYTES).filter(|_| is_answer)?;
    if asked != name || word(message, after)? != kind.number() || word(message, after + 2)? != INTERNET {
        return None;
    }
    let is_none = flags.outcome() == 3;
    if flags.cut() {
        return Some(Reply::Cut);
    }
    if flags.outcome() != 0 && !is_none {
        return Some(Reply::Failed);
    }
    let (mut aliases, mut addresses, mut at) = (Vec::new(), Vec::new(), after + 4);
    for _ in 0..usize::from(header.answers).min(MAX_RECORDS) {
        let record = read_record(message, at)?;
        at = record.end;
        if let Some(address) = address(&record, kind).filter(|_| record.is_internet) {
            addresses.push((record.owner, address, record.seconds));
        } else if record.kind == ALIAS && record.is_internet {
            let (target, _) = read_name(message, record.data_at)?;
            aliases.push((record.owner, target, record.seconds));
        }
    }
    let (mut current, mut seconds) = (name, u32::MAX);
    for _ in 0..=MAX_ALIASES {
        let own = || addresses.iter().filter(|(owner, ..)| owner == current);
        if let Some(least) = own().map(|(.., seconds)| *seconds).min() {
            let found = own().map(|(_, address, _)| *address).take(MAX_ADDRESSES);
            return Some(Reply::Addresses(found.collect(), seconds.min(least)));
        }
        match aliases.iter().find(|(owner, ..)| owner == current) {
            Some((_, target, of_alias)) => (current, seconds) = (target, seconds.min(*of_alias)),
            None if current == name || is_none => {
                let nothing = negative_ttl_s(message, at, header.authorities).unwrap_or(NEGATIVE_TTL_S);
                return Some(Reply::Nothing(nothing.min(seconds)));
            }
            None => return Some(Reply::Alias(current.to_vec(), seconds)),
        }
    }
    Some(Reply::Failed)
}

/// Returns the negative TTL, from the zone's SOA record (RFC 2308, 5).
fn negative_ttl_s(message: &[u8], at: usize, records: u16) -> Option<u32> {
    let mut at = at;
    for _ in 0..usize::from(records).min(MAX_RECORDS) {
        let record = read_record(message, at)?;
        if record.kind == AUTHORITY && record.is_internet {
            let least = u32::from_be_bytes(*record.data.last_chunk()?);
            return Some(least.min(record.seconds));
        }
        at = record.end;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wire(text: &str) -> Vec<u8> {
        name(text).expect("a name")
    }

    /// Builds a response with the given records.
    fn answer(code: u8, records: &[&[u8]]) -> Vec<u8> {
        let mut message = question(7, &wire("a.example"), Kind::Version4);
        message[2] = 0x81;
        message[3] = 0x80 | code;
        message[7] = records.len() as u8;
        message.extend(records.concat());
        message
    }

    fn record(owner: &[u8], kind: u16, seconds: u32, data: &[u8]) -> Vec<u8> {
        let mut record = owner.to_vec();
        record.extend(kind.to_be_bytes());
        record.extend(INTERNET.to_be_bytes());
        record.extend(seconds.to_be_bytes());
        record.extend((data.len() as u16).to_be_bytes());
        record.extend(data);
        record
    }

    fn read_it(message: &[u8]) -> Option<Reply> {
        read(message, 7, &wire("A.example."), Kind::Version4)
    }

    #[test]
    fn names_are_checked() {
        assert_eq!(name("a.Example."), Some(b"\x01a\x07example\0".to_vec()));
        for wrong in ["", ".", "a..b", ".a", "a b", "ä.example", &"a".repeat(64), &"a.".repeat(130)] {
            assert_eq!(name(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn cname_chains_are_followed_in_any_order() {
        let pointer = [0xc0, 12];
        let records = [
            record(&wire("c.example"), 1, 60, &[192, 0, 2, 9]),
            record(&wire("b.example"), 5, 50, &wire("c.example")),
            record(&pointer, 5, 70, &wire("B.example")),
            record(&wire("other.example"), 1, 60, &[192, 0, 2, 66]),
        ];
        let records: Vec<&[u8]> = records.iter().map(Vec::as_slice).collect();
        let expected = Reply::Addresses([IpAddress::v4(192, 0, 2, 9)].to_vec(), 50);
        assert_eq!(read_it(&answer(0, &records)), Some(expected));
        assert_eq!(read_it(&answer(0, &records[1..])), Some(Reply::Alias(wire("c.example"), 50)));
        assert_eq!(read_it(&answer(3, &records[1..])), Some(Reply::Nothing(30)));
        let ring = [record(&pointer, 5, 9, &wire("b.example")), record(&wire("b.example"), 5, 9, &wire("a.example"))];
        assert_eq!(read_it(&answer(0, &[&ring[0], &ring[1]])), Some(Reply::Failed));
        assert_eq!(read_it(&answer(0, &[])), Some(Reply::Nothing(30)));
        assert_eq!(read_it(&answer(2, &[])), Some(Reply::Failed));
    }

    #[test]
    fn responses_to_others_and_malformed_ones_are_rejected() {
        let right = answer(0, &[&record(&[0xc0, 12], 1, 60, &[192, 0, 2, 9])]);
        assert!(matches!(read_it(&right), Some(Reply::Addresses(..))));
        assert_eq!(read(&right, 8, &wire("a.example"), Kind::Version4), None, "another id");
        assert_eq!(read(&right, 7, &wire("b.example"), Kind::Version4), None, "another name");
        assert_eq!(read(&right, 7, &wire("a.example"), Kind::Version6), None, "another kind");
        for length in 0..right.len() {
            assert_eq!(read_it(&right[..length]), None, "{length} bytes");
        }
        let own = right.len() - 16;
        for target in [own, own + 1, 500] {
            let mut looped = right.clone();
            looped[own..own + 2].copy_from_slice(&(0xc000 | target as u16).to_be_bytes());
            assert_eq!(read_it(&looped), None, "a pointer to {target}");
        }
        let mut long = Vec::new();
        for _ in 0..6 {
            long.push(60);
            long.extend([b'a'; 60]);
        }
        long.push(0);
        assert_eq!(read_it(&answer(0, &[&record(&long, 1, 60, &[192, 0, 2, 9])])), None, "a name too long");
    }
}
