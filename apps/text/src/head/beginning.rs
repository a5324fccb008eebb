//! The leading part of a stream.

use text::amount::Part;

/// Remainder of the leading part to be read.
pub struct Beginning {
    missing: Part,
}

impl Beginning {
    /// Starts with nothing read.
    pub fn new(part: Part) -> Beginning {
        Beginning { missing: part }
    }

    /// Whether the part is complete.
    pub fn is_whole(&self) -> bool {
        matches!(self.missing, Part::Lines(0) | Part::Bytes(0))
    }

    /// Returns how many of the next bytes of the stream belong to the part.
    pub fn take(&mut self, bytes: &[u8]) -> usize {
        match &mut self.missing {
            Part::Bytes(missing) => {
                let taken = usize::try_from(*missing).unwrap_or(usize::MAX).min(bytes.len());
                *missing -= taken as u64;
                taken
            }
            Part::Lines(0) => 0,
            Part::Lines(missing) => {
                for (index, _) in bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n') {
                    *missing -= 1;
                    if *missing == 0 {
                        return index + 1;
                    }
                }
                bytes.len()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_where_they_end() {
        let mut beginning = Beginning::new(Part::Lines(2));
        assert_eq!(beginning.take(b"a\nb"), 3);
        assert_eq!(beginning.take(b"c\nd\n"), 2);
        assert!(beginning.is_whole());
        assert_eq!(beginning.take(b"d"), 0);
        assert!(Beginning::new(Part::Lines(0)).is_whole());
    }

    #[test]
    fn bytes_are_counted_over_blocks() {
        let mut beginning = Beginning::new(Part::Bytes(5));
        assert_eq!(beginning.take(b"abc"), 3);
        assert!(!beginning.is_whole());
        assert_eq!(beginning.take(b"def"), 2);
        assert!(beginning.is_whole());
    }
}
