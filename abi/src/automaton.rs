//! Contracts as the kernel's run-time monitor interprets them, and their canonical encoding.
//!
//! The contract compiler encodes; the package contains the bytes; their SHA-256 is the contract's fingerprint; the
//! kernel decodes once per contract, then only looks up rows.

use alloc::string::String;
use alloc::vec::Vec;

use crate::limits;

/// Marks a message that may not be sent in a state.
pub const NO_TRANSITION: u16 = u16::MAX;

const MAGIC: &[u8; 4] = b"SGC1";

/// Direction of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Direction {
    /// `out`, `!`: exporter to importer.
    ToImporter = 0,
    /// `in`, `?`: importer to exporter.
    ToExporter = 1,
}

/// The range of a scalar word: `0..=max`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScalarRange {
    /// Index of the word among the message's scalar words.
    pub word: u16,
    /// Maximum value (1 for a `bool`, count minus one for an enum).
    pub max: u64,
}

/// An exchange-heap block in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockShape {
    /// [`type_tag`] of the element type that the block must have been allocated with.
    pub type_tag: u64,
    /// The block is lent: it returns home when the borrower returns it or ends.
    pub lent: bool,
    /// The block is on loan from the receiver over this channel, and returns with this message.
    pub returned: bool,
}

/// An endpoint in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndpointShape {
    /// [`name_tag`] of the contract, or 0 for an endpoint of any contract.
    pub contract: u64,
    /// Whether it is the importing end.
    pub importer: bool,
    /// Its required state; [`NO_TRANSITION`] for any state in which it may be moved.
    pub state: u16,
}

/// The shape of a message. Its words lie in the buffer in this order: scalars, then
/// [`BLOCK_WORDS`](limits::BLOCK_WORDS) per block, then one per endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageShape {
    /// Name in the contract.
    pub name: String,
    /// Direction.
    pub direction: Direction,
    /// Number of scalar words.
    pub scalar_words: u16,
    /// Restricted scalar words.
    pub ranges: Vec<ScalarRange>,
    /// Blocks, in argument order.
    pub blocks: Vec<BlockShape>,
    /// Endpoints, in argument order.
    pub endpoints: Vec<EndpointShape>,
}

impl MessageShape {
    /// Total words of the message.
    pub fn words(&self) -> usize {
        self.scalar_words as usize
            + self.blocks.len() * limits::BLOCK_WORDS
            + self.endpoints.len() * limits::ENDPOINT_WORDS
    }

    /// The [`message_word`] of this message under a tag.
    pub fn message_word(&self, tag: u16) -> u64 {
        message_word(tag, self.scalar_words, self.blocks.len() as u8, self.endpoints.len() as u8)
    }
}

/// Identifies a message at the ABI: its tag (bits 0 to 15), its numbers of scalar words (16 to 31), blocks (32 to 39)
/// and endpoints (40 to 47). Since it contains the shape, neither side trusts the program's idea of the contract: both
/// agree on which words are blocks and endpoints.
pub const fn message_word(tag: u16, scalar_words: u16, blocks: u8, endpoints: u8) -> u64 {
    tag as u64 | (scalar_words as u64) << 16 | (blocks as u64) << 32 | (endpoints as u64) << 40
}

/// A state with its transitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateRow {
    /// Name in the contract; for a state inside a sequence, a name by the compiler.
    pub name: String,
    /// Next state for each message, or [`NO_TRANSITION`].
    pub next: Vec<u16>,
}

/// A contract. State 0 is the start state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Automaton {
    /// Name of the contract.
    pub name: String,
    /// Maximum messages queued for the importer.
    pub queue_to_importer: u16,
    /// Maximum messages queued for the exporter.
    pub queue_to_exporter: u16,
    /// Messages, by tag.
    pub messages: Vec<MessageShape>,
    /// States, by number.
    pub states: Vec<StateRow>,
}

/// Why bytes are not an automaton.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// What is wrong.
    pub what: &'static str,
    /// Offset in bytes.
    pub offset: usize,
}

impl Automaton {
    /// Words of the largest message, the size of a queue slot.
    pub fn slot_words(&self) -> usize {
        self.messages.iter().map(MessageShape::words).max().unwrap_or(0)
    }

    /// Direction of the messages that may be sent in `state`; `None` at the end of the conversation.
    pub fn sender_in(&self, state: u16) -> Option<Direction> {
        let row = self.states.get(state as usize)?;
        let tag = row.next.iter().position(|&next| next != NO_TRANSITION)?;
        Some(self.messages.get(tag)?.direction)
    }

    /// Encodes canonically, little-endian.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend_from_slice(MAGIC);
        put_text(&mut out, &self.name);
        put_u16(&mut out, self.queue_to_importer);
        put_u16(&mut out, self.queue_to_exporter);
        put_u16(&mut out, self.messages.len() as u16);
        put_u16(&mut out, self.states.len() as u16);
        for message in &self.messages {
            put_text(&mut out, &message.name);
            out.push(message.direction as u8);
            put_u16(&mut out, message.scalar_words);
            put_u16(&mut out, message.ranges.len() as u16);
            for range in &message.ranges {
                put_u16(&mut out, range.word);
                out.extend_from_slice(&range.max.to_le_bytes());
            }
            out.push(message.blocks.len() as u8);
            for block in &message.blocks {
                out.extend_from_slice(&block.type_tag.to_le_bytes());
                out.push(u8::from(block.lent) | u8::from(block.returned) << 1);
            }
            out.push(message.endpoints.len() as u8);
            for endpoint in &message.endpoints {
                out.extend_from_slice(&endpoint.contract.to_le_bytes());
                out.push(u8::from(endpoint.importer));
                put_u16(&mut out, endpoint.state);
            }
        }
        for state in &self.states {
            put_text(&mut out, &state.name);
            for &next in &state.next {
                put_u16(&mut out, next);
            }
        }
        out
    }

    /// Decodes canonical bytes, and checks all bounds.
    pub fn decode(bytes: &[u8]) -> Result<Automaton, DecodeError> {
        let mut input = Input { bytes, offset: 0 };
        if input.take(4)? != MAGIC {
            return Err(DecodeError { what: "not a contract automaton", offset: 0 });
        }
        let name = input.text()?;
        let queue_to_importer = input.u16()?;
        let queue_to_exporter = input.u16()?;
        if queue_to_importer > limits::QUEUE_BOUND || queue_to_exporter > limits::QUEUE_BOUND {
            return Err(input.error("a queue bound is too large"));
        }
        let message_count = input.u16()?;
        let state_count = input.u16()?;
        if state_count == 0 || state_count == NO_TRANSITION {
            return Err(input.error("the number of states is out of range"));
        }
        let mut messages = Vec::new();
        for _ in 0..message_count {
            messages.push(input.message()?);
        }
        let mut states = Vec::new();
        for _ in 0..state_count {
            let name = input.text()?;
            let mut next = Vec::new();
            for _ in 0..message_count {
                let target = input.u16()?;
                if target != NO_TRANSITION && target >= state_count {
                    return Err(input.error("a transition leads to no state"));
                }
                next.push(target);
            }
            let mut directions =
                next.iter().zip(&messages).filter(|(target, _)| **target != NO_TRANSITION).map(|(_, m)| m.direction);
            if let Some(first) = directions.next()
                && directions.any(|other| other != first)
            {
                return Err(input.error("a state has messages in both directions"));
            }
            states.push(StateRow { name, next });
        }
        if input.offset != bytes.len() {
            return Err(input.error("bytes follow the automaton"));
        }
        Ok(Automaton { name, queue_to_importer, queue_to_exporter, messages, states })
    }
}

/// Hash of a contract's name: FNV-1a, 64 bits, never 0.
pub const fn name_tag(name: &str) -> u64 {
    type_tag(name)
}

/// Hash of an exchange-heap element type's canonical text: FNV-1a, 64 bits, never 0.
pub const fn type_tag(text: &str) -> u64 {
    let bytes = text.as_bytes();
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let mut index = 0;
    while index < bytes.len() {
        hash ^= bytes[index] as u64;
        hash = hash.wrapping_mul(0x0000_0100_0000_01b3);
        index += 1;
    }
    if hash == 0 { 1 } else { hash }
}

/// The [`type_tag`] of an array of this length, from that of its element: FNV-1a continued over the text `[N]`.
pub const fn array_type_tag(element: u64, length: usize) -> u64 {
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let mut digits = [0u8; 20];
    let mut count = 0;
    let mut rest = length;
    loop {
        digits[count] = b'0' + (rest % 10) as u8;
        count += 1;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    let mut hash = (element ^ b'[' as u64).wrapping_mul(PRIME);
    while count > 0 {
        count -= 1;
        hash = (hash ^ digits[count] as u64).wrapping_mul(PRIME);
    }
    hash = (hash ^ b']' as u64).wrapping_mul(PRIME);
    if hash == 0 { 1 } else { hash }
}

fn put_u16(out: &mut Vec<u8>, value: u16) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    let length = text.len().min(255);
    out.push(length as u8);
    out.extend_from_slice(&text.as_bytes()[..length]);
}

struct Input<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> Input<'a> {
    fn error(&self, what: &'static str) -> DecodeError {
        DecodeError { what, offset: self.offset }
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], DecodeError> {
        let end = self.offset.checked_add(length).filter(|&end| end <= self.bytes.len());
        let end = end.ok_or_else(|| self.error("the automaton is cut short"))?;
        let taken = &self.bytes[self.offset..end];
        self.offset = end;
        Ok(taken)
    }

    fn u8(&mut self) -> Result<u8, DecodeError> {
        Ok(self.take(1)?[0])
    }

    fn u16(&mut self) -> Result<u16, DecodeError> {
        let bytes = self.take(2)?;
        Ok(u16::from_le_bytes([bytes[0], bytes[1]]))
    }

    fn u64(&mut self) -> Result<u64, DecodeError> {
        let mut value = [0; 8];
        value.copy_from_slice(self.take(8)?);
        Ok(u64::from_le_bytes(value))
    }

    fn text(&mut self) -> Result<String, DecodeError> {
        let length = self.u8()? as usize;
        let bytes = self.take(length)?;
        core::str::from_utf8(bytes).map(String::from).map_err(|_| self.error("a name is not UTF-8"))
    }

    fn message(&mut self) -> Result<MessageShape, DecodeError> {
        let name = self.text()?;
        let direction = match self.u8()? {
            0 => Direction::ToImporter,
            1 => Direction::ToExporter,
            _ => return Err(self.error("a direction is neither 0 nor 1")),
        };
        let scalar_words = self.u16()?;
        let mut ranges = Vec::new();
        for _ in 0..self.u16()? {
            let range = ScalarRange { word: self.u16()?, max: self.u64()? };
            if range.word >= scalar_words {
                return Err(self.error("a range names a word the message lacks"));
            }
            ranges.push(range);
        }
        let mut blocks = Vec::new();
        for _ in 0..self.u8()? {
            let type_tag = self.u64()?;
            let flags = self.u8()?;
            if flags > 2 {
                return Err(self.error("unknown flags on a block"));
            }
            blocks.push(BlockShape { type_tag, lent: flags & 1 != 0, returned: flags & 2 != 0 });
        }
        let mut endpoints = Vec::new();
        for _ in 0..self.u8()? {
            let contract = self.u64()?;
            let importer = self.u8()? != 0;
            endpoints.push(EndpointShape { contract, importer, state: self.u16()? });
        }
        let shape = MessageShape { name, direction, scalar_words, ranges, blocks, endpoints };
        if shape.words() > limits::MESSAGE_WORDS {
            return Err(self.error("a message is larger than the message buffer"));
        }
        Ok(shape)
    }
}
