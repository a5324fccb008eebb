//! Reads a file or standard input line by line, holding one line at a time.
//!
//! Deliberately not here: the meaning of a line; it is bytes, UTF-8 or not.

use alloc::vec::Vec;

use file_tools::feed::{Error, INPUT_NAME, Reader};
use stdio::report;
use text::printable;

/// Maximum length of a line in bytes.
pub const MAX_LINE_BYTES: usize = 8 << 20;

/// Why there is no next line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineError {
    /// The source could not be read.
    Read(Error),
    /// The line is longer than [`MAX_LINE_BYTES`].
    TooLong,
}

/// Lines of a reader.
pub struct Lines {
    reader: Reader,
    pending: Pending,
    ended: bool,
}

impl Lines {
    /// Starts at the reader's current position.
    pub fn new(reader: Reader) -> Lines {
        Lines { reader, pending: Pending::default(), ended: false }
    }

    /// Whether [`next`](Lines::next) has to read first. Then buffered output should be flushed, because standard
    /// input may block for long.
    pub fn will_read(&mut self) -> bool {
        !self.ended && self.pending.line_end().is_none()
    }

    /// Returns the next line without its terminator; `None` after the last.
    ///
    /// # Errors
    ///
    /// If the source fails, or the line is too long.
    #[expect(clippy::should_implement_trait, reason = "the line is borrowed from this")]
    pub fn next(&mut self) -> Result<Option<&[u8]>, LineError> {
        while self.will_read() {
            let Some((block, bytes)) = self.reader.block().map_err(LineError::Read)? else {
                self.ended = true;
                break;
            };
            if !self.pending.push(&block[..bytes]) {
                return Err(LineError::TooLong);
            }
            self.reader.recycle(block);
        }
        Ok(self.pending.take_line())
    }
}

/// Calls `each` for every line until it wants no more. Failures on a line are reported under `name`. Returns whether
/// everything succeeded; an error is returned to [`file_tools::feed::Feed`], which reports it.
pub fn for_each_line(
    name: &str,
    reader: Reader,
    mut each: impl FnMut(&[u8], Waits) -> Result<More, Error>,
) -> Result<Outcome, Error> {
    let mut lines = Lines::new(reader);
    loop {
        match lines.next() {
            Ok(None) => return Ok(Outcome::Complete),
            Ok(Some(_)) => {}
            Err(LineError::Read(error)) => return Err(error),
            Err(LineError::TooLong) => {
                report_too_long(name);
                return Ok(Outcome::Failed);
            }
        }
        let waits = if lines.will_read() { Waits::Perhaps } else { Waits::No };
        if each(lines.pending.last_line(), waits)? == More::Enough {
            return Ok(Outcome::Complete);
        }
    }
}

/// Reports that a file has a line that is too long.
pub fn report_too_long(name: &str) {
    let shown = if name == INPUT_NAME { "standard input".into() } else { printable(name.as_bytes()) };
    let mebibytes = MAX_LINE_BYTES >> 20;
    report::error(format_args!("{shown}: a line is longer than {mebibytes} MiB; this is not a text file"));
}

/// Whether the next line has to be read from the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// It is buffered.
    No,
    /// It may block for long: buffered output should be flushed.
    Perhaps,
}

/// Whether more lines are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum More {
    /// Continue with the next line.
    Wanted,
    /// Stop reading this source.
    Enough,
}

/// Outcome of reading lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All wanted lines were read.
    Complete,
    /// It failed, which was reported.
    Failed,
}

/// Bytes read but not yet returned as lines.
#[derive(Default)]
struct Pending {
    bytes: Vec<u8>,
    /// Start of the line returned last.
    last: usize,
    /// Its end, without the terminator.
    last_end: usize,
    /// Start of the next line.
    start: usize,
    /// There is no line end between `start` and here.
    scanned: usize,
}

impl Pending {
    /// Appends bytes, unless they would make the line too long.
    fn push(&mut self, bytes: &[u8]) -> bool {
        self.bytes.drain(..self.start);
        self.scanned -= self.start;
        (self.last, self.last_end, self.start) = (0, 0, 0);
        let is_within = self.bytes.len() + bytes.len() <= MAX_LINE_BYTES;
        if is_within {
            self.bytes.extend_from_slice(bytes);
        }
        is_within
    }

    fn line_end(&mut self) -> Option<usize> {
        let found = self.bytes[self.scanned..].iter().position(|&byte| byte == b'\n');
        self.scanned = found.map_or(self.bytes.len(), |offset| self.scanned + offset);
        found.map(|_| self.scanned)
    }

    fn take_line(&mut self) -> Option<&[u8]> {
        let (end, next) = match self.line_end() {
            Some(end) => (end, end + 1),
            None if self.start < self.bytes.len() => (self.bytes.len(), self.bytes.len()),
            None => return None,
        };
        (self.last, self.last_end) = (self.start, end);
        (self.start, self.scanned) = (next, next);
        Some(self.last_line())
    }

    fn last_line(&self) -> &[u8] {
        &self.bytes[self.last..self.last_end]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Splits a text that arrives in pieces.
    fn lines(pieces: &[&str]) -> Vec<Vec<u8>> {
        let mut pending = Pending::default();
        let mut found = Vec::new();
        for piece in pieces {
            while pending.line_end().is_some() {
                found.extend(pending.take_line().map(<[u8]>::to_vec));
            }
            assert!(pending.push(piece.as_bytes()));
        }
        while let Some(line) = pending.take_line() {
            found.push(line.to_vec());
        }
        found
    }

    #[test]
    fn lines_are_reassembled() {
        let text = "one\n\ntwo\nthree";
        for cut in 0..=text.len() {
            let (first, second) = text.split_at(cut);
            assert_eq!(lines(&[first, second]), [&b"one"[..], b"", b"two", b"three"], "{cut}");
        }
        assert_eq!(lines(&["a\n"]), [b"a"]);
        assert!(lines(&["", ""]).is_empty());
    }

    #[test]
    fn a_line_has_a_limit() {
        let mut pending = Pending::default();
        let half = alloc::vec![b'x'; MAX_LINE_BYTES / 2];
        assert!(pending.push(&half) && pending.push(&half) && !pending.push(b"y"));
        assert!(!pending.bytes.ends_with(b"y"));
    }
}
