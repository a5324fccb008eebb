//! Finds the start of the last part of a file or stream.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use text::amount::Part;

/// Maximum bytes kept of a stream.
const KEPT_BYTES: usize = 64 << 20;

/// Searches backwards for the start of the last lines. A line includes its line end, also the last one.
pub struct LineStarts {
    lines: u64,
    at_end: bool,
}

impl LineStarts {
    /// Searches for this many lines.
    pub fn new(lines: u64) -> LineStarts {
        LineStarts { lines, at_end: true }
    }

    /// Returns where the lines begin in `bytes`, which precede those of the last call; `None` if further to the
    /// front.
    pub fn look_back(&mut self, bytes: &[u8]) -> Option<usize> {
        if self.lines == 0 {
            return Some(bytes.len());
        }
        for (index, byte) in bytes.iter().enumerate().rev() {
            let ends_last_line = core::mem::replace(&mut self.at_end, false);
            if *byte == b'\n' && !ends_last_line {
                self.lines -= 1;
                if self.lines == 0 {
                    return Some(index + 1);
                }
            }
        }
        None
    }
}

/// The requested part exceeds the kept part of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

/// The latest part of a stream.
pub struct Kept {
    part: Part,
    pieces: VecDeque<Vec<u8>>,
    bytes: usize,
    /// Line ends in the pieces.
    line_ends: u64,
}

impl Kept {
    /// Starts with an empty stream.
    pub fn new(part: Part) -> Kept {
        Kept { part, pieces: VecDeque::new(), bytes: 0, line_ends: 0 }
    }

    /// Appends the next bytes of the stream.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        if self.bytes.saturating_add(bytes.len()) > KEPT_BYTES {
            return Err(TooLong);
        }
        self.bytes += bytes.len();
        self.line_ends += line_ends(bytes);
        self.pieces.push_back(bytes.to_vec());
        while let Some(first) = self.pieces.front() {
            let lines = line_ends(first);
            let is_over = match self.part {
                Part::Bytes(wanted) => (self.bytes - first.len()) as u64 >= wanted,
                // One more: the very last line end may not end a line before the requested ones.
                Part::Lines(wanted) => self.line_ends - lines > wanted,
            };
            if !is_over {
                break;
            }
            self.bytes -= first.len();
            self.line_ends -= lines;
            self.pieces.pop_front();
        }
        Ok(())
    }

    /// Returns the last part of the stream, in pieces.
    pub fn into_pieces(mut self) -> VecDeque<Vec<u8>> {
        let mut skip = match self.part {
            Part::Bytes(wanted) => self.bytes.saturating_sub(usize::try_from(wanted).unwrap_or(usize::MAX)),
            Part::Lines(wanted) => {
                let mut starts = LineStarts::new(wanted);
                let mut end = self.bytes;
                let mut start = 0;
                for piece in self.pieces.iter().rev() {
                    end -= piece.len();
                    if let Some(index) = starts.look_back(piece) {
                        start = end + index;
                        break;
                    }
                }
                start
            }
        };
        for piece in &mut self.pieces {
            let cut = skip.min(piece.len());
            piece.drain(..cut);
            skip -= cut;
        }
        self.pieces
    }
}

fn line_ends(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end_of(text: &str, part: Part, piece: usize) -> Vec<u8> {
        let mut kept = Kept::new(part);
        for bytes in text.as_bytes().chunks(piece) {
            kept.push(bytes).unwrap();
        }
        kept.into_pieces().into_iter().flatten().collect()
    }

    #[test]
    fn the_end_is_the_same_however_the_stream_is_cut() {
        for (text, part, expected) in [
            ("a\nb\nc\n", Part::Lines(2), "b\nc\n"),
            ("a\nb\nc", Part::Lines(2), "b\nc"),
            ("a\nb\nc\n", Part::Lines(9), "a\nb\nc\n"),
            ("a\nb\nc\n", Part::Lines(0), ""),
            ("\n\n\n", Part::Lines(1), "\n"),
            ("no line end", Part::Lines(1), "no line end"),
            ("", Part::Lines(1), ""),
            ("abcdef", Part::Bytes(4), "cdef"),
            ("abcdef", Part::Bytes(40), "abcdef"),
            ("abcdef", Part::Bytes(0), ""),
        ] {
            for piece in 1..8 {
                let found = end_of(text, part, piece);
                assert_eq!(core::str::from_utf8(&found), Ok(expected), "{text:?} {part:?} in pieces of {piece}");
            }
        }
    }

    #[test]
    fn only_what_may_be_the_end_is_kept() {
        let mut kept = Kept::new(Part::Lines(3));
        for _ in 0..10_000 {
            kept.push(b"line\nline\n").unwrap();
        }
        assert!(kept.bytes < 100);
        let mut kept = Kept::new(Part::Lines(1));
        let block = alloc::vec![b'x'; 16 << 20];
        assert_eq!((0..5).try_for_each(|_| kept.push(&block)), Err(TooLong));
    }
}
