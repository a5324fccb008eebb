//! Send and receive buffers of a connection, made of chunks: bytes stay until they are acknowledged, or
//! read by the user.

use alloc::collections::VecDeque;
use core::ops::Range;

use crate::memory::{CHUNK_BYTES, Chunk, Memory, Need};
use crate::ranges::Ranges;

/// The send buffer: bytes from SND.UNA on.
#[derive(Default)]
pub(crate) struct SendBuffer {
    chunks: VecDeque<Chunk>,
    /// Offset of the first byte in the first chunk.
    start: usize,
    bytes: usize,
}

impl SendBuffer {
    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    /// Appends as many bytes as there are chunks for; returns their number.
    pub(crate) fn write(&mut self, memory: &mut Memory, data: &[u8]) -> usize {
        let mut written = 0;
        while written < data.len() {
            let end = self.start + self.bytes;
            if end == self.chunks.len() * CHUNK_BYTES {
                let need = if self.chunks.is_empty() { Need::First } else { Need::More };
                let Some(chunk) = memory.take(need) else { break };
                self.chunks.push_back(chunk);
            }
            let Some(chunk) = self.chunks.back_mut() else { break };
            let room = &mut chunk[end % CHUNK_BYTES..];
            let count = room.len().min(data.len() - written);
            room[..count].copy_from_slice(&data[written..written + count]);
            self.bytes += count;
            written += count;
        }
        written
    }

    /// Copies bytes from `offset` after the first one; the whole range must be in the buffer.
    pub(crate) fn copy(&self, offset: usize, into: &mut [u8]) {
        let mut at = self.start + offset;
        let mut left = into;
        while !left.is_empty() {
            let Some(chunk) = self.chunks.get(at / CHUNK_BYTES) else { return };
            let from = &chunk[at % CHUNK_BYTES..];
            let count = from.len().min(left.len());
            let (part, rest) = left.split_at_mut(count);
            part.copy_from_slice(&from[..count]);
            left = rest;
            at += count;
        }
    }

    /// Drops acknowledged bytes from the front.
    pub(crate) fn discard(&mut self, memory: &mut Memory, count: usize) {
        let count = count.min(self.bytes);
        self.bytes -= count;
        self.start += count;
        while self.start >= CHUNK_BYTES || self.bytes == 0 {
            let Some(chunk) = self.chunks.pop_front() else {
                self.start = 0;
                return;
            };
            memory.give(chunk);
            self.start = self.start.saturating_sub(CHUNK_BYTES);
        }
    }
}

/// The receive buffer. Stream offsets count from the first byte after the SYN.
#[derive(Default)]
pub(crate) struct ReceiveBuffer {
    /// Chunks from the one with the next byte to read.
    chunks: VecDeque<Option<Chunk>>,
    /// Offset of the next byte to read.
    read: u64,
    /// Offset of the first byte not yet received in order (RCV.NXT).
    next: u64,
    ahead: Ranges,
}

/// The outcome of inserting received bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inserted {
    /// RCV.NXT moved: there is more to read.
    InOrder,
    /// Out of order: queued until the gap before them is filled.
    Ahead,
    /// Duplicate bytes.
    Duplicate,
    /// There is no memory for them.
    Dropped,
}

impl ReceiveBuffer {
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Bytes ready to be read.
    pub(crate) fn readable(&self) -> usize {
        (self.next - self.read) as usize
    }

    /// Ranges received out of order.
    pub(crate) fn ahead(&self) -> &Ranges {
        &self.ahead
    }

    /// Inserts bytes at an offset at or after RCV.NXT.
    pub(crate) fn insert(&mut self, memory: &mut Memory, at: u64, data: &[u8]) -> Inserted {
        let wanted = at..at + data.len() as u64;
        if wanted.is_empty() || self.ahead.contains(&wanted) {
            return Inserted::Duplicate;
        }
        let is_ahead = at > self.next;
        if is_ahead && !self.ahead.has_room_for(&wanted) {
            return Inserted::Dropped;
        }
        let count = self.fill(memory, at, data);
        if count == 0 {
            return Inserted::Dropped;
        }
        let range = at..at + count as u64;
        if is_ahead {
            self.ahead.add(range);
            return Inserted::Ahead;
        }
        self.next = range.end;
        while let Some(end) = self.ahead.take_up_to(self.next) {
            self.next = end;
        }
        Inserted::InOrder
    }

    /// Copies bytes to their offsets, as far as there are chunks.
    fn fill(&mut self, memory: &mut Memory, at: u64, data: &[u8]) -> usize {
        let origin = self.read - self.read % CHUNK_BYTES as u64;
        let mut filled = 0;
        while filled < data.len() {
            let place = (at - origin) as usize + filled;
            let (index, offset) = (place / CHUNK_BYTES, place % CHUNK_BYTES);
            while self.chunks.len() <= index {
                self.chunks.push_back(None);
            }
            if self.chunks[index].is_none() {
                let is_first = self.readable() == 0 && at + filled as u64 == self.next;
                self.chunks[index] = memory.take(if is_first { Need::First } else { Need::More });
            }
            let Some(chunk) = &mut self.chunks[index] else { break };
            let room = &mut chunk[offset..];
            let count = room.len().min(data.len() - filled);
            room[..count].copy_from_slice(&data[filled..filled + count]);
            filled += count;
        }
        filled
    }

    pub(crate) fn read(&mut self, memory: &mut Memory, into: &mut [u8]) -> usize {
        let wanted = into.len().min(self.readable());
        let mut done = 0;
        while done < wanted {
            let offset = (self.read % CHUNK_BYTES as u64) as usize;
            let Some(Some(chunk)) = self.chunks.front() else { break };
            let count = (CHUNK_BYTES - offset).min(wanted - done);
            into[done..done + count].copy_from_slice(&chunk[offset..offset + count]);
            done += count;
            self.read += count as u64;
            if offset + count == CHUNK_BYTES
                && let Some(Some(chunk)) = self.chunks.pop_front()
            {
                memory.give(chunk);
            }
        }
        if self.readable() == 0 && self.ahead.is_empty() {
            self.clear(memory);
        }
        done
    }

    fn clear(&mut self, memory: &mut Memory) {
        self.chunks.drain(..).flatten().for_each(|chunk| memory.give(chunk));
    }

    /// Frees all chunks; unread bytes are lost.
    pub(crate) fn drop_all(&mut self, memory: &mut Memory) {
        self.ahead = Ranges::default();
        self.read = self.next;
        self.clear(memory);
    }

    /// The blocks of a SACK option, as stream offsets.
    pub(crate) fn sack_ranges<const N: usize>(&self) -> [Option<Range<u64>>; N] {
        self.ahead.newest()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(range: Range<u64>) -> alloc::vec::Vec<u8> {
        range.map(|at| (at * 7 + at / 251) as u8).collect()
    }

    #[test]
    fn what_is_written_is_copied_until_it_is_discarded() {
        let mut memory = Memory::new(1 << 20);
        let mut buffer = SendBuffer::default();
        let data = bytes(0..10_000);
        assert_eq!(buffer.write(&mut memory, &data[..6000]) + buffer.write(&mut memory, &data[6000..]), 10_000);
        let mut copied = [0; 5000];
        buffer.copy(3000, &mut copied);
        assert_eq!(copied, data[3000..8000]);
        buffer.discard(&mut memory, 4500);
        buffer.copy(0, &mut copied);
        assert_eq!((&copied[..], buffer.len()), (&data[4500..9500], 5500));
        buffer.discard(&mut memory, 5500);
        assert_eq!((buffer.len(), memory.used_bytes()), (0, 0));
    }

    #[test]
    fn writing_stops_where_chunks_end() {
        let mut memory = Memory::new(3 * CHUNK_BYTES);
        let (mut one, mut other) = (SendBuffer::default(), SendBuffer::default());
        assert_eq!(one.write(&mut memory, &bytes(0..100_000)), 3 * CHUNK_BYTES);
        assert_eq!(other.write(&mut memory, &bytes(0..100_000)), CHUNK_BYTES, "each may have one");
    }

    #[test]
    fn bytes_are_read_in_order_however_they_come() {
        let mut memory = Memory::new(1 << 20);
        let mut buffer = ReceiveBuffer::default();
        let data = bytes(0..20_000);
        let mut insert = |buffer: &mut ReceiveBuffer, range: Range<usize>| {
            buffer.insert(&mut memory, range.start as u64, &data[range])
        };
        assert_eq!(insert(&mut buffer, 9000..12_000), Inserted::Ahead);
        assert_eq!(insert(&mut buffer, 9500..11_000), Inserted::Duplicate);
        assert_eq!(insert(&mut buffer, 15_000..20_000), Inserted::Ahead);
        assert_eq!(buffer.sack_ranges(), [Some(15_000..20_000), Some(9000..12_000), None]);
        assert_eq!(insert(&mut buffer, 0..10_000), Inserted::InOrder);
        assert_eq!(buffer.readable(), 12_000);
        let mut read = [0; 11_000];
        assert_eq!(buffer.read(&mut memory, &mut read), 11_000);
        assert_eq!(read, data[..11_000]);
        let data = &data[12_000..15_000];
        assert_eq!(buffer.insert(&mut memory, 12_000, data), Inserted::InOrder);
        assert_eq!(buffer.read(&mut memory, &mut read), 9000);
        assert_eq!((&read[..9000], memory.used_bytes()), (&bytes(11_000..20_000)[..], 0));
    }
}
