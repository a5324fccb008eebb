//! A file as lines, and lines as numbers that are equal for lines considered equal.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Differences to ignore.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ignored {
    /// Case of letters.
    pub case: bool,
    /// White space.
    pub blanks: bool,
}

/// A file's content.
pub struct Text {
    bytes: Vec<u8>,
    /// Start of each line, and the end of the text.
    starts: Vec<usize>,
}

impl Text {
    /// Splits a file's content into lines.
    pub fn new(bytes: Vec<u8>) -> Text {
        let mut starts = Vec::from([0]);
        starts.extend(bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(index, _)| index + 1));
        if starts.last() != Some(&bytes.len()) {
            starts.push(bytes.len());
        }
        Text { bytes, starts }
    }

    /// Number of lines.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns a line, and whether it has a line end.
    pub fn line(&self, index: usize) -> (&[u8], bool) {
        let line = &self.bytes[self.starts[index]..self.starts[index + 1]];
        line.strip_suffix(b"\n").map_or((line, false), |line| (line, true))
    }

    /// Whether the content is binary.
    pub fn is_binary(&self) -> bool {
        self.bytes.contains(&0)
    }

    /// The whole content.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Numbers the lines of both files; equal lines get equal numbers.
pub fn number_lines(old: &Text, new: &Text, ignored: Ignored) -> [Vec<u32>; 2] {
    let mut known: BTreeMap<(Vec<u8>, bool), u32> = BTreeMap::new();
    [old, new].map(|text| {
        let keys = (0..text.len()).map(|index| key(text.line(index), ignored));
        keys.map(|key| {
            let next = known.len() as u32;
            *known.entry(key).or_insert(next)
        })
        .collect()
    })
}

/// Returns the compared part of a line. A line without a line end differs from one with it.
fn key((line, has_end): (&[u8], bool), ignored: Ignored) -> (Vec<u8>, bool) {
    let counts = |byte: &&u8| !(ignored.blanks && byte.is_ascii_whitespace());
    let letter = |byte: &u8| if ignored.case { byte.to_ascii_lowercase() } else { *byte };
    (line.iter().filter(counts).map(letter).collect(), has_end || ignored.blanks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_may_have_no_end() {
        let text = Text::new(b"a\n\nb".to_vec());
        let lines: Vec<(&[u8], bool)> = (0..text.len()).map(|index| text.line(index)).collect();
        assert_eq!(lines, [(&b"a"[..], true), (b"", true), (b"b", false)]);
        assert_eq!(Text::new(Vec::new()).len(), 0);
        assert_eq!(Text::new(b"a\n".to_vec()).len(), 1);
    }

    #[test]
    fn what_is_ignored_does_not_count() {
        let [old, new] = [&b"A b\nx"[..], b"aB\nx\n"].map(|bytes| Text::new(bytes.to_vec()));
        assert_eq!(number_lines(&old, &new, Ignored::default()), [[0, 1], [2, 3]]);
        assert_eq!(number_lines(&old, &new, Ignored { case: true, blanks: true }), [[0, 1], [0, 1]]);
    }
}
