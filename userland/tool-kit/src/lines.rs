//! A file or standard input, line by line, of which one line at a time is held.
//!
//! Deliberately not here: what a line means; it is bytes, UTF-8 or not.

use alloc::vec::Vec;

use file_tools::feed::{Error, INPUT_NAME, Reader};
use stdio::report;
use text::printable;

/// The longest line, in bytes.
pub const MAX_LINE_BYTES: usize = 8 << 20;

/// Why there is no next line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineError {
    /// The source cannot be read.
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
    /// From where the reader stands.
    pub fn new(reader: Reader) -> Lines {
        Lines { reader, pending: Pending::default(), ended: false }
    }

    /// Whether [`next`](Lines::next) has to read first: then output that was gathered should be handed over, because
    /// standard input may have nothing for long.
    pub fn will_read(&mut self) -> bool {
        !self.ended && self.pending.line_end().is_none()
    }

    /// The next line without its end. `None` after the last.
    ///
    /// # Errors
    /// What the source fails with, or that the line is too long.
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

/// Calls `each` for every line until it says that it wants no more. What goes wrong with one line is reported under
/// `name`. Gives whether all went well; an error is for [`file_tools::feed::Feed`], which reports it.
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

/// Tells that a file has a line that is too long.
pub fn report_too_long(name: &str) {
    let shown = if name == INPUT_NAME { "standard input".into() } else { printable(name.as_bytes()) };
    let mebibytes = MAX_LINE_BYTES >> 20;
    report::error(format_args!("{shown}: a line is longer than {mebibytes} MiB, so this is no text file"));
}

/// Whether the next line has to be read from the source first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// It is there.
    No,
    /// It may take long: what was gathered for output should be handed over.
    Perhaps,
}

/// Whether more lines are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum More {
    /// The next, please.
    Wanted,
    /// No more of this source.
    Enough,
}

/// How reading lines ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All that was wanted was read.
    Complete,
    /// It was reported why not.
    Failed,
}

/// Bytes that were read and not taken as lines yet.
#[derive(Default)]
struct Pending {
    bytes: Vec<u8>,
    /// Where the line begins that was taken last.
    last: usize,
    /// Where it ends, without its line end.
    last_end: usize,
    /// Where the next line begins.
    start: usize,
    /// No line end lies between `start` and here.
    scanned: usize,
}

impl Pending {
    /// Takes more bytes, if the line is not too long with them.
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

    /// The lines of a text that comes in pieces.
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
    fn lines_come_whole_however_they_are_cut() {
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
