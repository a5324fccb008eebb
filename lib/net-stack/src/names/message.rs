//! Questions and answers of name servers as they lie in packets (RFC 1035, 4).
//!
//! Names are in their wire form, in small letters and without pointers. Whoever answers may write what he likes, so
//! pointers lead only backwards, and all is counted.

use alloc::vec::Vec;

use smoltcp::wire::{IpAddress, Ipv4Address, Ipv6Address};

/// Bytes of a name in its wire form, and of a part of it.
const LONGEST: usize = 255;
const LONGEST_LABEL: usize = 63;

/// What each message begins with (RFC 1035, section 4.1.1).
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
    /// 0: done; 3: there is no such name; others: a failure.
    #[bits(0..=3)]
    outcome: u8,
    /// The server is to ask others.
    #[bit(8)]
    ask_others: bool,
    /// The answer did not fit.
    #[bit(9)]
    cut: bool,
    /// 0: a question.
    #[bits(11..=14)]
    operation: u8,
    /// It answers.
    #[bit(15)]
    answer: bool,
}

/// What comes behind the name of a record (section 4.1.3).
#[derive(layout::Record)]
#[record(bytes = 10, order = "big")]
struct RecordHead {
    kind: u16,
    class: u16,
    seconds: u32,
    data_bytes: u16,
}
/// Records of one answer that are looked at.
const MAX_RECORDS: usize = 128;
/// Addresses of one name that are kept.
const MAX_ADDRESSES: usize = 16;
/// Names that stand for another, one after the other.
pub(super) const MAX_ALIASES: usize = 16;
/// How long it is believed that there is nothing, where the server does not say.
const NOTHING_S: u32 = 30;

const INTERNET: u16 = 1;
const ALIAS: u16 = 5;
const AUTHORITY: u16 = 6;

/// What is asked for.
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

/// What a server answered to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// The name has these addresses, for so many seconds.
    Addresses(Vec<IpAddress>, u32),
    /// The name stands for another one, of which the server says nothing.
    Alias(Vec<u8>, u32),
    /// There is no such name, or it has no such addresses, for so many seconds.
    Nothing(u32),
    /// The answer did not fit into a datagram.
    Cut,
    /// The server cannot or will not answer.
    Failed,
}

/// The wire form of a name that a person wrote; nothing where it can be none.
pub(super) fn name(text: &str) -> Option<Vec<u8>> {
    let text = text.strip_suffix('.').unwrap_or(text);
    let mut name = Vec::new();
    for label in text.split('.') {
        let is_right = label.bytes().all(|byte| byte.is_ascii_graphic());
        if label.is_empty() || label.len() > LONGEST_LABEL || !is_right {
            return None;
        }
        name.push(label.len() as u8);
        name.extend(label.bytes().map(|byte| byte.to_ascii_lowercase()));
    }
    name.push(0);
    (name.len() <= LONGEST).then_some(name)
}

/// A question.
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

/// Reads a name: it and where it ends. Nothing where it is none.
fn read_name(message: &[u8], at: usize) -> Option<(Vec<u8>, usize)> {
    let (mut name, mut place, mut end) = (Vec::new(), at, None);
    // Where the part begins that is read now: a pointer leads before it, so there is an end.
    let mut begins = at;
    loop {
        let length = *message.get(place)?;
        match length >> 6 {
            0 => {
                let label = message.get(place + 1..place + 1 + usize::from(length))?;
                name.push(length);
                name.extend(label.iter().map(u8::to_ascii_lowercase));
                if name.len() > LONGEST {
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
    /// Where the data and the record end.
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
        // A time beyond half of the range is none (RFC 2181, 8).
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

/// Reads the answer to a question; nothing where it is none, or one to another question.
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
                let nothing = nothing_seconds(message, at, header.authorities).unwrap_or(NOTHING_S);
                return Some(Reply::Nothing(nothing.min(seconds)));
            }
            None => return Some(Reply::Alias(current.to_vec(), seconds)),
        }
    }
    Some(Reply::Failed)
}

/// How long it is true that there is nothing: as the zone says (RFC 2308, 5).
fn nothing_seconds(message: &[u8], at: usize, records: u16) -> Option<u32> {
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

    /// An answer with records as they are.
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
    fn chains_are_followed_in_any_order() {
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
    fn answers_to_others_and_nonsense_are_nothing() {
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
