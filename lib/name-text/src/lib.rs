//! Names as text: names of a file system are bytes, those of the contracts are UTF-8.
//!
//! Every name has exactly one text, and every text stands for at most one name:
//!
//! - A byte that is not part of valid UTF-8 is written `\xHH`, with two lowercase hexadecimal digits.
//! - A backslash that would begin such an escape is written `\x5c`; all others stay as they are.
//!
//! A text that [`to_text`] would not have written, such as `\xc3\xa9` for `é`, is rejected, so a name has a single
//! spelling. Only a backslash and bytes from 0x80 on can be escaped: no escape encodes `/`, zero or a dot, and a path
//! can be converted as a whole. Deliberately not here: control characters, which are valid UTF-8 and are escaped for
//! display.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

/// No name has this text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoName;

/// Length of an escape: the maximum expansion of a byte.
pub const ESCAPE_BYTES: usize = 4;

const DIGITS: [char; 16] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];

/// Converts a name or path to text, at most [`ESCAPE_BYTES`] times as long.
pub fn to_text(name: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = core::str::from_utf8(name)
        && !has_escape(name)
    {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        let valid = chunk.valid();
        for (at, character) in valid.char_indices() {
            match escape(&valid.as_bytes()[at..]) {
                Some(_) => push_escape(&mut text, b'\\'),
                None => text.push(character),
            }
        }
        chunk.invalid().iter().for_each(|&byte| push_escape(&mut text, byte));
    }
    Cow::Owned(text)
}

/// Converts text to a name or path.
///
/// # Errors
/// No name has this text.
pub fn from_text(text: &str) -> Result<Cow<'_, [u8]>, NoName> {
    let mut rest = text.as_bytes();
    if !has_escape(rest) {
        return Ok(Cow::Borrowed(rest));
    }
    let mut name = Vec::with_capacity(rest.len());
    while let Some(&first) = rest.first() {
        let (byte, length) = escape(rest).map_or((first, 1), |byte| (byte, ESCAPE_BYTES));
        name.push(byte);
        rest = &rest[length..];
    }
    if to_text(&name) == text { Ok(Cow::Owned(name)) } else { Err(NoName) }
}

/// Whether it contains anything that looks like an escape.
fn has_escape(bytes: &[u8]) -> bool {
    bytes.windows(ESCAPE_BYTES).any(|window| escape(window).is_some())
}

/// Returns the byte encoded by the escape at the start, if there is one.
fn escape(bytes: &[u8]) -> Option<u8> {
    let &[b'\\', b'x', high, low, ..] = bytes else { return None };
    let byte = digit(high)? << 4 | digit(low)?;
    (byte >= 0x80 || byte == b'\\').then_some(byte)
}

fn digit(character: u8) -> Option<u8> {
    match character {
        b'0'..=b'9' => Some(character - b'0'),
        b'a'..=b'f' => Some(character - b'a' + 10),
        _ => None,
    }
}

fn push_escape(text: &mut String, byte: u8) {
    text.push_str("\\x");
    text.push(DIGITS[usize::from(byte >> 4)]);
    text.push(DIGITS[usize::from(byte & 15)]);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Bytes to build names with escapes, parts of escapes and invalid UTF-8.
    fn tricky_names() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![
            4 => Just(b'\\'),
            3 => Just(b'x'),
            5 => prop::sample::select(b"0589acefEF./".to_vec()),
            3 => prop::sample::select(b"\xc3\xa9\xe9\xf0\x9f\x98\x80\xed\xa0\xff".to_vec()),
            1 => any::<u8>(),
        ];
        prop::collection::vec(byte, 0..40)
    }

    fn name_of(text: &str) -> Option<Vec<u8>> {
        from_text(text).ok().map(Cow::into_owned)
    }

    #[test]
    fn names_of_text_stay_as_they_are() {
        for name in ["", "a", "é", "a\\b", "\\", "\\x", "\\x4", "\\x41", "\\xE9", "\\xg0", "\\x2f", "\\x00", "\u{f7e9}"]
        {
            assert!(matches!(to_text(name.as_bytes()), Cow::Borrowed(text) if text == name), "{name}");
            assert!(matches!(from_text(name), Ok(Cow::Borrowed(bytes)) if bytes == name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn bytes_that_are_no_utf_8_are_escaped() {
        assert_eq!(to_text(b"caf\xe9"), "caf\\xe9");
        assert_eq!(to_text(b"\xff\xc3\xa9\xc3/\x80"), "\\xff\u{e9}\\xc3/\\x80");
        // A surrogate, an overlong slash, an overlong zero: none is valid UTF-8.
        assert_eq!(to_text(b"\xed\xa0\x80"), "\\xed\\xa0\\x80");
        assert_eq!(to_text(b"\xc0\xaf\xc0\x80"), "\\xc0\\xaf\\xc0\\x80");
    }

    #[test]
    fn a_name_that_reads_as_an_escape_is_another_than_the_escaped_one() {
        assert_eq!(to_text(b"\\xe9"), "\\x5cxe9");
        assert_eq!(to_text(b"\\x5cxe9"), "\\x5cx5cxe9");
        assert_eq!(to_text(b"\\\xe9"), "\\\\xe9");
        assert_eq!(to_text(b"\\xe\xe9"), "\\xe\\xe9");
    }

    #[test]
    fn a_text_that_no_name_has_is_refused() {
        // Valid UTF-8 that is escaped, a backslash that needs no escape, and a split character.
        for text in ["\\xc3\\xa9", "\\x5c", "\\x5cx41", "a/\\xf0\\x9f\\x98\\x80", "\\x5c\\xe9"] {
            assert_eq!(from_text(text), Err(NoName), "{text}");
        }
    }

    #[test]
    fn the_longest_name_has_a_text_within_the_limit() {
        assert_eq!(to_text(&[0xff; 255]).len(), 255 * ESCAPE_BYTES);
        assert_eq!(name_of(&to_text(&[0xff; 255])), Some([0xff; 255].to_vec()));
    }

    proptest! {
        #[test]
        fn every_name_comes_back_from_its_text(name in tricky_names()) {
            let text = to_text(&name).into_owned();
            prop_assert_eq!(name_of(&text), Some(name.clone()));
            prop_assert!(text.len() <= name.len() * ESCAPE_BYTES);
        }

        #[test]
        fn every_text_of_a_name_comes_back(text in "(\\\\|x|5|c|e|9|é|/|\\.|\\\\x5c|\\\\xe9|\\\\xc3|\\\\xa9){0,12}") {
            if let Some(name) = name_of(&text) {
                prop_assert_eq!(to_text(&name), text);
            }
        }

        #[test]
        fn different_names_have_different_texts(one in tricky_names(), other in tricky_names()) {
            prop_assert_eq!(to_text(&one) == to_text(&other), one == other);
        }

        #[test]
        fn no_text_hides_a_separator_a_zero_or_dots(name in tricky_names()) {
            let text = to_text(&name).into_owned();
            let count = |bytes: &[u8], wanted: u8| bytes.iter().filter(|&&byte| byte == wanted).count();
            for byte in [b'/', 0, b'.'] {
                prop_assert_eq!(count(text.as_bytes(), byte), count(&name, byte));
            }
            let parts: Vec<String> = name.split(|&byte| byte == b'/').map(|part| to_text(part).into_owned()).collect();
            prop_assert_eq!(text, parts.join("/"));
        }
    }
}
