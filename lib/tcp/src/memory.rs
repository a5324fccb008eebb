//! The chunks that buffers are made of, and how many there may be of all connections.
//!
//! A buffer holds chunks only for bytes that are in it, so idle connections hold none. Where chunks are scarce a
//! connection is still given the one without which it would come to a halt, from a reserve: see [`Need`].

use alloc::boxed::Box;
use alloc::vec::Vec;

/// Bytes of a chunk: so many are pages of their own, which a program's allocator gives back when they are freed.
pub const CHUNK_BYTES: usize = 32 << 10;
/// Chunks that are kept while nobody uses them; more go back to the allocator.
const MAX_SPARE: usize = 128;
/// Beyond the bound so large a part of it is for first chunks.
const RESERVE: usize = 4;

pub(crate) type Chunk = Box<[u8]>;

/// Why a chunk is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// To hold more than is there already.
    More,
    /// The connection has none, and waits for ever without.
    First,
}

/// The chunks of all connections.
pub struct Memory {
    spare: Vec<Chunk>,
    used: usize,
    max_used: usize,
}

impl Memory {
    /// Chunks for about so many bytes.
    pub fn new(max_bytes: usize) -> Memory {
        Memory { spare: Vec::new(), used: 0, max_used: max_bytes / CHUNK_BYTES }
    }

    /// Bytes of chunks that are in use.
    pub fn used_bytes(&self) -> usize {
        self.used * CHUNK_BYTES
    }

    /// Bytes of chunks that may be in use.
    pub fn max_bytes(&self) -> usize {
        self.max_used * CHUNK_BYTES
    }

    /// Bytes of chunks that are kept for later.
    pub fn spare_bytes(&self) -> usize {
        self.spare.len() * CHUNK_BYTES
    }

    pub(crate) fn take(&mut self, need: Need) -> Option<Chunk> {
        let max_used = match need {
            Need::More => self.max_used,
            Need::First => self.max_used + (self.max_used / RESERVE).max(1),
        };
        if self.used >= max_used {
            return None;
        }
        let chunk = match self.spare.pop() {
            Some(chunk) => chunk,
            None => {
                let mut bytes = Vec::new();
                bytes.try_reserve_exact(CHUNK_BYTES).ok()?;
                bytes.resize(CHUNK_BYTES, 0);
                bytes.into_boxed_slice()
            }
        };
        self.used += 1;
        Some(chunk)
    }

    pub(crate) fn give(&mut self, chunk: Chunk) {
        self.used -= 1;
        if self.spare.len() < MAX_SPARE {
            self.spare.push(chunk);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_chunk_is_given_when_there_are_no_more() {
        let mut memory = Memory::new(2 * CHUNK_BYTES);
        let chunks: Vec<Chunk> = (0..2).map(|_| memory.take(Need::More).expect("a chunk")).collect();
        assert!(memory.take(Need::More).is_none());
        let first = memory.take(Need::First).expect("a chunk");
        assert_eq!((memory.used_bytes(), memory.max_bytes()), (3 * CHUNK_BYTES, 2 * CHUNK_BYTES));
        assert!(memory.take(Need::First).is_none(), "not for ever");
        chunks.into_iter().chain([first]).for_each(|chunk| memory.give(chunk));
        assert_eq!((memory.used_bytes(), memory.spare_bytes()), (0, 3 * CHUNK_BYTES));
    }
}
