//! The disk as the checker sees it: reads through a small cache, overlaid with the changes of the repair. Nothing is
//! written before [`apply`](super::apply).
//!
//! Not here: any knowledge of the format.

use alloc::vec;
use alloc::vec::Vec;

use super::CheckError;
use super::overlay::{Overlay, Piece};
use block_source::BlockSource;
use block_source::DiskError;

/// Cache page size: the unit of reads from the disk, in bytes.
pub(super) const PAGE_BYTES: u64 = 32 << 10;
/// Maximum cache pages.
const PAGES: usize = 64;
/// Maximum buffers allocated from the source at a time: the cache pages, and one for uncached transfers.
pub const BUFFERS: usize = PAGES + 1;
/// The bytes of those buffers.
pub const BUFFER_BYTES: usize = BUFFERS * PAGE_BYTES as usize;
/// Maximum memory of cache and transfers, in bytes.
pub(super) const MEMORY_BYTES: u64 = (PAGES as u64 + 2) * PAGE_BYTES;

struct Line<B> {
    number: u64,
    bytes: usize,
    used: u64,
    buffer: B,
}

pub(super) struct Device<'a, S: BlockSource> {
    source: &'a S,
    lines: Vec<Line<S::Buffer>>,
    /// Use counter; the line with the least value is the least recently used.
    clock: u64,
    pub(super) overlay: Overlay,
    /// Buffer for writes.
    buffer: Option<S::Buffer>,
}

impl<'a, S: BlockSource> Device<'a, S> {
    pub(super) fn new(source: &'a S) -> Device<'a, S> {
        Device { source, lines: Vec::new(), clock: 0, overlay: Overlay::new(0), buffer: None }
    }

    /// Returns the size of the disk in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.source.size_bytes() / 512 * 512
    }

    /// Returns the unit of changes, a sector, in bytes.
    pub(super) fn piece_bytes(&self) -> u64 {
        self.source.sector_bytes() as u64
    }

    pub(super) fn now_s(&self) -> u32 {
        self.source.now_s()
    }

    /// Reads `bytes` bytes from `offset` on, both multiples of 512 and within one line, with the changes.
    pub(super) async fn read(&mut self, offset: u64, bytes: usize) -> Result<Vec<u8>, CheckError> {
        let mut content = self.read_disk(offset, bytes).await?;
        if self.overlay.is_empty() {
            return Ok(content);
        }
        let (piece_bytes, end) = (self.piece_bytes(), offset + bytes as u64);
        let mut copies = Vec::new();
        let mut patch = |at: u64, piece: &[u8]| {
            let (from, to) = (at.max(offset), (at + piece_bytes).min(end));
            content[(from - offset) as usize..(to - offset) as usize]
                .copy_from_slice(&piece[(from - at) as usize..(to - at) as usize]);
        };
        for (at, piece) in self.overlay.range(offset / piece_bytes * piece_bytes, end) {
            match piece {
                Piece::Bytes(bytes) => patch(at, bytes),
                Piece::Copy(from) => copies.push((at, *from)),
            }
        }
        for (at, from) in copies {
            let bytes = self.read_disk(from, piece_bytes as usize).await?;
            patch(at, &bytes);
        }
        Ok(content)
    }

    /// Changes bytes at `offset`; offset and length are multiples of 512 and within one line.
    pub(super) async fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), CheckError> {
        let piece_bytes = self.piece_bytes();
        let start = offset / piece_bytes * piece_bytes;
        let end = (offset + bytes.len() as u64).next_multiple_of(piece_bytes);
        let before = self.read(start, (end - start) as usize).await?;
        let mut after = before.clone();
        after[(offset - start) as usize..][..bytes.len()].copy_from_slice(bytes);
        let pieces = before.chunks(piece_bytes as usize).zip(after.chunks(piece_bytes as usize));
        for (at, (before, after)) in (start..end).step_by(piece_bytes as usize).zip(pieces) {
            if before != after {
                self.overlay.insert(at, Piece::of(after)?)?;
            }
        }
        Ok(())
    }

    /// Adds the sectors of these bytes to the changes, so that they are written although unchanged.
    pub(super) async fn rewrite(&mut self, offset: u64, bytes: usize) -> Result<(), CheckError> {
        let piece_bytes = self.piece_bytes();
        let start = offset / piece_bytes * piece_bytes;
        let end = (offset + bytes as u64).next_multiple_of(piece_bytes);
        let content = self.read(start, (end - start) as usize).await?;
        for (at, piece) in (start..end).step_by(piece_bytes as usize).zip(content.chunks(piece_bytes as usize)) {
            if self.overlay.get(at).is_none() {
                self.overlay.insert(at, Piece::of(piece)?)?;
            }
        }
        Ok(())
    }

    /// Changes `bytes` bytes at `to` to those at `from`, which takes less memory than writing them.
    pub(super) async fn copy(&mut self, from: u64, to: u64, bytes: usize) -> Result<(), CheckError> {
        let piece_bytes = self.piece_bytes();
        if !(bytes as u64).is_multiple_of(piece_bytes) {
            // Sectors are larger than blocks.
            let content = self.read(from, bytes).await?;
            return self.write(to, &content).await;
        }
        for at in (0..bytes as u64).step_by(piece_bytes as usize) {
            let piece = self.overlay.get(from + at).cloned().unwrap_or(Piece::Copy(from + at));
            self.overlay.insert(to + at, piece)?;
        }
        Ok(())
    }

    /// Reads from the disk, without the changes.
    pub(super) async fn read_disk(&mut self, offset: u64, bytes: usize) -> Result<Vec<u8>, CheckError> {
        let (number, within) = (offset / PAGE_BYTES, (offset % PAGE_BYTES) as usize);
        let position = match self.lines.iter().position(|line| line.number == number) {
            Some(position) => position,
            None => match self.load(number).await? {
                Some(position) => position,
                // The whole page cannot be read, but perhaps the requested part.
                None => return self.read_alone(offset, bytes).await,
            },
        };
        self.clock += 1;
        let line = &mut self.lines[position];
        line.used = self.clock;
        let wanted = line.buffer.get(within..within + bytes).filter(|_| within + bytes <= line.bytes);
        wanted.map(<[u8]>::to_vec).ok_or(CheckError::Read(offset, DiskError::Short))
    }

    /// Allocates the buffers for writing, so that it cannot run out of memory later.
    pub(super) fn prepare_writing(&mut self) -> Result<(), CheckError> {
        if self.buffer.is_none() {
            let allocated = self.source.allocate(PAGE_BYTES as usize);
            self.buffer = Some(allocated.map_err(|error| CheckError::Write(0, error))?);
        }
        Ok(())
    }

    /// Writes whole sectors to the disk, within one line.
    pub(super) async fn write_disk(&mut self, offset: u64, bytes: &[u8]) -> Result<(), CheckError> {
        let failed = |error| CheckError::Write(offset, error);
        self.prepare_writing()?;
        let mut buffer = self.buffer.take().ok_or(failed(DiskError::NoMemory))?;
        buffer.get_mut(..bytes.len()).ok_or(failed(DiskError::NoMemory))?.copy_from_slice(bytes);
        let (number, within) = (offset / PAGE_BYTES, (offset % PAGE_BYTES) as usize);
        let (buffer, result) = self.source.write(offset, buffer, bytes.len()).await;
        self.buffer = buffer;
        if let Some(index) = self.lines.iter().position(|line| line.number == number) {
            match self.lines[index].buffer.get_mut(within..within + bytes.len()) {
                Some(target) if result.is_ok() => target.copy_from_slice(bytes),
                // An unknown part of it was written.
                _ => drop(self.lines.swap_remove(index)),
            }
        }
        result.map_err(failed)
    }

    /// Waits until all writes are durable.
    pub(super) async fn flush(&mut self) -> Result<(), CheckError> {
        self.source.flush().await.map_err(|error| CheckError::Write(0, error))
    }

    /// Reads a line; `None` if the device failed at it.
    async fn load(&mut self, number: u64) -> Result<Option<usize>, CheckError> {
        let offset = number * PAGE_BYTES;
        let bytes = self.bytes().saturating_sub(offset).min(PAGE_BYTES) as usize;
        if bytes == 0 {
            return Err(CheckError::Read(offset, DiskError::Short));
        }
        let more = if self.lines.len() < PAGES { Some(self.source.allocate(PAGE_BYTES as usize)) } else { None };
        let oldest = (0..self.lines.len()).min_by_key(|&index| self.lines[index].used);
        let buffer = match (more, oldest) {
            (Some(Ok(buffer)), _) => buffer,
            // Fewer cache pages only cost time.
            (_, Some(oldest)) => self.lines.swap_remove(oldest).buffer,
            (Some(Err(error)), None) => return Err(CheckError::Read(offset, error)),
            (None, None) => return Err(CheckError::Read(offset, DiskError::NoMemory)),
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
        let buffer = match self.buffer.take() {
            Some(buffer) => buffer,
            None => self.source.allocate(PAGE_BYTES as usize).map_err(failed)?,
        };
        let (buffer, result) = self.source.read(offset, buffer, bytes).await;
        result.map_err(failed)?;
        let mut content = vec![0; bytes];
        let read = buffer.as_ref().and_then(|buffer| buffer.get(..bytes)).ok_or(failed(DiskError::Short))?;
        content.copy_from_slice(read);
        self.buffer = buffer;
        Ok(content)
    }
}
