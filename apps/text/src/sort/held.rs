//! The lines to sort, all in memory.

use alloc::vec::Vec;

/// Maximum size in bytes of lines and their index: half of the memory in the manifest, because sorting and growing
/// need room as well.
pub const MAX_BYTES: usize = 128 << 20;
/// Size in bytes of a buffer shared by several lines.
const PIECE_BYTES: usize = 1 << 20;
/// Size in bytes of the index entry of a line, including the room to sort it.
const LINE_BYTES: usize = 2 * size_of::<Place>();

#[derive(Clone, Copy, Debug)]
struct Place {
    piece: u32,
    start: u32,
    length: u32,
}

/// The lines exceed [`MAX_BYTES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMany;

/// Lines and their order.
#[derive(Default)]
pub struct Held {
    pieces: Vec<Vec<u8>>,
    places: Vec<Place>,
    bytes: usize,
}

impl Held {
    /// Appends a line.
    ///
    /// # Errors
    ///
    /// If there is no room for it.
    pub fn push(&mut self, line: &[u8]) -> Result<(), TooMany> {
        self.bytes += line.len() + LINE_BYTES;
        if self.bytes > MAX_BYTES {
            return Err(TooMany);
        }
        let has_room = self.pieces.last().is_some_and(|piece| piece.capacity() - piece.len() >= line.len());
        if !has_room {
            self.pieces.push(Vec::with_capacity(line.len().max(PIECE_BYTES)));
        }
        let index = self.pieces.len() - 1;
        let piece = &mut self.pieces[index];
        // A piece is no longer than the longest line or `PIECE_BYTES`, and there are fewer than `MAX_BYTES` of them.
        self.places.push(Place { piece: index as u32, start: piece.len() as u32, length: line.len() as u32 });
        piece.extend_from_slice(line);
        Ok(())
    }

    /// Sorts the lines; the sort is stable.
    pub fn sort(&mut self, mut compare: impl FnMut(&[u8], &[u8]) -> core::cmp::Ordering) {
        let pieces = &self.pieces;
        self.places.sort_by(|left, right| compare(bytes(pieces, *left), bytes(pieces, *right)));
    }

    /// Returns the lines in order.
    pub fn lines(&self) -> impl Iterator<Item = &[u8]> {
        self.places.iter().map(|place| bytes(&self.pieces, *place))
    }
}

fn bytes(pieces: &[Vec<u8>], place: Place) -> &[u8] {
    let start = place.start as usize;
    &pieces[place.piece as usize][start..start + place.length as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_held_in_pieces() {
        let mut held = Held::default();
        let long = alloc::vec![b'x'; PIECE_BYTES + 1];
        for line in [&b"b"[..], &long, b"", b"a"] {
            assert_eq!(held.push(line), Ok(()));
        }
        held.sort(Ord::cmp);
        assert_eq!(held.lines().map(<[u8]>::len).collect::<Vec<_>>(), [0, 1, 1, PIECE_BYTES + 1]);
        assert_eq!(held.lines().nth(1), Some(&b"a"[..]));
    }

    #[test]
    fn there_is_a_limit() {
        let mut held = Held::default();
        let line = alloc::vec![0; MAX_BYTES / 4];
        assert_eq!((0..3).map(|_| held.push(&line)).filter(Result::is_ok).count(), 3);
        assert_eq!(held.push(&line), Err(TooMany));
    }
}
