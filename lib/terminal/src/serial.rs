//! End of input on a byte stream without one, such as a serial line.
//!
//! As on a Unix terminal, Ctrl-D ends the input, and Ctrl-V makes the next byte literal. The sender [quotes](quote) its
//! bytes and appends [`END`].

use alloc::vec::Vec;

/// End of input.
pub const END: u8 = 0x04;
/// Makes the next byte literal.
pub const LITERAL: u8 = 0x16;

/// Decodes a stream made by [`quote`].
#[derive(Debug, Default)]
pub struct Unquote {
    after_literal: bool,
    ended: bool,
}

impl Unquote {
    /// Creates a decoder.
    pub fn new() -> Unquote {
        Unquote::default()
    }

    /// Appends the decoded bytes to `out`. Bytes after the end are dropped.
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

    /// Returns the next decoded bytes; empty at the end of the stream, which is final. `more` returns the bytes
    /// received since its last call, or `None` if there are none; empty bytes there end the stream, too.
    pub fn next(&mut self, mut more: impl FnMut() -> Option<Vec<u8>>) -> Option<Vec<u8>> {
        loop {
            if self.ended {
                return Some(Vec::new());
            }
            let input = more()?;
            self.ended = input.is_empty();
            let mut bytes = Vec::with_capacity(input.len());
            self.feed(&input, &mut bytes);
            // A trailing Ctrl-V is incomplete.
            if !bytes.is_empty() {
                return Some(bytes);
            }
        }
    }

    /// Whether the end has been reached.
    pub fn has_ended(&self) -> bool {
        self.ended
    }
}

/// Encodes bytes, without the end.
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
        // Regardless of how it is split.
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
