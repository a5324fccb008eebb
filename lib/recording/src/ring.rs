//! A ring in memory that a bare machine shares with its host: the machine writes its recording into it, the host takes
//! it out and writes the file.
//!
//! The kernel that records has it as a static, so the host finds it in the machine's memory by its symbol. Its words are
//! little-endian, and those of the two sides lie in cache lines of their own. Each side writes its own alone: positions
//! count bytes from the beginning and never go back. Deliberately not here: access to the memory, which each side has in
//! its own way.

use core::ops::Range;

/// Symbol of the ring in the kernel.
pub const SYMBOL: &str = "singularity_recording";
/// Offset of the word that identifies it, which the machine writes first.
pub const IDENTITY_AT: usize = 0;
/// Value of this word.
pub const IDENTITY: u64 = u64::from_le_bytes(*b"SingRec3");
/// Offset of the number of bytes written, the machine's.
pub const WRITTEN_AT: usize = 64;
/// Offset of the number of bytes taken, the host's.
pub const TAKEN_AT: usize = 128;
/// Offset of a word that is not 0 once the host takes no more.
pub const CLOSED_AT: usize = 136;
/// Offset of the bytes.
pub const BYTES_AT: usize = 4096;
/// Number of bytes that it holds.
pub const BYTES: usize = 8 << 20;
/// Its size with its words.
pub const WHOLE_BYTES: usize = BYTES_AT + BYTES;

/// Where the next bytes go, in one piece, when so many are written and taken: at most `wanted`, less if there is no room or
/// the ring's end comes first.
pub fn room(written: u64, taken: u64, wanted: usize) -> Range<usize> {
    piece(written, BYTES.saturating_sub(waiting(written, taken)).min(wanted))
}

/// Where the next bytes are that can be taken, in one piece; empty if all are. `None` if the positions are none that the
/// two sides have made.
pub fn filled(written: u64, taken: u64) -> Option<Range<usize>> {
    let bytes = waiting(written, taken);
    (bytes <= BYTES).then(|| piece(taken, bytes))
}

fn waiting(written: u64, taken: u64) -> usize {
    usize::try_from(written.wrapping_sub(taken)).unwrap_or(usize::MAX)
}

fn piece(position: u64, bytes: usize) -> Range<usize> {
    let start = (position % BYTES as u64) as usize;
    start..start + bytes.min(BYTES - start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_end_with_the_room_and_with_the_ring() {
        assert_eq!(room(0, 0, 10), 0..10);
        assert_eq!(room(0, 0, usize::MAX), 0..BYTES);
        assert_eq!(room(BYTES as u64, 0, 10), 0..0);
        let near = BYTES as u64 - 4;
        assert_eq!(room(near, near, 10), BYTES - 4..BYTES);
        assert_eq!(room(near + 4, near, 10), 0..10);
        assert_eq!(room(near + 4, 3, usize::MAX), 0..3);
        assert_eq!(filled(near + 4, near), Some(BYTES - 4..BYTES));
        assert_eq!(filled(near + 9, near + 4), Some(0..5));
        assert_eq!(filled(7, 7), Some(7..7));
    }

    #[test]
    fn positions_that_nobody_made_give_nothing() {
        assert_eq!(filled(3, 4), None);
        assert_eq!(filled(BYTES as u64 + 1, 0), None);
        assert_eq!(room(3, 4, 10), 3..3);
    }

    #[test]
    fn what_is_written_in_pieces_is_taken_in_order() {
        let mut memory = alloc::vec![0u8; BYTES];
        let (mut written, mut taken, mut seed) = (0u64, 0u64, 7u64);
        let (mut next, mut expected) = (0u8, 0u8);
        while written < 5 * BYTES as u64 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            for at in room(written, taken, (seed >> 40) as usize) {
                memory[at] = next;
                next = next.wrapping_add(1);
                written += 1;
            }
            let found = filled(written, taken).expect("positions");
            let some = found.len().min((seed >> 20) as usize % BYTES);
            for at in found.take(some) {
                assert_eq!(memory[at], expected);
                expected = expected.wrapping_add(1);
                taken += 1;
            }
        }
    }
}
