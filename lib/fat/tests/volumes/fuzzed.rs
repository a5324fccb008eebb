//! What the fuzz target `fat_volume` does with its bytes.

use crate::trial::{fat12, fat32, trial};

/// Bytes of the input for one piece of damage: place, width, value.
const PIECE: usize = 8;
/// Where the volumes have something: before the first 64 clusters' end.
const WORTH_DAMAGE: usize = 60 << 10;

/// One trial; a panic is a finding.
pub fn run(bytes: &[u8]) {
    let Some((&first, damage)) = bytes.split_first() else { return };
    let mut image = if first.is_multiple_of(2) { fat12() } else { fat32() }.to_vec();
    for piece in damage.as_chunks::<PIECE>().0 {
        let width = 1 << (piece[3] % 3);
        let at = u32::from_le_bytes([piece[0], piece[1], piece[2], 0]) as usize % (WORTH_DAMAGE - width);
        image[at..at + width].copy_from_slice(&piece[4..4 + width]);
    }
    trial(image);
}
