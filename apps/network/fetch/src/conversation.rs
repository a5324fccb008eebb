//! One HTTP request and its response, on a connection of its own.
//!
//! Key types: [`Conversation`], [`Answer`]. Content is read block by block as it arrives, so that at most one block is
//! buffered. Deliberately not here: source and destination of the content.

use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;
use core::time::Duration;

use contracts::FOR_EVER;
use contracts::tcp::TcpError;
use http::body::BodyReader;
use http::request::{Framing, header_space};
use http::response::{self, Extent};
use network::{Connection, NetError, remaining_ms};
use sip::Deadline;
use sip::exheap::ExVec;

use crate::failure::Failure;

/// Maximum size of a response head in bytes.
const MAX_HEAD_BYTES: usize = 64 * 1024;
/// Bytes requested per read.
const READ_BYTES: u32 = 256 * 1024;
/// Maximum number of interim (1xx) responses.
const MAX_INTERIM: usize = 8;

/// A step that timed out this close to the overall deadline was cut short by it.
const SLACK_MS: u32 = 5;

/// Timeouts of a request.
#[derive(Clone, Copy)]
pub struct Timeout {
    /// Timeout of each step.
    pub wait: Duration,
    /// Deadline for the whole request.
    pub limit: Deadline,
}

impl Timeout {
    /// Returns the timeout of the next step in milliseconds.
    pub fn step_ms(&self) -> u32 {
        let wait = u32::try_from(self.wait.as_millis()).unwrap_or(FOR_EVER);
        wait.clamp(1, FOR_EVER).min(remaining_ms(self.limit))
    }

    /// Classifies an error: a timeout at the overall deadline is [`Failure::Limit`].
    pub fn explain(&self, error: NetError) -> Failure {
        let is_late = matches!(error, NetError::Silent | NetError::Tcp(TcpError::TimedOut));
        // Steps are timed in milliseconds and end slightly early.
        if is_late && remaining_ms(self.limit) <= SLACK_MS { Failure::Limit } else { error.into() }
    }
}

/// The relevant parts of a response head.
pub struct Answer {
    /// Status code.
    pub status: u16,
    /// Reason phrase.
    pub reason: Vec<u8>,
    /// Redirect target.
    pub location: Option<String>,
    /// Announced length of the content, if any.
    pub announced: Option<u64>,
    /// The head in readable form: a line for the status and one for each field.
    pub text: Vec<u8>,
}

/// A connection for one request.
pub struct Conversation {
    connection: Connection,
    timeout: Timeout,
    /// The last received block and its unread part.
    held: Option<(ExVec<u8>, Range<usize>)>,
    content: Content,
    came: u64,
    announced: Option<u64>,
}

enum Content {
    Framed(BodyReader),
    UntilEnd,
}

impl Content {
    /// Returns which of these bytes of a block are content, and the part to parse next.
    fn look(&mut self, block: &[u8], rest: Range<usize>) -> Result<(Range<usize>, Range<usize>), Failure> {
        let Content::Framed(reader) = self else { return Ok((rest.clone(), rest.end..rest.end)) };
        let piece = reader.next(&block[rest.clone()]).map_err(|_| Failure::Framing)?;
        let data = rest.start + piece.data.start..rest.start + piece.data.end;
        // Ignores anything after the end.
        let next = if piece.ended { rest.end } else { rest.start + piece.consumed };
        Ok((data, next..rest.end))
    }
}

impl Conversation {
    /// Wraps a connection on which nothing was sent yet.
    pub fn new(connection: Connection, timeout: Timeout) -> Conversation {
        Conversation { connection, timeout, held: None, content: Content::UntilEnd, came: 0, announced: None }
    }

    /// Sends the first bytes of a block and returns the block.
    pub fn send(&mut self, block: ExVec<u8>, count: usize) -> Result<ExVec<u8>, Failure> {
        let timeout = self.timeout;
        self.in_time()?;
        self.connection.write_block(block, count, timeout.step_ms()).map_err(|error| timeout.explain(error))
    }

    /// Sends bytes.
    pub fn send_bytes(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let block = ExVec::from_slice(bytes).map_err(NetError::from)?;
        self.send(block, bytes.len()).map(drop)
    }

    fn in_time(&self) -> Result<(), Failure> {
        if self.timeout.limit.has_passed() { Err(Failure::Limit) } else { Ok(()) }
    }

    /// Waits for the response head. With `to_head`, content is announced but not sent.
    pub fn answer(&mut self, to_head: bool) -> Result<Answer, Failure> {
        let mut bytes = Vec::new();
        let mut interim = 0;
        loop {
            if let Some((answer, head_bytes)) = self.parsed(&bytes, to_head)? {
                // The rest of this block is the start of the content.
                if let Some((_, rest)) = &mut self.held {
                    rest.start = rest.end.saturating_sub(bytes.len() - head_bytes);
                }
                if !(100..200).contains(&answer.status) {
                    return Ok(answer);
                }
                interim += 1;
                if interim > MAX_INTERIM || answer.status == 101 {
                    return Err(Failure::Framing);
                }
                bytes.drain(..head_bytes);
                continue;
            }
            let Some((block, count)) = self.read()? else { return Err(Failure::NoAnswer) };
            bytes.extend_from_slice(&block[..count]);
            self.held = Some((block, 0..count));
        }
    }

    fn parsed(&mut self, bytes: &[u8], to_head: bool) -> Result<Option<(Answer, usize)>, Failure> {
        let mut space = header_space();
        let Some(head) = response::parse(bytes, &mut space, MAX_HEAD_BYTES)? else { return Ok(None) };
        let announced = match head.extent(to_head)? {
            Extent::UntilEnd => {
                self.content = Content::UntilEnd;
                None
            }
            Extent::Framed(framing) => {
                self.content = Content::Framed(BodyReader::new(framing, u64::MAX).map_err(|_| Failure::Framing)?);
                if let Framing::Length(length) = framing { Some(length) } else { None }
            }
        };
        self.announced = announced;
        let mut text = Vec::new();
        let version = if head.minor_version == 0 { "HTTP/1.0" } else { "HTTP/1.1" };
        text.extend_from_slice(alloc::format!("{version} {} {}\n", head.status, head.reason).as_bytes());
        for (name, value) in head.headers() {
            text.extend_from_slice(name.as_bytes());
            text.extend_from_slice(b": ");
            text.extend_from_slice(value);
            text.push(b'\n');
        }
        let location = head.header("location").map(|value| String::from_utf8_lossy(value).into_owned());
        let reason = head.reason.as_bytes().to_vec();
        Ok(Some((Answer { status: head.status, reason, location, announced, text }, head.head_bytes)))
    }

    /// Returns the next piece of content, a block and a range in it; `None` at the end.
    pub fn next(&mut self) -> Result<Option<Piece>, Failure> {
        loop {
            if let Content::Framed(reader) = &self.content
                && reader.has_ended()
            {
                return Ok(None);
            }
            let Some((block, rest)) = self.held.take() else {
                match self.read().map_err(|failure| self.cut_short(failure))? {
                    Some((block, count)) => self.held = Some((block, 0..count)),
                    None if matches!(self.content, Content::UntilEnd) => return Ok(None),
                    None => return Err(Failure::CutShort { came: self.came, announced: self.announced }),
                }
                continue;
            };
            let (data, left) = self.content.look(&block, rest)?;
            self.came += data.len() as u64;
            match (data.is_empty(), left.is_empty()) {
                (true, true) => {}
                (true, false) => self.held = Some((block, left)),
                (false, true) => return Ok(Some((block, data))),
                // The rest of the block holds framing and further chunks, so this piece is copied.
                (false, false) => {
                    let copied = ExVec::from_slice(&block[data.clone()]).map_err(NetError::from)?;
                    self.held = Some((block, left));
                    return Ok(Some((copied, 0..data.len())));
                }
            }
        }
    }

    /// Content bytes received.
    pub fn came(&self) -> u64 {
        self.came
    }

    /// Turns a connection failure in the middle of the content into `CutShort`.
    fn cut_short(&self, failure: Failure) -> Failure {
        match failure {
            Failure::Net(NetError::Tcp(TcpError::Reset)) => {
                Failure::CutShort { came: self.came, announced: self.announced }
            }
            other => other,
        }
    }

    fn read(&mut self) -> Result<Option<(ExVec<u8>, usize)>, Failure> {
        let timeout = self.timeout;
        self.in_time()?;
        self.connection.read(READ_BYTES, timeout.step_ms()).map_err(|error| timeout.explain(error))
    }
}

/// A block and the valid range in it.
pub type Piece = (ExVec<u8>, Range<usize>);
