//! The body of the fuzz target `fat_volume`.

use crate::trial::{fat12, fat32, trial};

/// Input bytes per damage: position, width, value.
const PIECE: usize = 8;
/// The used area of the volumes: up to the end of the first 64 clusters.
const WORTH_DAMAGE: usize = 60 << 10;

/// Runs one input; a panic is a finding.
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
