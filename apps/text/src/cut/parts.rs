//! Selection of parts of a line.

use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use crate::cut::ranges::Ranges;

/// Unit in which parts are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Fields between delimiters.
    Fields,
    /// UTF-8 characters.
    Characters,
    /// Bytes.
    Bytes,
}

/// Which parts of a line are printed.
pub struct Parts {
    /// Unit in which parts are counted.
    pub unit: Unit,
    /// Selected parts.
    pub ranges: Ranges,
    /// Delimiter between fields.
    pub delimiter: String,
    /// Separator printed between parts.
    pub between: String,
    /// Whether lines without the delimiter are skipped.
    pub only_delimited: bool,
}

impl Parts {
    /// Appends the selected parts of a line to `cut`. Returns whether the line is printed at all.
    pub fn cut(&self, line: &[u8], cut: &mut Vec<u8>) -> bool {
        let units = match self.unit {
            Unit::Fields => fields(line, self.delimiter.as_bytes()),
            Unit::Characters => characters(line),
            Unit::Bytes => (0..line.len()).map(|byte| byte..byte + 1).collect(),
        };
        if self.unit == Unit::Fields && units.len() == 1 {
            if !self.only_delimited {
                cut.extend_from_slice(line);
            }
            return !self.only_delimited;
        }
        let mut before: &[u8] = b"";
        let mut put = |run: Range<usize>| {
            cut.extend_from_slice(before);
            cut.extend_from_slice(&line[run]);
            before = self.between.as_bytes();
        };
        for wanted in self.ranges.within(units.len()) {
            match self.unit {
                Unit::Fields => units[wanted].iter().cloned().for_each(&mut put),
                // Adjacent units form one run.
                Unit::Characters | Unit::Bytes => put(units[wanted.start].start..units[wanted.end - 1].end),
            }
        }
        true
    }
}

fn fields(line: &[u8], delimiter: &[u8]) -> Vec<Range<usize>> {
    let mut fields = Vec::new();
    let mut start = 0;
    let mut at = 0;
    while at < line.len() {
        if line[at..].starts_with(delimiter) {
            fields.push(start..at);
            at += delimiter.len();
            start = at;
        } else {
            at += 1;
        }
    }
    fields.push(start..line.len());
    fields
}

/// Splits a line into characters; an invalid UTF-8 byte counts as one.
fn characters(line: &[u8]) -> Vec<Range<usize>> {
    let mut characters = Vec::new();
    let mut start = 0;
    for chunk in line.utf8_chunks() {
        for character in chunk.valid().chars() {
            characters.push(start..start + character.len_utf8());
            start += character.len_utf8();
        }
        for _ in chunk.invalid() {
            characters.push(start..start + 1);
            start += 1;
        }
    }
    characters
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(unit: Unit, list: &str, delimiter: &str, line: &[u8]) -> Option<String> {
        let parts = Parts {
            unit,
            ranges: Ranges::parse(list).unwrap_or_else(|error| panic!("{error}")),
            delimiter: delimiter.into(),
            between: if unit == Unit::Fields { delimiter.into() } else { String::new() },
            only_delimited: true,
        };
        let mut bytes = Vec::new();
        parts.cut(line, &mut bytes).then(|| String::from_utf8_lossy(&bytes).into_owned())
    }

    #[test]
    fn fields_keep_their_order_and_delimiter() {
        assert_eq!(cut(Unit::Fields, "3,1", ",", b"a,b,c,d").as_deref(), Some("a,c"));
        assert_eq!(cut(Unit::Fields, "2-", ",", b"a,b,,d").as_deref(), Some("b,,d"));
        assert_eq!(cut(Unit::Fields, "9", ",", b"a,b").as_deref(), Some(""));
        assert_eq!(cut(Unit::Fields, "1", ",", b"ab"), None);
        assert_eq!(cut(Unit::Fields, "2", "→", "a→b".as_bytes()).as_deref(), Some("b"));
    }

    #[test]
    fn characters_are_not_bytes() {
        assert_eq!(cut(Unit::Characters, "2-3", "", "aäöx".as_bytes()).as_deref(), Some("äö"));
        assert_eq!(cut(Unit::Bytes, "1,4-", "", b"abcdef").as_deref(), Some("adef"));
        assert_eq!(cut(Unit::Characters, "2", "", b"\xff\xfea").as_deref(), Some("\u{fffd}"));
    }
}
