//! BLAKE3 with a 256-bit output, as in *BLAKE3: one function, fast everywhere*, section 2.
//!
//! The crate `blake3` contains instructions beyond the baseline, which a sealed image must not; tests compare this
//! with it.

use alloc::vec::Vec;

const BLOCK_BYTES: usize = 64;
const CHUNK_BYTES: usize = 1024;

const CHUNK_START: u32 = 1;
const CHUNK_END: u32 = 2;
const PARENT: u32 = 4;
const ROOT: u32 = 8;

const START: [u32; 8] =
    [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19];

/// Message word permutation between rounds.
const PERMUTATION: [usize; 16] = [2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8];
const ROUNDS: usize = 7;

/// The mixing function `G` on four words of the state.
fn mix(state: &mut [u32; 16], [a, b, c, d]: [usize; 4], x: u32, y: u32) {
    state[a] = state[a].wrapping_add(state[b]).wrapping_add(x);
    state[d] = (state[d] ^ state[a]).rotate_right(16);
    state[c] = state[c].wrapping_add(state[d]);
    state[b] = (state[b] ^ state[c]).rotate_right(12);
    state[a] = state[a].wrapping_add(state[b]).wrapping_add(y);
    state[d] = (state[d] ^ state[a]).rotate_right(8);
    state[c] = state[c].wrapping_add(state[d]);
    state[b] = (state[b] ^ state[c]).rotate_right(7);
}

/// Input of the last compression of a chunk or parent, which yields either its chaining value or the root output.
struct Node {
    chaining: [u32; 8],
    block: [u32; 16],
    counter: u64,
    length: u32,
    flags: u32,
}

impl Node {
    fn parent(left: [u32; 8], right: [u32; 8]) -> Node {
        let mut block = [0; 16];
        block[..8].copy_from_slice(&left);
        block[8..].copy_from_slice(&right);
        Node { chaining: START, block, counter: 0, length: BLOCK_BYTES as u32, flags: PARENT }
    }

    fn compress(&self, more_flags: u32) -> [u32; 8] {
        let mut state = [0; 16];
        state[..8].copy_from_slice(&self.chaining);
        state[8..12].copy_from_slice(&START[..4]);
        state[12..].copy_from_slice(&[
            self.counter as u32,
            (self.counter >> 32) as u32,
            self.length,
            self.flags | more_flags,
        ]);
        let mut block = self.block;
        for round in 0..ROUNDS {
            if round > 0 {
                block = PERMUTATION.map(|index| block[index]);
            }
            for column in 0..4 {
                let words = [column, column + 4, column + 8, column + 12];
                mix(&mut state, words, block[2 * column], block[2 * column + 1]);
            }
            for first in 0..4 {
                let diagonal = [first, (first + 1) % 4 + 4, (first + 2) % 4 + 8, (first + 3) % 4 + 12];
                mix(&mut state, diagonal, block[8 + 2 * first], block[9 + 2 * first]);
            }
        }
        core::array::from_fn(|index| state[index] ^ state[index + 8])
    }
}

/// A 1 KiB chunk being hashed.
struct Chunk {
    chaining: [u32; 8],
    counter: u64,
    block: [u8; BLOCK_BYTES],
    filled: usize,
    blocks: usize,
}

impl Chunk {
    fn new(counter: u64) -> Chunk {
        Chunk { chaining: START, counter, block: [0; BLOCK_BYTES], filled: 0, blocks: 0 }
    }

    fn length(&self) -> usize {
        self.blocks * BLOCK_BYTES + self.filled
    }

    fn node(&self, end: u32) -> Node {
        let start = if self.blocks == 0 { CHUNK_START } else { 0 };
        let word = |index: usize| {
            let bytes = &self.block[4 * index..4 * index + 4];
            u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
        };
        Node {
            chaining: self.chaining,
            block: core::array::from_fn(word),
            counter: self.counter,
            length: self.filled as u32,
            flags: start | end,
        }
    }

    /// Absorbs bytes that fit into the chunk. The last block is held back, since it is flagged only at the end.
    fn update(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.filled == BLOCK_BYTES {
                self.chaining = self.node(0).compress(0);
                self.blocks += 1;
                self.block = [0; BLOCK_BYTES];
                self.filled = 0;
            }
            let taken = bytes.len().min(BLOCK_BYTES - self.filled);
            self.block[self.filled..self.filled + taken].copy_from_slice(&bytes[..taken]);
            self.filled += taken;
            bytes = &bytes[taken..];
        }
    }
}

/// An incremental hasher.
pub struct Blake3 {
    chunk: Chunk,
    /// Chaining values of complete subtrees, the largest first.
    trees: Vec<[u32; 8]>,
}

impl Blake3 {
    /// Creates a hasher.
    pub fn new() -> Blake3 {
        Blake3 { chunk: Chunk::new(0), trees: Vec::new() }
    }

    /// Absorbs bytes.
    pub fn update(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.chunk.length() == CHUNK_BYTES {
                self.end_chunk();
            }
            let taken = bytes.len().min(CHUNK_BYTES - self.chunk.length());
            self.chunk.update(&bytes[..taken]);
            bytes = &bytes[taken..];
        }
    }

    /// Pushes a complete chunk, merging subtrees of equal size.
    fn end_chunk(&mut self) {
        let mut root = self.chunk.node(CHUNK_END).compress(0);
        let chunks = self.chunk.counter + 1;
        for _ in 0..chunks.trailing_zeros() {
            if let Some(left) = self.trees.pop() {
                root = Node::parent(left, root).compress(0);
            }
        }
        self.trees.push(root);
        self.chunk = Chunk::new(chunks);
    }

    /// Returns the digest of all bytes.
    pub fn finish(self) -> [u8; 32] {
        let mut node = self.chunk.node(CHUNK_END);
        for left in self.trees.iter().rev() {
            node = Node::parent(*left, node.compress(0));
        }
        let words = node.compress(ROOT);
        core::array::from_fn(|index| words[index / 4].to_le_bytes()[index % 4])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_agrees_with_the_crate_of_its_makers() {
        let bytes: Vec<u8> = (0..70_000_u32).map(|index| (index % 251) as u8).collect();
        let lengths = [0, 1, 63, 64, 65, 1023, 1024, 1025, 2048, 2049, 3072, 3073, 5120, 7169, 16_384, 31_744, 65_537];
        for length in lengths {
            for piece in [1_usize, 64, 1000, 70_000] {
                let mut digest = Blake3::new();
                bytes[..length].chunks(piece).for_each(|piece| digest.update(piece));
                let expected = blake3::hash(&bytes[..length]);
                assert_eq!(digest.finish(), *expected.as_bytes(), "{length} bytes in pieces of {piece}");
            }
        }
    }
}
