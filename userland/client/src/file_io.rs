//! Reading and writing an open file: the `File` contract as plain functions.
//!
//! Key types: [`OpenFile`], [`Pieces`] for a program that wants every byte in order. The caller's block is lent to the
//! file system and comes back with each answer, also when the file system dies in the middle. Deliberately not here:
//! buffering; callers of [`OpenFile::read_at`] pick the size of their block.

use core::mem;
use core::time::Duration;

use contracts::file;
use sip::Status;
use sip::channel::Receiver;
use sip::exheap::ExVec;

use crate::access::AccessError;
use crate::answer::{BULK_LIMIT, REQUEST_LIMIT, wait};

/// Bytes of a block that is large enough to make the cost of a message small.
pub const BLOCK_BYTES: usize = 64 * 1024;

/// An open file.
pub struct OpenFile {
    /// Between requests; else why it is there no more.
    endpoint: Result<file::Imp<file::states::Ready>, AccessError>,
}

impl OpenFile {
    /// The file behind an endpoint whose server said `Success`.
    pub fn new(endpoint: file::Imp<file::states::Ready>) -> OpenFile {
        OpenFile { endpoint: Ok(endpoint) }
    }

    /// Sends a request and waits for its answer, which gives the endpoint back.
    fn ask<R: Receiver>(
        &mut self,
        limit: Duration,
        request: impl FnOnce(file::Imp<file::states::Ready>) -> R,
    ) -> Result<R::Event, AccessError> {
        let ready = mem::replace(&mut self.endpoint, Err(AccessError::ServerEnded))?;
        wait(request(ready), limit).inspect_err(|error| self.endpoint = Err(*error))
    }

    /// What is known of the file.
    pub fn attributes(&mut self) -> Result<file::FileAttributes, AccessError> {
        match self.ask(REQUEST_LIMIT, |ready| ready.get_attributes())? {
            file::ImpReadyAfterGetAttributes::Attributes { attributes, next } => {
                self.endpoint = Ok(next);
                Ok(attributes)
            }
            file::ImpReadyAfterGetAttributes::ChannelClosed(_) => Err(AccessError::ServerEnded),
        }
    }

    /// Reads from the byte `offset` on into `block`, as much as fits or there is. Gives the block back with
    /// the number of bytes read, which is 0 at the end of the file.
    pub fn read_at(&mut self, block: ExVec<u8>, offset: u64) -> Result<(ExVec<u8>, usize), AccessError> {
        let wanted = u32::try_from(block.len()).unwrap_or(u32::MAX);
        match self.ask(REQUEST_LIMIT, |ready| ready.read(block, offset, wanted))? {
            file::ImpReadyAfterRead::ReadDone { data, count, next } => {
                self.endpoint = Ok(next);
                let count = (count as usize).min(data.len());
                Ok((data, count))
            }
            file::ImpReadyAfterRead::ReadFailed { error, next, .. } => {
                self.endpoint = Ok(next);
                Err(error.into())
            }
            file::ImpReadyAfterRead::ChannelClosed(_) => Err(AccessError::ServerEnded),
        }
    }

    /// The file from its start to its end, in pieces of at most [`BLOCK_BYTES`].
    pub fn pieces(&mut self) -> Pieces<'_> {
        Pieces { file: self, block: None, offset: 0 }
    }

    /// Writes the first `bytes` bytes of `block` at the byte `offset`. Gives the block back with how many of
    /// them are in the file and, where that is not all, why.
    pub fn write_at(&mut self, block: ExVec<u8>, offset: u64, bytes: usize) -> Result<Written, AccessError> {
        let count = count_of(&block, bytes);
        match self.ask(REQUEST_LIMIT, |ready| ready.write(block, offset, count))? {
            file::ImpReadyAfterWrite::WriteDone { data, next } => {
                self.endpoint = Ok(next);
                Ok(Written { block: data, bytes: count as usize, failed: None })
            }
            file::ImpReadyAfterWrite::WriteFailed { data, error, written, next } => {
                self.endpoint = Ok(next);
                Ok(Written { block: data, bytes: written.min(count) as usize, failed: Some(error) })
            }
            file::ImpReadyAfterWrite::ChannelClosed(_) => Err(AccessError::ServerEnded),
        }
    }

    /// Writes the first `bytes` bytes of `block` at the end of the file, in one step. Gives the block back with
    /// how many of them are in the file and, where that is not all, why.
    pub fn append(&mut self, block: ExVec<u8>, bytes: usize) -> Result<Written, AccessError> {
        let count = count_of(&block, bytes);
        match self.ask(REQUEST_LIMIT, |ready| ready.append(block, count))? {
            file::ImpReadyAfterAppend::Appended { data, next, .. } => {
                self.endpoint = Ok(next);
                Ok(Written { block: data, bytes: count as usize, failed: None })
            }
            file::ImpReadyAfterAppend::WriteFailed { data, error, written, next } => {
                self.endpoint = Ok(next);
                Ok(Written { block: data, bytes: written.min(count) as usize, failed: Some(error) })
            }
            file::ImpReadyAfterAppend::ChannelClosed(_) => Err(AccessError::ServerEnded),
        }
    }

    /// Cuts the file to `size_bytes`, or makes it longer with zeros that take no room.
    pub fn set_size(&mut self, size_bytes: u64) -> Result<(), AccessError> {
        match self.ask(BULK_LIMIT, |ready| ready.set_size(size_bytes))? {
            file::ImpReadyAfterSetSize::Done { next } => {
                self.endpoint = Ok(next);
                Ok(())
            }
            file::ImpReadyAfterSetSize::Failed { error, next } => {
                self.endpoint = Ok(next);
                Err(error.into())
            }
            file::ImpReadyAfterSetSize::ChannelClosed(_) => Err(AccessError::ServerEnded),
        }
    }

    /// Waits until what was written is on the medium.
    pub fn sync(&mut self) -> Result<(), AccessError> {
        match self.ask(BULK_LIMIT, |ready| ready.sync())? {
            file::ImpReadyAfterSync::Done { next } => {
                self.endpoint = Ok(next);
                Ok(())
            }
            file::ImpReadyAfterSync::Failed { error, next } => {
                self.endpoint = Ok(next);
                Err(error.into())
            }
            file::ImpReadyAfterSync::ChannelClosed(_) => Err(AccessError::ServerEnded),
        }
    }
}

/// What came of a write.
pub struct Written {
    /// The block, as it was.
    pub block: ExVec<u8>,
    /// How many of its bytes are in the file.
    pub bytes: usize,
    /// Why not all of them are.
    pub failed: Option<file::FileError>,
}

impl Written {
    /// The block, if all bytes are in the file.
    pub fn all(self) -> Result<ExVec<u8>, AccessError> {
        match self.failed {
            None => Ok(self.block),
            Some(error) => Err(error.into()),
        }
    }
}

/// How many bytes to ask for, of a block that may be shorter.
fn count_of(block: &ExVec<u8>, bytes: usize) -> u32 {
    u32::try_from(bytes.min(block.len())).unwrap_or(u32::MAX)
}

/// A file's bytes from its start to its end, piece by piece. Made by [`OpenFile::pieces`].
pub struct Pieces<'f> {
    file: &'f mut OpenFile,
    block: Option<ExVec<u8>>,
    offset: u64,
}

impl Pieces<'_> {
    /// The next piece; nothing at the file's end.
    ///
    /// # Errors
    /// What [`OpenFile::read_at`] fails with, or that there is no memory for a block.
    #[expect(clippy::should_implement_trait, reason = "the piece is borrowed from this")]
    pub fn next(&mut self) -> Result<Option<&[u8]>, AccessError> {
        let block = match self.block.take() {
            Some(block) => block,
            None => new_block()?,
        };
        let (block, bytes) = self.file.read_at(block, self.offset)?;
        self.offset += bytes as u64;
        Ok(self.block.insert(block).get(..bytes).filter(|piece| !piece.is_empty()))
    }
}

/// A block to read into.
pub fn new_block() -> Result<ExVec<u8>, Status> {
    ExVec::new(BLOCK_BYTES)
}
