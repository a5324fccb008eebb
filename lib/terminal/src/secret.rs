//! Input without echo, for passphrases.
//!
//! The line editor keeps a kill ring and undo steps, so it is not used here. Deliberately not here: cursor movement in
//! an invisible line.

use alloc::vec::Vec;

use crate::LineEvent;

/// Maximum length; excess input is dropped.
const LINE_BYTES: usize = 1024;
const CONTROL_C: u8 = 0x03;
const CONTROL_D: u8 = 0x04;
const BACKSPACE: u8 = 0x08;
const NEW_LINE: u8 = b'\n';
const RETURN: u8 = b'\r';
const CONTROL_U: u8 = 0x15;
const ESCAPE: u8 = 0x1b;
const DELETE: u8 = 0x7f;

/// Progress of a multi-byte key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Key {
    #[default]
    Whole,
    /// After the escape character.
    Escaped,
    /// In the parameters after `ESC [` or `ESC O`.
    Parameters,
}

/// The line so far.
#[derive(Debug, Default)]
pub struct SecretLine {
    typed: Vec<u8>,
    key: Key,
}

impl SecretLine {
    /// Processes input up to the end of the line; returns the number of bytes consumed, and the result.
    pub fn feed(&mut self, bytes: &[u8]) -> (usize, Option<LineEvent>) {
        for (index, &byte) in bytes.iter().enumerate() {
            if let Some(event) = self.take(byte) {
                *self = SecretLine::default();
                return (index + 1, Some(event));
            }
        }
        (bytes.len(), None)
    }

    fn take(&mut self, byte: u8) -> Option<LineEvent> {
        match (self.key, byte) {
            (_, CONTROL_C) => return Some(LineEvent::Interrupted),
            (_, NEW_LINE | RETURN) => return Some(LineEvent::Line(core::mem::take(&mut self.typed))),
            (Key::Escaped, b'[' | b'O') => self.key = Key::Parameters,
            (Key::Parameters, 0x20..=0x3f) => {}
            (Key::Escaped | Key::Parameters, _) => self.key = Key::Whole,
            (Key::Whole, CONTROL_D) if self.typed.is_empty() => return Some(LineEvent::EndOfInput),
            (Key::Whole, ESCAPE) => self.key = Key::Escaped,
            (Key::Whole, BACKSPACE | DELETE) => self.delete_character(),
            (Key::Whole, CONTROL_U) => self.typed.clear(),
            (Key::Whole, 0..=0x1f) => {}
            (Key::Whole, _) if self.typed.len() < LINE_BYTES => self.typed.push(byte),
            (Key::Whole, _) => {}
        }
        None
    }

    /// Deletes the last character, with all of its bytes.
    fn delete_character(&mut self) {
        while self.typed.pop().is_some_and(|byte| byte & 0xc0 == 0x80) {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(bytes: &[u8]) -> Option<LineEvent> {
        SecretLine::default().feed(bytes).1
    }

    fn typed(bytes: &[u8]) -> LineEvent {
        LineEvent::Line(bytes.to_vec())
    }

    #[test]
    fn a_line_ends_with_return_or_line_feed() {
        assert_eq!(SecretLine::default().feed(b"abc\rnext"), (4, Some(typed(b"abc"))));
        assert_eq!(line(b"abc\n"), Some(typed(b"abc")));
        assert_eq!(line(b"abc"), None);
    }

    #[test]
    fn what_was_mistyped_is_taken_back() {
        assert_eq!(line("aö\x7f\x7fb\r".as_bytes()), Some(typed(b"b")));
        assert_eq!(line(b"\x08\x7fb\r"), Some(typed(b"b")));
        assert_eq!(line(b"wrong\x15right\r"), Some(typed(b"right")));
    }

    #[test]
    fn it_can_be_given_up() {
        assert_eq!(line(b"abc\x03"), Some(LineEvent::Interrupted));
        assert_eq!(line(b"\x04"), Some(LineEvent::EndOfInput));
        assert_eq!(line(b"abc\x04\r"), Some(typed(b"abc")));
    }

    #[test]
    fn other_keys_are_no_part_of_it() {
        assert_eq!(line(b"a\x1b[A\x1b[1;5Cb\x1bOPc\x1bxd\tz\r"), Some(typed(b"abcdz")));
    }

    #[test]
    fn it_goes_on_where_it_stopped_and_begins_anew() {
        let mut secret = SecretLine::default();
        assert_eq!(secret.feed(b"ab\x1b"), (3, None));
        assert_eq!(secret.feed(b"[Acd\r"), (5, Some(typed(b"abcd"))));
        assert_eq!(secret.feed(b"e\r"), (2, Some(typed(b"e"))));
    }

    #[test]
    fn it_grows_only_so_far() {
        let mut secret = SecretLine::default();
        assert_eq!(secret.feed(&[b'a'; 3 * LINE_BYTES]), (3 * LINE_BYTES, None));
        assert_eq!(secret.feed(b"\r").1, Some(typed(&[b'a'; LINE_BYTES])));
    }
}
