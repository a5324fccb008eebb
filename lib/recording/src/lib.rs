//! The file of a recorded run: what entered each program at the ABI, in the order in which it did.
//!
//! Key types: [`Header`], [`Event`], [`Reader`]. The kernel writes a file in chunks, each with a checksum; events of a
//! chunk are those of one processor, and their numbers give the order of all. A call and its return are usually one entry,
//! written at the return, with a digest in the place of what a replay makes again. Neighbours: `kernel/src/record`
//! writes, `kernel/src/replay` and `sing replay` read. Deliberately not here: what a replay does with an event.
//!
//! All numbers are words of 64 bits, little-endian. A file is a chunk `Header`, one `System`, any number of `Events` and
//! one `End`. A chunk is its kind and format version, the number of its words, their checksum, and the words. The
//! checksum finds damage; it is no signature. Events are bytes, each without what is as usual or as in the one before it, and
//! without leading zero bytes of its words; zero bytes follow the last of a chunk, to a whole word.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod chunk;
pub mod effects;
mod event;
mod known;
mod packed;
mod reader;
pub mod ring;

pub use chunk::{Chunk, Filling, HEADER_BYTES, chunk_head, chunk_of, complete_chunk, padding};
pub use event::{
    ANY_FUNCTION, Before, Block, Content, Digest, Event, EventKind, MAX_BLOCKS, Started, Unreturned, Whole, Words,
};
pub use known::{Contents, Known};
pub use reader::{Reader, RecordingError};

use alloc::vec::Vec;

/// Version of the format. It changes with every change of this crate or of the meaning of an event.
pub const FORMAT: u32 = 6;

/// What a recording says of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// [`abi::TABLE_ID`] of the machine.
    pub functions: u64,
    /// Bases and sizes in bytes of the arenas of images, stacks, memory and windows.
    pub arenas: [(u64, u64); 4],
    /// Bytes of the system image in the next chunk, without the padding to whole words.
    pub system_bytes: u64,
}

impl Header {
    /// Its words.
    pub fn words(&self) -> Vec<u64> {
        let arenas = self.arenas.iter().flat_map(|&(base, bytes)| [base, bytes]);
        [self.functions].into_iter().chain(arenas).chain([self.system_bytes]).collect()
    }

    /// Reads it from its words.
    fn read(words: &[u64]) -> Option<Header> {
        let &[functions, a, b, c, d, e, f, g, h, system_bytes] = words else { return None };
        Some(Header { functions, arenas: [(a, b), (c, d), (e, f), (g, h)], system_bytes })
    }
}

#[cfg(test)]
mod tests;
