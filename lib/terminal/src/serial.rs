//! A byte stream over a line that cannot say that it has ended: a serial line, say.
//!
//! Two control characters have a meaning, as at a Unix terminal: Ctrl-D ends the input, and Ctrl-V takes the
//! next byte as it is. All other bytes are themselves. Whoever feeds a stream into such a line [quotes](quote)
//! it and adds [`END`].

use alloc::vec::Vec;

/// Ends the input.
pub const END: u8 = 0x04;
/// Takes the next byte as it is.
pub const LITERAL: u8 = 0x16;

/// Takes a stream apart that was made by [`quote`].
#[derive(Debug, Default)]
pub struct Unquote {
    after_literal: bool,
    ended: bool,
}

impl Unquote {
    /// At the start of the stream.
    pub fn new() -> Unquote {
        Unquote::default()
    }

    /// The bytes that these stand for, appended to `out`. What follows the end is dropped.
    pub fn feed(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        for &byte in bytes {
            if self.ended {
                return;
            }
            match byte {
                _ if core::mem::take(&mut self.after_literal) => out.push(byte),
                LITERAL => self.after_literal = true,
                END => self.ended = true,
                _ => out.push(byte),
            }
        }
    }

    /// The next bytes of the stream; none at all are its end, which is for good. `more` gives what has come over the
    /// line since it was last asked, or nothing when nothing has; no bytes there are the end, too.
    pub fn next(&mut self, mut more: impl FnMut() -> Option<Vec<u8>>) -> Option<Vec<u8>> {
        loop {
            if self.ended {
                return Some(Vec::new());
            }
            let input = more()?;
            self.ended = input.is_empty();
            let mut bytes = Vec::with_capacity(input.len());
            self.feed(&input, &mut bytes);
            // A lone Ctrl-V is nothing yet.
            if !bytes.is_empty() {
                return Some(bytes);
            }
        }
    }

    /// Whether the end has come.
    pub fn has_ended(&self) -> bool {
        self.ended
    }
}

/// Bytes as they go over the line, without the end.
pub fn quote(bytes: &[u8]) -> Vec<u8> {
    let mut quoted = Vec::with_capacity(bytes.len());
    for &byte in bytes {
        if matches!(byte, END | LITERAL) {
            quoted.push(LITERAL);
        }
        quoted.push(byte);
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_gets_through_and_the_end_is_the_end() {
        let all: Vec<u8> = (0..=255).chain([END, END, LITERAL, LITERAL, END]).collect();
        let mut line = quote(&all);
        line.push(END);
        line.extend_from_slice(b"too late");
        // However it is cut.
        for cut in 0..line.len() {
            let (mut unquote, mut out) = (Unquote::new(), Vec::new());
            unquote.feed(&line[..cut], &mut out);
            unquote.feed(&line[cut..], &mut out);
            assert_eq!(out, all);
            assert!(unquote.has_ended());
        }
    }

    #[test]
    fn without_an_end_more_may_come() {
        let (mut unquote, mut out) = (Unquote::new(), Vec::new());
        unquote.feed(b"abc\x16", &mut out);
        assert!(!unquote.has_ended());
        unquote.feed(b"\x04d", &mut out);
        assert_eq!(out, b"abc\x04d");
        assert!(!unquote.has_ended());
    }

    #[test]
    fn an_end_that_comes_with_the_last_bytes_is_told_after_them() {
        let mut pieces = Vec::from([None, Some(b"abc\x04".to_vec()), Some(b"\x16".to_vec())]);
        let mut unquote = Unquote::new();
        let mut next = || unquote.next(|| pieces.pop().expect("nothing is asked for after the end"));
        assert_eq!(next(), Some(b"abc".to_vec()));
        assert_eq!(next(), Some(Vec::new()));
        assert_eq!(next(), Some(Vec::new()));
        assert_eq!(pieces, [None]);
    }

    #[test]
    fn a_line_that_is_gone_ends_the_stream() {
        let mut pieces = Vec::from([Some(Vec::new()), None]);
        let mut unquote = Unquote::new();
        assert_eq!(unquote.next(|| pieces.pop().flatten()), None);
        assert_eq!(unquote.next(|| pieces.pop().flatten()), Some(Vec::new()));
        assert!(unquote.has_ended());
    }
}
