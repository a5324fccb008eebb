//! The content of a request, as it comes piece by piece (RFC 9112, sections 6 and 7).
//!
//! Key type: [`BodyReader`], which is given bytes and says which of them are content. It holds no bytes itself.

use core::ops::Range;

use crate::request::Framing;
use crate::text::is_token_byte;

/// Bytes of all chunk extensions of a request together, which nobody here reads.
const MAX_EXTENSION_BYTES: usize = 4096;
/// Bytes of the trailer section, which nobody here reads.
const MAX_TRAILER_BYTES: usize = 8192;
/// Digits of a chunk size, with zeros in front.
const MAX_SIZE_DIGITS: u8 = 16;

/// Why the content cannot be read on. Where the next request begins is not known then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyError {
    /// It is not framed as it must be.
    Malformed,
    /// It is longer than it may be.
    TooLarge,
}

/// What a look at some bytes gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Bytes that are done with, those of `data` among them; what follows them is to be looked at again.
    pub consumed: usize,
    /// Which of them are content; may be empty.
    pub data: Range<usize>,
    /// Whether the request ends behind the consumed bytes.
    pub ended: bool,
}

/// Reads the content of one request.
#[derive(Clone, Debug)]
pub struct BodyReader {
    state: State,
    /// Bytes of content that may still come.
    allowed: u64,
    /// The size of the chunk whose extension is passed over.
    pending: u64,
    extension_bytes: usize,
    trailer_bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// So many bytes are still to come.
    Length(u64),
    /// Within a chunk size.
    Size {
        value: u64,
        digits: u8,
    },
    /// Behind a chunk size, or the value of an extension, and white space.
    BeforeExtension,
    /// Within an extension.
    Extension(Extension),
    /// The carriage return behind a chunk size or extension was there.
    SizeEnd {
        value: u64,
    },
    /// Within the data of a chunk.
    Data(u64),
    DataReturn,
    DataEnd,
    /// At the start of a line of the trailer section.
    TrailerStart,
    TrailerName,
    TrailerValue,
    TrailerEnd,
    /// The carriage return of the empty line was there.
    LastEnd,
    Ended,
}

/// Where in a chunk extension (RFC 9112, section 7.1.1). Nobody here wants one, but who lets anything pass for one reads
/// other lines than who does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extension {
    /// Behind `;`.
    Start,
    Name,
    /// Behind a name and white space.
    NameEnd,
    /// Behind `=`.
    ValueStart,
    Value,
    Quoted,
    /// Behind a backslash within quotes.
    Escaped,
    /// Behind the closing quote.
    QuotedEnd,
}

impl BodyReader {
    /// Reads content that is framed like this and has at most `max_bytes` bytes.
    pub fn new(framing: Framing, max_bytes: u64) -> Result<BodyReader, BodyError> {
        let state = match framing {
            Framing::None | Framing::Length(0) => State::Ended,
            Framing::Length(length) if length > max_bytes => return Err(BodyError::TooLarge),
            Framing::Length(length) => State::Length(length),
            Framing::Chunked => State::Size { value: 0, digits: 0 },
        };
        Ok(BodyReader { state, allowed: max_bytes, pending: 0, extension_bytes: 0, trailer_bytes: 0 })
    }

    /// Whether all of it was read.
    pub fn has_ended(&self) -> bool {
        self.state == State::Ended
    }

    /// How many bytes are still to come, where the head told.
    pub fn left(&self) -> Option<u64> {
        match self.state {
            State::Length(left) => Some(left),
            State::Ended => Some(0),
            _ => None,
        }
    }

    /// Looks at the next bytes, up to the end of the next run of content at most.
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

    /// Whether the content, or what follows of it in `bytes`, is not framed as it must be.
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

    /// The state behind a byte of framing.
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

    /// The state behind a byte of an extension.
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
