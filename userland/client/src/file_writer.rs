//! Sequential writes to a file.
//!
//! Key type: [`FileWriter`]. Deliberately not here: the source of the bytes.

use contracts::directory::CreateMode;
use sip::exheap::ExVec;

use crate::access::AccessError;
use crate::file_io::OpenFile;
use crate::namespace::Namespace;

/// Permission bits of a created file.
pub const NEW_PERMISSIONS: u32 = 0o644;

/// Granularity of holes in bytes. No file system here has larger blocks, which it would allocate all the same.
const PIECE_BYTES: usize = 4096;

/// Treatment of zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zeros {
    /// Written like other bytes.
    Write,
    /// Whole pieces of zeros become holes. Only for files that held nothing there before.
    Skip,
}

/// Treatment of an existing file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Its content is replaced.
    Replace,
    /// Its content is kept, and new bytes are appended.
    Append,
}

/// Sequential writer of a file.
pub struct FileWriter {
    file: OpenFile,
    zeros: Zeros,
    existing: Existing,
    offset: u64,
    /// The file ends at or after this byte.
    written_to: u64,
}

impl FileWriter {
    /// Overwrites the file from byte `offset`.
    pub fn new(file: OpenFile, offset: u64, zeros: Zeros) -> FileWriter {
        FileWriter { file, zeros, existing: Existing::Replace, offset, written_to: 0 }
    }

    /// Creates or opens the file at this path, to replace it or to append to it.
    pub fn open(namespace: &mut Namespace, path: &str, existing: Existing) -> Result<FileWriter, AccessError> {
        let mut file = namespace.create_file(path, NEW_PERMISSIONS, CreateMode::OpenExisting)?;
        if existing == Existing::Replace {
            file.set_size(0)?;
        }
        Ok(FileWriter { existing, ..FileWriter::new(file, 0, Zeros::Write) })
    }

    /// Writes the first `bytes` bytes of `block` next, and returns the block.
    pub fn write(&mut self, block: ExVec<u8>, bytes: usize) -> Result<ExVec<u8>, AccessError> {
        let bytes = bytes.min(block.len());
        match self.zeros {
            Zeros::Write => self.write_front(block, bytes),
            Zeros::Skip => self.write_runs(block, bytes),
        }
    }

    fn write_front(&mut self, block: ExVec<u8>, bytes: usize) -> Result<ExVec<u8>, AccessError> {
        let written = match self.existing {
            Existing::Replace => self.file.write_at(block, self.offset, bytes)?,
            // Another writer may have extended the file.
            Existing::Append => self.file.append(block, bytes)?,
        };
        let block = written.all()?;
        self.offset += bytes as u64;
        self.written_to = self.offset;
        Ok(block)
    }

    fn write_runs(&mut self, mut block: ExVec<u8>, bytes: usize) -> Result<ExVec<u8>, AccessError> {
        let mut at = 0;
        while let Some(run) = next_run(&block[..bytes], at) {
            self.offset += (run.start - at) as u64;
            at = run.end;
            if run.start == 0 {
                block = self.write_front(block, run.end)?;
            } else {
                let length = run.len();
                let run = ExVec::from_slice(&block[run])?;
                self.write_front(run, length)?;
            }
        }
        self.offset += (bytes - at) as u64;
        Ok(block)
    }

    /// Returns the offset after the last byte written or skipped.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Extends the file to its last byte, if that is in a hole, and returns it.
    pub fn finish(mut self) -> Result<OpenFile, AccessError> {
        if self.written_to < self.offset && self.zeros == Zeros::Skip {
            self.file.set_size(self.offset)?;
        }
        Ok(self.file)
    }
}

/// Returns the next run of pieces at or after `at` that are not all zeros.
fn next_run(bytes: &[u8], at: usize) -> Option<core::ops::Range<usize>> {
    let is_zero = |piece: &[u8]| piece.iter().all(|byte| *byte == 0);
    let skipped = bytes[at..].chunks(PIECE_BYTES).take_while(|piece| is_zero(piece)).map(<[u8]>::len).sum::<usize>();
    let start = at + skipped;
    let length = bytes[start..].chunks(PIECE_BYTES).take_while(|piece| !is_zero(piece)).map(<[u8]>::len).sum::<usize>();
    (length > 0).then_some(start..start + length)
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;

    /// Start and end of each run.
    fn runs(bytes: &[u8]) -> Vec<(usize, usize)> {
        let mut found: Vec<(usize, usize)> = Vec::new();
        while let Some(run) = next_run(bytes, found.last().map_or(0, |(_, end)| *end)) {
            found.push((run.start, run.end));
        }
        found
    }

    #[test]
    fn only_pieces_that_are_zero_throughout_are_left_out() {
        let mut bytes = vec![0; 5 * PIECE_BYTES + 10];
        assert!(runs(&bytes).is_empty());
        bytes[PIECE_BYTES] = 1;
        bytes[3 * PIECE_BYTES - 1] = 1;
        assert_eq!(runs(&bytes), [(PIECE_BYTES, 3 * PIECE_BYTES)]);
        bytes[5 * PIECE_BYTES + 9] = 1;
        assert_eq!(runs(&bytes), [(PIECE_BYTES, 3 * PIECE_BYTES), (5 * PIECE_BYTES, 5 * PIECE_BYTES + 10)]);
        bytes.fill(1);
        assert_eq!(runs(&bytes), [(0, bytes.len())]);
        assert!(runs(&[]).is_empty());
    }
}
