//! Chunks, which buffers are made of, and the limit over all connections.
//!
//! A buffer holds chunks only for the bytes in it, so idle connections hold none. When chunks are scarce, a
//! connection that would stall without one gets it from a reserve: see [`Need`].

use alloc::boxed::Box;
use alloc::vec::Vec;

/// Bytes per chunk: large enough for pages of its own, which the allocator returns when the chunk is freed.
pub const CHUNK_BYTES: usize = 32 << 10;
/// Maximum number of free chunks kept for reuse.
const MAX_SPARE: usize = 128;
/// Reserve for first chunks, as a fraction of the limit: 1 / this.
const RESERVE: usize = 4;

pub(crate) type Chunk = Box<[u8]>;

/// Why a chunk is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// The buffer has chunks already.
    More,
    /// The buffer has none: without it the connection would stall.
    First,
}

/// The chunks of all connections of a stack.
pub struct Memory {
    spare: Vec<Chunk>,
    used: usize,
    max_used: usize,
}

impl Memory {
    /// A pool with a limit of `max_bytes`, rounded down to chunks.
    pub fn new(max_bytes: usize) -> Memory {
        Memory { spare: Vec::new(), used: 0, max_used: max_bytes / CHUNK_BYTES }
    }

    /// Bytes in use.
    pub fn used_bytes(&self) -> usize {
        self.used * CHUNK_BYTES
    }

    /// The limit, in bytes.
    pub fn max_bytes(&self) -> usize {
        self.max_used * CHUNK_BYTES
    }

    /// Bytes in free chunks kept for reuse.
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
