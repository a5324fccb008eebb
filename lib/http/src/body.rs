//! Incremental decoding of request content (RFC 9112, sections 6 and 7).
//!
//! Key type: [`BodyReader`], which is fed bytes and returns which of them are content. It buffers nothing itself.

use core::ops::Range;

use crate::request::Framing;
use crate::text::is_token_byte;

/// Maximum total size of all chunk extensions of a request in bytes; they are ignored.
const MAX_EXTENSION_BYTES: usize = 4096;
/// Maximum size of the trailer section in bytes; it is ignored.
const MAX_TRAILER_BYTES: usize = 8192;
/// Maximum digits of a chunk size, leading zeros included.
const MAX_SIZE_DIGITS: u8 = 16;

/// Why the content cannot be decoded. The start of the next request is then unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyError {
    /// Its framing is malformed.
    Malformed,
    /// It exceeds the limit.
    TooLarge,
}

/// The result of decoding some bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Bytes consumed, including `data`; the rest must be passed in again.
    pub consumed: usize,
    /// Range of the content among them; may be empty.
    pub data: Range<usize>,
    /// Whether the request ends after the consumed bytes.
    pub ended: bool,
}

/// Decodes the content of one request.
#[derive(Clone, Debug)]
pub struct BodyReader {
    state: State,
    /// Content bytes still allowed.
    allowed: u64,
    /// Size of the chunk whose extension is being skipped.
    pending: u64,
    extension_bytes: usize,
    trailer_bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Bytes remaining.
    Length(u64),
    /// Within a chunk size.
    Size {
        value: u64,
        digits: u8,
    },
    /// After a chunk size or extension value, and white space.
    BeforeExtension,
    /// Within an extension.
    Extension(Extension),
    /// After the carriage return of a chunk size line.
    SizeEnd {
        value: u64,
    },
    /// Within chunk data: bytes remaining.
    Data(u64),
    DataReturn,
    DataEnd,
    /// At the start of a trailer line.
    TrailerStart,
    TrailerName,
    TrailerValue,
    TrailerEnd,
    /// After the carriage return of the final empty line.
    LastEnd,
    Ended,
}

/// Position in a chunk extension (RFC 9112, section 7.1.1). Extensions are ignored, but a lenient parser would find
/// other line ends than a strict one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extension {
    /// After `;`.
    Start,
    Name,
    /// After a name and white space.
    NameEnd,
    /// After `=`.
    ValueStart,
    Value,
    Quoted,
    /// After a backslash within quotes.
    Escaped,
    /// After the closing quote.
    QuotedEnd,
}

impl BodyReader {
    /// Creates a decoder for content with this framing and at most `max_bytes` bytes.
    pub fn new(framing: Framing, max_bytes: u64) -> Result<BodyReader, BodyError> {
        let state = match framing {
            Framing::None | Framing::Length(0) => State::Ended,
            Framing::Length(length) if length > max_bytes => return Err(BodyError::TooLarge),
            Framing::Length(length) => State::Length(length),
            Framing::Chunked => State::Size { value: 0, digits: 0 },
        };
        Ok(BodyReader { state, allowed: max_bytes, pending: 0, extension_bytes: 0, trailer_bytes: 0 })
    }

    /// Returns whether all content has been decoded.
    pub fn has_ended(&self) -> bool {
        self.state == State::Ended
    }

    /// Returns the number of remaining bytes, if the head gives a length.
    pub fn left(&self) -> Option<u64> {
        match self.state {
            State::Length(left) => Some(left),
            State::Ended => Some(0),
            _ => None,
        }
    }

    /// Decodes the next bytes, up to the end of the next run of content at most.
    pub fn next(&mut self, bytes: &[u8]) -> Result<Piece, BodyError> {
        let mut at = 0;
        loop {
            if let State::Length(rest) | State::Data(rest) = self.state {
                let count = usize::try_from(rest).unwrap_or(usize::MAX).min(bytes.len() - at);
                if count == 0 {
                    return Ok(Piece { consumed: at, data: at..at, ended: false });
                }
                self.take(rest, count as u64)?;
                let end = at + count;
                return Ok(Piece { consumed: end, data: at..end, ended: self.has_ended() });
            }
            if self.state == State::Ended {
                return Ok(Piece { consumed: at, data: at..at, ended: true });
            }
            let Some(&byte) = bytes.get(at) else {
                return Ok(Piece { consumed: at, data: at..at, ended: false });
            };
            self.state = self.after(byte)?;
            at += 1;
        }
    }

    /// Returns whether the content, or its continuation in `bytes`, is malformed.
    pub fn is_malformed(mut self, mut bytes: &[u8]) -> bool {
        loop {
            match self.next(bytes) {
                Ok(piece) if piece.ended || piece.consumed == bytes.len() => return false,
                Ok(piece) => bytes = &bytes[piece.consumed..],
                Err(error) => return error == BodyError::Malformed,
            }
        }
    }

    fn take(&mut self, rest: u64, count: u64) -> Result<(), BodyError> {
        self.allowed = self.allowed.checked_sub(count).ok_or(BodyError::TooLarge)?;
        self.state = match (self.state, rest - count) {
            (State::Length(_), 0) => State::Ended,
            (State::Length(_), rest) => State::Length(rest),
            (_, 0) => State::DataReturn,
            (_, rest) => State::Data(rest),
        };
        Ok(())
    }

    /// Returns the state after a framing byte.
    fn after(&mut self, byte: u8) -> Result<State, BodyError> {
        match (self.state, byte) {
            (State::Size { value, digits }, _) => self.after_size(value, digits, byte),
            (State::BeforeExtension, b' ' | b'\t') => self.extension(State::BeforeExtension),
            (State::BeforeExtension, b';') => self.extension(State::Extension(Extension::Start)),
            (State::Extension(within), _) => self.after_extension(within, byte),
            (State::SizeEnd { value: 0 }, b'\n') => Ok(State::TrailerStart),
            (State::SizeEnd { value }, b'\n') => Ok(State::Data(value)),
            (State::DataReturn, b'\r') => Ok(State::DataEnd),
            (State::DataEnd, b'\n') => Ok(State::Size { value: 0, digits: 0 }),
            (State::TrailerStart, b'\r') => Ok(State::LastEnd),
            (State::TrailerStart, byte) if is_token_byte(byte) => self.trailer(State::TrailerName),
            (State::TrailerName, b':') => self.trailer(State::TrailerValue),
            (State::TrailerName, byte) if is_token_byte(byte) => self.trailer(State::TrailerName),
            (State::TrailerValue, b'\r') => Ok(State::TrailerEnd),
            (State::TrailerValue, b'\t' | b' '..=b'~' | 0x80..) => self.trailer(State::TrailerValue),
            (State::TrailerEnd, b'\n') => Ok(State::TrailerStart),
            (State::LastEnd, b'\n') => Ok(State::Ended),
            _ => Err(BodyError::Malformed),
        }
    }

    fn after_size(&mut self, value: u64, digits: u8, byte: u8) -> Result<State, BodyError> {
        if let Some(digit) = char::from(byte).to_digit(16) {
            if digits == MAX_SIZE_DIGITS {
                return Err(BodyError::Malformed);
            }
            // Sixteen digits fit.
            return Ok(State::Size { value: value << 4 | u64::from(digit), digits: digits + 1 });
        }
        if digits == 0 {
            return Err(BodyError::Malformed);
        }
        if value > self.allowed {
            return Err(BodyError::TooLarge);
        }
        self.pending = value;
        match byte {
            b'\r' => Ok(State::SizeEnd { value }),
            b';' => self.extension(State::Extension(Extension::Start)),
            b' ' | b'\t' => self.extension(State::BeforeExtension),
            _ => Err(BodyError::Malformed),
        }
    }

    /// Returns the state after a byte of an extension.
    fn after_extension(&mut self, within: Extension, byte: u8) -> Result<State, BodyError> {
        use Extension::{Escaped, Name, NameEnd, Quoted, QuotedEnd, Start, Value, ValueStart};
        let next = match (within, byte) {
            (Name | Value | QuotedEnd, b'\r') => return Ok(State::SizeEnd { value: self.pending }),
            (Name | NameEnd | Value | QuotedEnd, b';') => Start,
            (Start | ValueStart | NameEnd, b' ' | b'\t') => within,
            (Name, b' ' | b'\t') => NameEnd,
            (Value | QuotedEnd, b' ' | b'\t') => return self.extension(State::BeforeExtension),
            (Start | Name, _) if is_token_byte(byte) => Name,
            (Name | NameEnd, b'=') => ValueStart,
            (ValueStart | Value, _) if is_token_byte(byte) => Value,
            (ValueStart, b'"') => Quoted,
            (Quoted, b'"') => QuotedEnd,
            (Quoted, b'\\') => Escaped,
            (Quoted | Escaped, b'\t' | b' '..=b'~' | 0x80..) => Quoted,
            _ => return Err(BodyError::Malformed),
        };
        self.extension(State::Extension(next))
    }

    fn extension(&mut self, next: State) -> Result<State, BodyError> {
        self.extension_bytes += 1;
        if self.extension_bytes > MAX_EXTENSION_BYTES { Err(BodyError::TooLarge) } else { Ok(next) }
    }

    fn trailer(&mut self, next: State) -> Result<State, BodyError> {
        self.trailer_bytes += 1;
        if self.trailer_bytes > MAX_TRAILER_BYTES { Err(BodyError::TooLarge) } else { Ok(next) }
    }
}
