//! Decodes bytes of a terminal to keys.
//!
//! Understands UTF-8 and the escape sequences of xterm, rxvt, the Linux console and those that
//! follow them. An unknown sequence is one [`Key::Unknown`], never text in the line.

/// One key, or one chunk of a paste.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// A character of text.
    Char(char),
    /// Ctrl and a letter, given in upper case (or one of `@ [ \ ] ^ _`).
    Control(char),
    /// Alt and a character.
    Alt(char),
    /// Enter, also that of the keypad.
    Enter,
    /// The tabulator.
    Tab,
    /// Deletes to the left.
    Backspace,
    /// Alt and Backspace.
    AltBackspace,
    /// Deletes to the right.
    Delete,
    /// An arrow.
    Left,
    /// An arrow.
    Right,
    /// An arrow.
    Up,
    /// An arrow.
    Down,
    /// An arrow with Ctrl, Alt or Shift.
    WordLeft,
    /// An arrow with Ctrl, Alt or Shift.
    WordRight,
    /// Home.
    Home,
    /// End.
    End,
    /// Page Up.
    PageUp,
    /// Page Down.
    PageDown,
    /// Pasted text follows.
    PasteStart,
    /// The end of pasted text.
    PasteEnd,
    /// An unknown sequence.
    Unknown,
}

/// Maximum escape sequence kept, in bytes; a longer one is skipped to its end and is unknown.
const SEQUENCE_BYTES: usize = 16;

#[derive(Clone, Copy, Debug, Default)]
enum State {
    #[default]
    Ground,
    Escape,
    /// After `ESC [`.
    Sequence {
        bytes: [u8; SEQUENCE_BYTES],
        length: usize,
    },
    /// After `ESC O`.
    SingleShift,
    /// Inside a UTF-8 character.
    Utf8 {
        bytes: [u8; 4],
        length: usize,
        wanted: usize,
        alt: bool,
    },
}

/// Decodes keys. A byte can end at most one key and start another, hence the pair in [`Decoder::push`].
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    state: State,
}

impl Decoder {
    /// Creates a decoder.
    pub fn new() -> Decoder {
        Decoder { state: State::Ground }
    }

    /// Decodes one byte; returns the keys that it completes, in order.
    pub fn push(&mut self, byte: u8) -> [Option<Key>; 2] {
        match self.state {
            State::Utf8 { mut bytes, length, wanted, alt } => {
                if byte & 0xc0 != 0x80 {
                    self.state = State::Ground;
                    return [Some(text_key(char::REPLACEMENT_CHARACTER, alt)), self.begin(byte, false)];
                }
                bytes[length] = byte;
                if length + 1 < wanted {
                    self.state = State::Utf8 { bytes, length: length + 1, wanted, alt };
                    return [None, None];
                }
                self.state = State::Ground;
                let text = core::str::from_utf8(&bytes[..wanted]).ok();
                let character = text.and_then(|text| text.chars().next()).unwrap_or(char::REPLACEMENT_CHARACTER);
                [Some(text_key(character, alt)), None]
            }
            State::Ground => [self.begin(byte, false), None],
            State::Escape => [self.after_escape(byte), None],
            State::SingleShift => {
                self.state = State::Ground;
                [Some(final_key(byte, 1)), None]
            }
            State::Sequence { bytes, length } => [self.in_sequence(byte, bytes, length), None],
        }
    }

    fn begin(&mut self, byte: u8, alt: bool) -> Option<Key> {
        self.state = State::Ground;
        let wanted = match byte {
            0x1b => {
                self.state = State::Escape;
                return None;
            }
            b'\r' | b'\n' => return Some(Key::Enter),
            b'\t' => return Some(Key::Tab),
            0x08 | 0x7f if alt => return Some(Key::AltBackspace),
            0x08 | 0x7f => return Some(Key::Backspace),
            0..=0x1f => return Some(Key::Control(char::from(byte + 0x40))),
            0x20..=0x7e => return Some(text_key(char::from(byte), alt)),
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            _ => return Some(text_key(char::REPLACEMENT_CHARACTER, alt)),
        };
        self.state = State::Utf8 { bytes: [byte, 0, 0, 0], length: 1, wanted, alt };
        None
    }

    fn after_escape(&mut self, byte: u8) -> Option<Key> {
        match byte {
            b'[' => {
                self.state = State::Sequence { bytes: [0; SEQUENCE_BYTES], length: 0 };
                None
            }
            b'O' => {
                self.state = State::SingleShift;
                None
            }
            _ => self.begin(byte, true),
        }
    }

    fn in_sequence(&mut self, byte: u8, mut bytes: [u8; SEQUENCE_BYTES], length: usize) -> Option<Key> {
        match byte {
            // The Linux console's function keys, `ESC [ [ A`, have one more byte.
            b'[' if length == 0 => {
                self.state = State::SingleShift;
                None
            }
            0x20..=0x3f => {
                if length < SEQUENCE_BYTES {
                    bytes[length] = byte;
                }
                self.state = State::Sequence { bytes, length: (length + 1).min(SEQUENCE_BYTES + 1) };
                None
            }
            0x40..=0x7e => {
                self.state = State::Ground;
                let known = bytes.get(..length);
                Some(known.map_or(Key::Unknown, |parameters| sequence_key(parameters, byte)))
            }
            // A control character or a stray byte breaks the sequence off and counts itself.
            _ => self.begin(byte, false),
        }
    }
}

fn text_key(character: char, alt: bool) -> Key {
    if alt { Key::Alt(character) } else { Key::Char(character) }
}

/// The key of `ESC [ parameters last`.
fn sequence_key(parameters: &[u8], last: u8) -> Key {
    let mut numbers = parameters.split(|&byte| byte == b';').map(number);
    let first = numbers.next().flatten().unwrap_or(1);
    // xterm: the second number is 1 plus the modifiers; rxvt sends `ESC [ 5 D` for the same.
    let modifier = numbers.next().flatten().unwrap_or(if last.is_ascii_alphabetic() { first } else { 1 });
    match (last, first) {
        (b'~', 1 | 7) => Key::Home,
        (b'~', 3) => Key::Delete,
        (b'~', 4 | 8) => Key::End,
        (b'~', 5) => Key::PageUp,
        (b'~', 6) => Key::PageDown,
        (b'~', 200) => Key::PasteStart,
        (b'~', 201) => Key::PasteEnd,
        _ => final_key(last, modifier),
    }
}

fn final_key(last: u8, modifier: u32) -> Key {
    let word = modifier > 1;
    match last {
        b'A' => Key::Up,
        b'B' => Key::Down,
        b'C' if word => Key::WordRight,
        b'D' if word => Key::WordLeft,
        b'C' => Key::Right,
        b'D' => Key::Left,
        b'c' => Key::WordRight,
        b'd' => Key::WordLeft,
        b'H' => Key::Home,
        b'F' => Key::End,
        b'M' => Key::Enter,
        _ => Key::Unknown,
    }
}

fn number(digits: &[u8]) -> Option<u32> {
    core::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn keys(bytes: &[u8]) -> Vec<Key> {
        let mut decoder = Decoder::new();
        bytes.iter().flat_map(|&byte| decoder.push(byte)).flatten().collect()
    }

    #[test]
    fn sequences_of_several_terminals_are_the_same_keys() {
        assert_eq!(keys(b"\x1b[A\x1bOA"), [Key::Up, Key::Up]);
        assert_eq!(keys(b"\x1b[H\x1b[1~\x1b[7~\x1bOH"), [Key::Home; 4]);
        assert_eq!(keys(b"\x1b[1;5C\x1b[5C\x1bOc\x1b[1;3C"), [Key::WordRight; 4]);
        assert_eq!(keys(b"\x1b[3~\x1b[5~\x1b[6~"), [Key::Delete, Key::PageUp, Key::PageDown]);
        assert_eq!(keys(b"\x1bb\x1b\x7f"), [Key::Alt('b'), Key::AltBackspace]);
    }

    #[test]
    fn an_unknown_sequence_is_swallowed_whole() {
        assert_eq!(keys(b"\x1b[38;2;100;200;300;400mx"), [Key::Unknown, Key::Char('x')]);
        assert_eq!(keys(b"\x1b[[Ax"), [Key::Up, Key::Char('x')]);
    }

    #[test]
    fn broken_utf8_is_one_replacement_and_loses_nothing_else() {
        assert_eq!(keys("é€😀".as_bytes()), [Key::Char('é'), Key::Char('€'), Key::Char('😀')]);
        assert_eq!(keys(b"\xe2\x82x"), [Key::Char('\u{fffd}'), Key::Char('x')]);
        assert_eq!(keys(b"\xff\xc3\x1b[A"), [Key::Char('\u{fffd}'), Key::Char('\u{fffd}'), Key::Up]);
    }
}
