//! Content of the file, and allowed content after a crash.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Bytes of a piece: a block of the smallest size, which the disk writes atomically.
pub const PIECE_BYTES: usize = 1024;
/// Pieces of the file.
pub const PIECES: usize = 256;

/// Last synced and last written version of each piece; 0 means none.
pub struct Versions {
    synced: Vec<u32>,
    written: Vec<u32>,
}

impl Versions {
    /// Creates versions for an empty file.
    pub fn new(pieces: usize) -> Versions {
        Versions { synced: alloc::vec![0; pieces], written: alloc::vec![0; pieces] }
    }

    /// Returns the expected content of the piece while the file system lives.
    pub fn written(&self, piece: usize) -> u32 {
        self.written[piece]
    }

    /// Whether the piece may be absent.
    pub fn is_unwritten(&self, piece: usize) -> bool {
        self.synced[piece] == 0
    }

    /// Records that the pieces are about to be written.
    pub fn write(&mut self, first: usize, count: usize, version: u32) {
        self.written[first..first + count].fill(version);
    }

    /// Records that all writes are synced.
    pub fn sync(&mut self) {
        self.synced.copy_from_slice(&self.written);
    }

    /// Records the version of a piece after a crash; `None` is no valid version.
    pub fn find(&mut self, piece: usize, found: Option<u32>) -> Result<(), String> {
        let (synced, written) = (self.synced[piece], self.written[piece]);
        match found {
            Some(found) if (synced..=written).contains(&found) => {
                self.written[piece] = found;
                Ok(())
            }
            Some(found) => Err(format!(
                "piece {piece} is of version {found}; {synced} was synced and {written} was the last that was written"
            )),
            None => Err(format!("piece {piece} is of no version; {synced} was synced, {written} was written")),
        }
    }
}

/// Writes a version of a piece.
pub fn fill(piece: &mut [u8], client: u32, number: usize, version: u32) {
    let mut random = Random::new(u64::from(client) << 48 | (number as u64) << 32 | u64::from(version));
    for (index, word) in piece.chunks_exact_mut(4).enumerate() {
        let value = if index == 0 { version } else { random.next() as u32 };
        word.copy_from_slice(&value.to_le_bytes());
    }
}

/// Returns the version of a piece: 0 for zeros or absence, `None` for content that no client wrote there.
pub fn version_of(piece: &[u8], client: u32, number: usize) -> Option<u32> {
    if piece.iter().all(|&byte| byte == 0) {
        return Some(0);
    }
    let version = u32::from_le_bytes(piece.first_chunk::<4>().copied()?);
    let mut expected = alloc::vec![0; PIECE_BYTES];
    fill(&mut expected, client, number, version);
    (piece == expected).then_some(version)
}

/// A seeded pseudo-random generator.
pub struct Random(u64);

impl Random {
    /// Creates a generator from a seed.
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    /// Returns a number below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    /// A range of pieces.
    pub fn range(&mut self, pieces: usize) -> (usize, usize) {
        let first = self.below(pieces);
        (first, 1 + self.below((pieces - first).min(64)))
    }
}
