//! The disk as the checker sees it: pieces read through a few kept lines, and written at once.
//!
//! Not here: any knowledge of the format.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use super::CheckError;
use crate::error::DiskError;
use crate::source::BlockSource;

/// What is read from the disk at once.
const LINE_BYTES: u64 = 32 << 10;
/// The most bytes of a block.
const MOST_BLOCK_BYTES: u64 = 4096;
/// Lines that are kept.
const LINES: usize = 64;
/// Bytes of memory that lines and what is under way take at most.
pub(super) const MEMORY_BYTES: u64 = (LINES as u64 + 2) * LINE_BYTES;

struct Line<B> {
    number: u64,
    bytes: usize,
    used: u64,
    buffer: B,
}

pub(super) struct Device<'a, S: BlockSource> {
    source: &'a S,
    lines: Vec<Line<S::Buffer>>,
    /// Counts uses of lines; the line with the least was not used for the longest time.
    clock: u64,
    /// Whether something may be written.
    writable: bool,
    /// What a journal holds and only looks as if it were in its place, by its offset.
    pretended: BTreeMap<u64, Vec<u8>>,
}

impl<'a, S: BlockSource> Device<'a, S> {
    pub(super) fn new(source: &'a S, writable: bool) -> Device<'a, S> {
        Device { source, lines: Vec::new(), clock: 0, writable, pretended: BTreeMap::new() }
    }

    /// Bytes of the disk that can be transferred.
    pub(super) fn bytes(&self) -> u64 {
        self.source.size_bytes() / 512 * 512
    }

    pub(super) fn now_s(&self) -> u32 {
        self.source.now_s()
    }

    /// From now on reads as if this had been written.
    pub(super) fn pretend(&mut self, offset: u64, bytes: Vec<u8>) {
        self.pretended.insert(offset, bytes);
    }

    /// Reads `bytes` bytes from `offset` on, both multiples of 512, lying in one line.
    pub(super) async fn read(&mut self, offset: u64, bytes: usize) -> Result<Vec<u8>, CheckError> {
        let mut content = self.read_disk(offset, bytes).await?;
        let end = offset + bytes as u64;
        for (&start, pretended) in self.pretended.range(offset.saturating_sub(MOST_BLOCK_BYTES)..end) {
            let (from, to) = (start.max(offset), (start + pretended.len() as u64).min(end));
            if from < to {
                let part = &pretended[(from - start) as usize..(to - start) as usize];
                content[(from - offset) as usize..(to - offset) as usize].copy_from_slice(part);
            }
        }
        Ok(content)
    }

    async fn read_disk(&mut self, offset: u64, bytes: usize) -> Result<Vec<u8>, CheckError> {
        let (number, within) = (offset / LINE_BYTES, (offset % LINE_BYTES) as usize);
        let position = match self.lines.iter().position(|line| line.number == number) {
            Some(position) => position,
            None => match self.load(number).await? {
                Some(position) => position,
                // The line as a whole cannot be read, but perhaps the part that is wanted.
                None => return self.read_alone(offset, bytes).await,
            },
        };
        self.clock += 1;
        let line = &mut self.lines[position];
        line.used = self.clock;
        let wanted = line.buffer.get(within..within + bytes).filter(|_| within + bytes <= line.bytes);
        wanted.map(<[u8]>::to_vec).ok_or(CheckError::Read(offset, DiskError::Short))
    }

    /// Writes bytes at `offset`, a multiple of 512 as their number is, lying in one line.
    pub(super) async fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), CheckError> {
        if !self.writable {
            return Err(CheckError::ReadOnly);
        }
        let failed = |error| CheckError::Write(offset, error);
        let mut buffer = self.source.allocate(bytes.len()).map_err(failed)?;
        buffer.get_mut(..bytes.len()).ok_or(failed(DiskError::NoMemory))?.copy_from_slice(bytes);
        let (number, within) = (offset / LINE_BYTES, (offset % LINE_BYTES) as usize);
        let (_, result) = self.source.write(offset, buffer, bytes.len()).await;
        result.map_err(failed)?;
        if let Some(line) = self.lines.iter_mut().find(|line| line.number == number)
            && let Some(target) = line.buffer.get_mut(within..within + bytes.len())
        {
            target.copy_from_slice(bytes);
        }
        Ok(())
    }

    /// Waits until all that was written lasts.
    pub(super) async fn flush(&mut self) -> Result<(), CheckError> {
        self.source.flush().await.map_err(|error| CheckError::Write(0, error))
    }

    /// Reads a line; `None` if the device failed at it.
    async fn load(&mut self, number: u64) -> Result<Option<usize>, CheckError> {
        let offset = number * LINE_BYTES;
        let bytes = self.bytes().saturating_sub(offset).min(LINE_BYTES) as usize;
        if bytes == 0 {
            return Err(CheckError::Read(offset, DiskError::Short));
        }
        let buffer = match self.lines.len() {
            LINES => {
                let oldest = (0..LINES).min_by_key(|&index| self.lines[index].used).unwrap_or(0);
                self.lines.swap_remove(oldest).buffer
            }
            _ => {
                let allocated = self.source.allocate(LINE_BYTES as usize);
                allocated.map_err(|error| CheckError::Read(offset, error))?
            }
        };
        match self.source.read(offset, buffer, bytes).await {
            (Some(buffer), Ok(())) => {
                self.lines.push(Line { number, bytes, used: self.clock, buffer });
                Ok(Some(self.lines.len() - 1))
            }
            (_, Err(DiskError::Failed(_))) => Ok(None),
            (_, result) => Err(CheckError::Read(offset, result.err().unwrap_or(DiskError::Gone))),
        }
    }

    async fn read_alone(&mut self, offset: u64, bytes: usize) -> Result<Vec<u8>, CheckError> {
        let failed = |error| CheckError::Read(offset, error);
        let buffer = self.source.allocate(bytes).map_err(failed)?;
        let (buffer, result) = self.source.read(offset, buffer, bytes).await;
        result.map_err(failed)?;
        let mut content = vec![0; bytes];
        let read = buffer.as_ref().and_then(|buffer| buffer.get(..bytes)).ok_or(failed(DiskError::Short))?;
        content.copy_from_slice(read);
        Ok(content)
    }
}
