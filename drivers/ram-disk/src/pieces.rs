//! A sparse byte array, which allocates only the pieces that have been written.
//!
//! Deliberately not here: the allocator.

use alloc::vec::Vec;
use core::ops::DerefMut;

/// Size of a piece in bytes.
pub const PIECE_BYTES: usize = 64 * 1024;

/// A sparse byte array, zero where nothing was written. `P` is the memory of a piece.
pub struct Pieces<P> {
    size_bytes: u64,
    pieces: Vec<Option<P>>,
}

/// Part of a transfer within one piece.
struct Part {
    index: usize,
    /// Offset in the piece.
    within: usize,
    bytes: usize,
}

impl<P: DerefMut<Target = [u8]>> Pieces<P> {
    /// Creates an array of zeroes. `None` if there is no memory for the list of pieces.
    pub fn new(size_bytes: u64) -> Option<Pieces<P>> {
        let count = usize::try_from(size_bytes.div_ceil(PIECE_BYTES as u64)).ok()?;
        let mut pieces = Vec::new();
        pieces.try_reserve_exact(count).ok()?;
        pieces.resize_with(count, || None);
        Some(Pieces { size_bytes, pieces })
    }

    /// Copies bytes from `offset` on. `None` if they extend past the end.
    pub fn read(&self, offset: u64, mut target: &mut [u8]) -> Option<()> {
        for Part { index, within, bytes } in self.parts(offset, target.len())? {
            let (now, later) = target.split_at_mut(bytes);
            match self.pieces.get(index)? {
                Some(piece) => now.copy_from_slice(piece.get(within..within + bytes)?),
                None => now.fill(0),
            }
            target = later;
        }
        Some(())
    }

    /// Writes bytes from `offset` on. `take` allocates zeroed memory of a length. `None` if the bytes extend
    /// past the end, or if memory runs out: then the pieces before are written.
    pub fn write(&mut self, offset: u64, mut source: &[u8], mut take: impl FnMut(usize) -> Option<P>) -> Option<()> {
        for Part { index, within, bytes } in self.parts(offset, source.len())? {
            let (now, later) = source.split_at(bytes);
            source = later;
            let piece = self.pieces.get_mut(index)?;
            if piece.is_none() {
                if now.iter().all(|&byte| byte == 0) {
                    continue;
                }
                *piece = Some(take(PIECE_BYTES)?);
            }
            piece.as_mut()?.get_mut(within..within + bytes)?.copy_from_slice(now);
        }
        Some(())
    }

    fn parts(&self, offset: u64, length: usize) -> Option<impl Iterator<Item = Part> + use<P>> {
        let end = offset.checked_add(length as u64).filter(|&end| end <= self.size_bytes)?;
        let mut at = offset;
        Some(core::iter::from_fn(move || {
            let within = (at % PIECE_BYTES as u64) as usize;
            let bytes = (end - at).min((PIECE_BYTES - within) as u64) as usize;
            let part = Part { index: (at / PIECE_BYTES as u64) as usize, within, bytes };
            at += bytes as u64;
            (bytes > 0).then_some(part)
        }))
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    const SIZE: u64 = 10 * PIECE_BYTES as u64 + 512;

    fn pieces() -> Pieces<Vec<u8>> {
        Pieces::new(SIZE).expect("there is memory for a list")
    }

    fn take(length: usize) -> Option<Vec<u8>> {
        Some(vec![0; length])
    }

    fn read(pieces: &Pieces<Vec<u8>>, offset: u64, length: usize) -> Vec<u8> {
        let mut target = vec![0xFF; length];
        pieces.read(offset, &mut target).expect("within the disk");
        target
    }

    #[test]
    fn unwritten_parts_read_as_zeros_and_take_no_memory() {
        let mut pieces = pieces();
        pieces.write(0, &vec![0; SIZE as usize], |_| panic!("zeros need no memory")).expect("zeros are there");
        assert!(read(&pieces, 0, SIZE as usize).iter().all(|&byte| byte == 0));
    }

    #[test]
    fn writes_across_pieces_round_trip() {
        let mut pieces = pieces();
        let offset = PIECE_BYTES as u64 - 100;
        let bytes: Vec<u8> = (0..2 * PIECE_BYTES).map(|index| (index % 251) as u8 + 1).collect();
        pieces.write(offset, &bytes, take).expect("there is memory");
        assert_eq!(read(&pieces, offset, bytes.len()), bytes);
        assert_eq!(read(&pieces, offset - 1, 2), [0, 1]);
        pieces.write(offset, &[0; 50], take).expect("there is memory");
        assert_eq!(read(&pieces, offset + 49, 2), [0, 51]);
        pieces.write(SIZE - 1, &[7], take).expect("there is memory");
        assert_eq!(read(&pieces, SIZE - 2, 2), [0, 7]);
    }

    #[test]
    fn without_memory_a_write_fails_and_earlier_contents_stay() {
        let mut pieces = pieces();
        pieces.write(0, &[1; 10], take).expect("there is memory");
        let mut left = 1;
        let bytes = vec![2; 3 * PIECE_BYTES];
        let written = pieces.write(0, &bytes, |length| {
            left -= 1;
            if left < 0 { None } else { take(length) }
        });
        assert_eq!(written, None);
        assert_eq!(read(&pieces, 2 * PIECE_BYTES as u64 - 1, 2), [2, 0]);
    }

    #[test]
    fn transfers_past_the_end_fail() {
        let mut pieces = pieces();
        assert_eq!(pieces.read(SIZE, &mut [0]), None);
        assert_eq!(pieces.write(SIZE - 1, &[1; 2], take), None);
        assert_eq!(pieces.write(u64::MAX, &[1; 2], take), None);
        assert_eq!(pieces.read(SIZE, &mut []), Some(()));
    }
}
