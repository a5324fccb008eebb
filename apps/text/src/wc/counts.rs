//! Counting over a stream in pieces.

/// Counts of lines, words and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Line ends.
    pub lines: u64,
    /// Runs of non-white-space bytes.
    pub words: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Counts {
    /// Adds other counts.
    pub fn add(&mut self, other: Counts) {
        self.lines += other.lines;
        self.words += other.words;
        self.bytes += other.bytes;
    }
}

/// Counts a stream incrementally.
#[derive(Default)]
pub struct Counter {
    counts: Counts,
    in_word: bool,
}

impl Counter {
    /// Counts the next bytes of the stream.
    pub fn count(&mut self, bytes: &[u8]) {
        self.counts.bytes += bytes.len() as u64;
        for &byte in bytes {
            // Vertical tab counts as white space, as in C.
            let is_white = byte.is_ascii_whitespace() || byte == 0x0b;
            self.counts.words += u64::from(!is_white && !self.in_word);
            self.counts.lines += u64::from(byte == b'\n');
            self.in_word = !is_white;
        }
    }

    /// The counts so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_over_two_pieces_is_one() {
        let mut counter = Counter::default();
        for piece in ["one tw", "o\nth", "", "ree \t\n"] {
            counter.count(piece.as_bytes());
        }
        assert_eq!(counter.counts(), Counts { lines: 2, words: 3, bytes: 16 });
    }
}
