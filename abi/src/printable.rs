//! Sanitized display of untrusted text: one line, all characters visible and in their place.
//!
//! The kernel uses it for debug text, epitaphs and audit lines; programs for names from disks and networks. So nobody
//! can forge lines of others or control the reader's terminal. Deliberately not here: look-alike characters.

use core::fmt::{self, Display, Formatter, Write};

/// Invisible characters, and those that move others, besides control characters: general categories Cf, Zl and Zp of
/// Unicode 16, and characters drawn as nothing.
const HIDDEN: [(char, char); 26] = [
    ('\u{ad}', '\u{ad}'),
    ('\u{34f}', '\u{34f}'),
    ('\u{600}', '\u{605}'),
    ('\u{61c}', '\u{61c}'),
    ('\u{6dd}', '\u{6dd}'),
    ('\u{70f}', '\u{70f}'),
    ('\u{890}', '\u{891}'),
    ('\u{8e2}', '\u{8e2}'),
    ('\u{115f}', '\u{1160}'),
    ('\u{17b4}', '\u{17b5}'),
    ('\u{180b}', '\u{180f}'),
    ('\u{200b}', '\u{200f}'),
    ('\u{2028}', '\u{202e}'),
    ('\u{2060}', '\u{206f}'),
    ('\u{3164}', '\u{3164}'),
    ('\u{fe00}', '\u{fe0f}'),
    ('\u{feff}', '\u{feff}'),
    ('\u{ffa0}', '\u{ffa0}'),
    ('\u{fff0}', '\u{fffb}'),
    ('\u{110bd}', '\u{110bd}'),
    ('\u{110cd}', '\u{110cd}'),
    ('\u{13430}', '\u{1343f}'),
    ('\u{1bca0}', '\u{1bca3}'),
    ('\u{1d173}', '\u{1d17a}'),
    ('\u{e0000}', '\u{e0fff}'),
    ('\u{f0000}', '\u{10ffff}'),
];

/// Displays untrusted bytes: invalid UTF-8, control characters and hidden ones are escaped as in Rust's string
/// literals. Other text is unchanged, including backslashes, so escaping is idempotent.
#[derive(Clone, Copy, Debug)]
pub struct Printable<'a>(pub &'a [u8]);

impl Display for Printable<'_> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            let mut rest = chunk.valid();
            while let Some(at) = rest.find(needs_escape) {
                let (shown, escaped) = rest.split_at(at);
                formatter.write_str(shown)?;
                let mut characters = escaped.chars();
                characters.next().map_or(Ok(()), |character| escape(character, formatter))?;
                rest = characters.as_str();
            }
            formatter.write_str(rest)?;
            chunk.invalid().iter().try_for_each(|byte| write!(formatter, "\\x{byte:02x}"))?;
        }
        Ok(())
    }
}

fn needs_escape(character: char) -> bool {
    character.is_control() || HIDDEN.iter().any(|&(first, last)| (first..=last).contains(&character))
}

fn escape(character: char, formatter: &mut Formatter<'_>) -> fmt::Result {
    match character {
        '\n' | '\r' | '\t' | '\0' => character.escape_debug().try_for_each(|each| formatter.write_char(each)),
        '\0'..='\x7f' => write!(formatter, "\\x{:02x}", u32::from(character)),
        _ => write!(formatter, "{}", character.escape_unicode()),
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::{String, ToString};
    use alloc::vec::Vec;

    use super::*;

    fn shown(bytes: &[u8]) -> String {
        Printable(bytes).to_string()
    }

    #[test]
    fn ordinary_text_is_shown_as_it_is() {
        for text in ["", "a b", "K\u{f6}ln \u{65e5}\u{672c} e\u{301} \u{1f600}", r"C:\new 'x' \x1b", "a\u{a0}b"] {
            assert_eq!(shown(text.as_bytes()), text);
        }
    }

    #[test]
    fn what_moves_hides_or_ends_a_line_is_escaped() {
        let cases: [(&[u8], &str); 9] = [
            (b"a\nkernel: b", r"a\nkernel: b"),
            (b"a\r\x1b[2Kb", r"a\r\x1b[2Kb"),
            (b"tab\tbell\x07nul\0", r"tab\tbell\x07nul\0"),
            ("\u{9b}2J\u{85}".as_bytes(), r"\u{9b}2J\u{85}"),
            ("gpj\u{202e}exe.".as_bytes(), r"gpj\u{202e}exe."),
            ("a\u{2028}b\u{2029}".as_bytes(), r"a\u{2028}b\u{2029}"),
            ("a\u{200b}b\u{2066}\u{feff}".as_bytes(), r"a\u{200b}b\u{2066}\u{feff}"),
            (b"\xff\xfe ok \xc3", r"\xff\xfe ok \xc3"),
            ("\u{e0041}\u{7f}".as_bytes(), r"\u{e0041}\x7f"),
        ];
        for (bytes, expected) in cases {
            assert_eq!(shown(bytes), expected);
        }
    }

    /// The standard library knows which characters are drawn: of those that its `Debug` escapes, only combining marks
    /// and unassigned ones may pass.
    #[test]
    fn each_character_that_is_shown_leaves_the_others_in_their_place() {
        for character in (0..=0x10_ffff).filter_map(char::from_u32) {
            let text = character.to_string();
            let out = shown(text.as_bytes());
            let plain = !out.chars().any(|each| {
                each.is_control()
                    || matches!(each, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200b}'..='\u{200f}')
            });
            assert!(plain, "{:#x} is shown as {out:?}", u32::from(character));
            assert!(out == text || out.is_ascii(), "{:#x}", u32::from(character));
        }
    }

    /// Random pieces of troublesome bytes.
    #[test]
    fn whatever_comes_it_is_one_line_that_is_not_changed_again() {
        const PIECES: [&[u8]; 16] = [
            b"\n",
            b"\r\n",
            b"\x1b]0;title\x07",
            b"\x1b[1A",
            b"\xe2\x80\xae",
            b"\xe2\x80",
            b"\xa8",
            b"kernel: ",
            b"\\n",
            b"\xf0\x9f\x98\x80",
            b"\xc2\x9b",
            b"a",
            b"\0",
            b"\xed\xa0\x80",
            b"\xf4\x90\x80\x80",
            b" ",
        ];
        let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize
        };
        for _ in 0..20_000 {
            let bytes: Vec<u8> = (0..next() % 12)
                .flat_map(|_| if next() % 4 == 0 { alloc::vec![next() as u8] } else { PIECES[next() % 16].to_vec() })
                .collect();
            let out = shown(&bytes);
            assert!(!out.chars().any(needs_escape), "{bytes:?} is shown as {out:?}");
            assert_eq!(out.lines().count().min(1), out.lines().count(), "{bytes:?}");
            assert_eq!(shown(out.as_bytes()), out, "{bytes:?}");
        }
    }
}
