//! Chunks of a file, with their checksums.

use alloc::vec::Vec;

use crate::event::Last;
use crate::{Before, FORMAT};

/// Kinds of chunks. The numbers are ASCII, so that a file is recognized in a hex dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Chunk {
    /// A [`Header`](crate::Header).
    Header = u32::from_le_bytes(*b"SREC"),
    /// The system image.
    System = u32::from_le_bytes(*b"SIMG"),
    /// Events of one processor.
    Events = u32::from_le_bytes(*b"SEVT"),
    /// One word, the number of all events.
    End = u32::from_le_bytes(*b"SEND"),
}

impl Chunk {
    /// The kind with this number.
    pub(crate) fn from_number(number: u32) -> Option<Chunk> {
        [Chunk::Header, Chunk::System, Chunk::Events, Chunk::End].into_iter().find(|kind| *kind as u32 == number)
    }
}

/// Bytes before those of a chunk: kind and version, number of words, checksum.
pub const HEADER_BYTES: usize = 24;

/// Completes a chunk in place: `bytes` begins with [`HEADER_BYTES`] unused ones; what follows is filled up to whole words.
pub fn complete_chunk(kind: Chunk, bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    if let Some((head, payload)) = bytes.split_first_chunk_mut::<HEADER_BYTES>() {
        *head = chunk_head(kind, payload);
    }
}

/// What comes before a chunk's bytes, which [`padding`] follows.
pub fn chunk_head(kind: Chunk, payload: &[u8]) -> [u8; HEADER_BYTES] {
    let words = [u64::from(kind as u32) | u64::from(FORMAT) << 32, payload.len().div_ceil(8) as u64, checksum(payload)];
    let mut head = [0; HEADER_BYTES];
    head.chunks_exact_mut(8).zip(words).for_each(|(at, word)| at.copy_from_slice(&word.to_le_bytes()));
    head
}

/// The zero bytes that fill a chunk of so many bytes up to whole words.
pub fn padding(bytes: usize) -> &'static [u8] {
    &[0; 8][..bytes.next_multiple_of(8) - bytes]
}

/// A chunk of events that is being filled. Its memory stays, so that an event is written without clearing any.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Filling {
    bytes: Vec<u8>,
    /// Bytes that are filled, or 0 before the first.
    at: usize,
    pub(crate) last: Last,
    pub(crate) before: Before,
    /// Address of the last block.
    pub(crate) last_block: u64,
    /// Not beside `at`, or both are added to as one vector, and who reads one of them next waits for that.
    events: u64,
}

impl Filling {
    /// Without memory.
    pub const NONE: Filling =
        Filling { bytes: Vec::new(), at: 0, events: 0, last_block: 0, before: Before::NONE, last: Last::NONE };

    /// Events of it and of those that were completed before it.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Bytes of it so far.
    pub fn length(&self) -> usize {
        self.at
    }

    /// Begins the first chunk, if it has not begun.
    #[inline]
    pub(crate) fn begin(&mut self) {
        if self.at == 0 {
            self.at = HEADER_BYTES;
            self.last.clear();
        }
    }

    /// Memory for so many bytes more, which [`Filling::filled`] adds.
    #[inline]
    pub fn room(&mut self, bytes: usize) -> &mut [u8] {
        if self.bytes.len() < self.at + bytes {
            self.grow(bytes);
        }
        &mut self.bytes[self.at..]
    }

    /// The same, and the words of the last calls.
    #[inline]
    pub(crate) fn room_and_last(&mut self, bytes: usize) -> (&mut [u8], &mut Last) {
        if self.bytes.len() < self.at + bytes {
            self.grow(bytes);
        }
        (&mut self.bytes[self.at..], &mut self.last)
    }

    #[cold]
    fn grow(&mut self, bytes: usize) {
        // The end is filled up to a whole word.
        self.bytes.resize((self.at + bytes + 8).next_power_of_two(), 0);
    }

    /// Adds the first bytes of what [`Filling::room`] gave, with which so many events begin.
    #[inline]
    pub fn filled(&mut self, events: u64, bytes: usize) {
        self.events += events;
        self.at += bytes;
    }

    /// Completes the chunk, if there is an event in it, and begins another.
    pub fn complete(&mut self) -> Option<&[u8]> {
        if self.at <= HEADER_BYTES {
            return None;
        }
        let end = self.at.next_multiple_of(8);
        self.bytes.get_mut(self.at..end)?.fill(0);
        let (head, payload) = self.bytes.get_mut(..end)?.split_first_chunk_mut::<HEADER_BYTES>()?;
        *head = chunk_head(Chunk::Events, payload);
        (self.at, self.before, self.last_block) = (HEADER_BYTES, Before::NONE, 0);
        self.last.clear();
        self.bytes.get(..end)
    }
}

/// Returns a chunk with these words.
pub fn chunk_of(kind: Chunk, words: impl IntoIterator<Item = u64>) -> Vec<u8> {
    let mut bytes = alloc::vec![0; HEADER_BYTES];
    words.into_iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
    complete_chunk(kind, &mut bytes);
    bytes
}

/// The word at the start of `bytes`, or 0.
pub(crate) fn word(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// A checksum of words in four lanes, at the speed of memory. Zero bytes fill the last word.
pub(crate) fn checksum(bytes: &[u8]) -> u64 {
    const TIMES: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |sum: u64, word: u64| (sum.rotate_left(23) ^ word).wrapping_mul(TIMES);
    let mut lanes = [1, 2, 3, bytes.len().next_multiple_of(8) as u64];
    let (fours, rest) = bytes.as_chunks::<32>();
    for four in fours {
        let (words, _) = four.as_chunks::<8>();
        for (lane, one) in lanes.iter_mut().zip(words) {
            *lane = mix(*lane, u64::from_le_bytes(*one));
        }
    }
    let mut filled = [0; 32];
    filled[..rest.len()].copy_from_slice(rest);
    let words = rest.len().div_ceil(8);
    let last = filled.chunks_exact(8).take(words).map(word);
    if words == 4 {
        lanes.iter_mut().zip(last).for_each(|(lane, one)| *lane = mix(*lane, one));
        return spread(lanes.into_iter().fold(0, mix));
    }
    spread(lanes.into_iter().chain(last).fold(0, mix))
}

/// Lets the upper bits of a product count in the lower ones.
fn spread(sum: u64) -> u64 {
    sum ^ sum >> 29
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_of_any_bytes_is_that_of_them_filled_up_to_words() {
        for length in 0..200 {
            let bytes: Vec<u8> = (0..length).map(|at| at as u8 + 1).collect();
            let filled = [&bytes, padding(length)].concat();
            assert_eq!(chunk_head(Chunk::System, &bytes), chunk_head(Chunk::System, &filled), "{length}");
            assert!(filled.len().is_multiple_of(8));
        }
    }
}
