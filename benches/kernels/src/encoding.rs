//! Base64 (RFC 4648) of text, back, and its check as UTF-8 (RFC 3629): bytes and small tables.

use alloc::vec::Vec;

use crate::numbers::{Numbers, digest};

const BYTES: usize = 1 << 19;
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub fn run() -> u64 {
    let mut numbers = Numbers::of(0xba5e64);
    let letters = ['a', 'e', 'n', ' ', '\n', 'ä', 'ß', '√', '漢', '🦀'];
    let mut text = Vec::new();
    let mut room = [0; 4];
    while text.len() < BYTES {
        let letter = letters[numbers.below(letters.len() as u64) as usize];
        text.extend(letter.encode_utf8(&mut room).as_bytes());
    }
    let coded = encode(&text);
    let decoded = decode(&coded).unwrap_or_default();
    let sum = digest(coded.iter().map(|byte| u64::from(*byte)));
    digest([sum, decoded.len() as u64, letters_of(&decoded).unwrap_or(0)])
}

fn encode(bytes: &[u8]) -> Vec<u8> {
    let mut coded = Vec::with_capacity(bytes.len().div_ceil(3) * 4);
    for part in bytes.chunks(3) {
        let word = part.iter().enumerate().fold(0, |word, (place, byte)| word | u32::from(*byte) << (16 - 8 * place));
        for place in 0..4 {
            let letter = ALPHABET[(word >> (18 - 6 * place)) as usize & 63];
            coded.push(if place <= part.len() { letter } else { b'=' });
        }
    }
    coded
}

fn value(letter: u8) -> Option<u32> {
    let value = match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(value.into())
}

fn decode(coded: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(coded.len() / 4 * 3);
    for part in coded.chunks(4) {
        let letters = part.iter().take_while(|letter| **letter != b'=').count();
        let mut word = 0;
        for letter in &part[..letters] {
            word = word << 6 | value(*letter)?;
        }
        word <<= 6 * (4 - letters);
        bytes.extend(&word.to_be_bytes()[1..letters.max(1)]);
    }
    Some(bytes)
}

/// Number of characters of UTF-8; none if it is none. Forms that are too long, and surrogates, are not.
fn letters_of(bytes: &[u8]) -> Option<u64> {
    let mut letters = 0;
    let mut rest = bytes;
    while let Some((&first, later)) = rest.split_first() {
        let (following, lowest) = match first {
            0x00..=0x7f => (0, 0),
            0xc2..=0xdf => (1, 0x80),
            0xe0..=0xef => (2, 0x800),
            0xf0..=0xf4 => (3, 0x1_0000),
            _ => return None,
        };
        let mut letter = u32::from(first) & (0x7f >> following);
        for byte in later.get(..following)? {
            letter = (byte & 0xc0 == 0x80).then_some(letter << 6 | u32::from(byte & 0x3f))?;
        }
        if following > 0 && (letter < lowest || char::from_u32(letter).is_none()) {
            return None;
        }
        letters += 1;
        rest = &later[following..];
    }
    Some(letters)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4648, section 10.
    #[test]
    fn the_rfcs_examples_hold() {
        let examples = [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")];
        for (text, coded) in examples {
            assert_eq!(encode(text.as_bytes()), coded.as_bytes());
            assert_eq!(decode(coded.as_bytes()).as_deref(), Some(text.as_bytes()));
        }
        assert_eq!(decode(b"Zm9*"), None);
    }

    #[test]
    fn utf_8_is_told_from_what_is_none() {
        assert_eq!(letters_of("aß√🦀".as_bytes()), Some(4));
        for bad in [&b"\xc0\x80"[..], b"\xe0\x80\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x88", b"\x80"] {
            assert_eq!(letters_of(bad), None, "{bad:x?}");
        }
    }
}
