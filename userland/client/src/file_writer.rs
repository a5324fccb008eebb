//! Writing a file from some place on, block by block.
//!
//! Key type: [`FileWriter`]. Deliberately not here: where the bytes come from.

use contracts::directory::CreateMode;
use sip::exheap::ExVec;

use crate::access::AccessError;
use crate::file_io::OpenFile;
use crate::namespace::Namespace;

/// Permission bits of a file that is made.
pub const NEW_PERMISSIONS: u32 = 0o644;

/// Bytes of a piece that is not written where all of it is zero. No file system here has larger blocks that would
/// be given to it all the same.
const PIECE_BYTES: usize = 4096;

/// What becomes of zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zeros {
    /// They are written.
    Write,
    /// Where whole pieces are zero, the file is left to have no room there: it held nothing before.
    Skip,
}

/// What becomes of a file that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Its content is replaced.
    Replace,
    /// Its content is kept, and more comes behind it.
    Append,
}

/// A file that is written in order.
pub struct FileWriter {
    file: OpenFile,
    zeros: Zeros,
    existing: Existing,
    offset: u64,
    /// The file ends at or after this byte.
    written_to: u64,
}

impl FileWriter {
    /// Writes over what is in the file from the byte `offset` on.
    pub fn new(file: OpenFile, offset: u64, zeros: Zeros) -> FileWriter {
        FileWriter { file, zeros, existing: Existing::Replace, offset, written_to: 0 }
    }

    /// Makes or opens the file at this path, to be written as a whole or from its end on.
    pub fn open(namespace: &mut Namespace, path: &str, existing: Existing) -> Result<FileWriter, AccessError> {
        let mut file = namespace.create_file(path, NEW_PERMISSIONS, CreateMode::OpenExisting)?;
        if existing == Existing::Replace {
            file.set_size(0)?;
        }
        Ok(FileWriter { existing, ..FileWriter::new(file, 0, Zeros::Write) })
    }

    /// Writes the first `bytes` bytes of `block` next, and gives the block back.
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
            // Whoever else writes to the file may have made it longer.
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

    /// The byte after the last one that was written or left out.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Makes the file as long as what was written and left out; gives the file.
    pub fn finish(mut self) -> Result<OpenFile, AccessError> {
        if self.written_to < self.offset && self.zeros == Zeros::Skip {
            self.file.set_size(self.offset)?;
        }
        Ok(self.file)
    }
}

/// The next bytes from `at` on that have to be written: pieces of which none is zero alone.
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
