//! Reading and writing an open file: the `File` contract as plain functions.
//!
//! Key types: [`OpenFile`], [`Pieces`] for sequential reads. The caller's block is lent to the
//! file system and comes back with each answer, also when the file system dies in the middle. Deliberately not here:
//! buffering; callers of [`OpenFile::read_at`] pick the size of their block.

use core::mem;
use core::time::Duration;

use contracts::file::{self, LockKind};
use sip::Status;
use sip::channel::Receiver;
use sip::exheap::ExVec;

use crate::access::AccessError;
use crate::answer::{BULK_LIMIT, REQUEST_LIMIT, wait};

/// Size of a block in bytes, large enough to amortize the cost of a message.
pub const BLOCK_BYTES: usize = 64 * 1024;

/// An open file.
pub struct OpenFile {
    /// The endpoint between requests, or the error that closed it.
    endpoint: Result<file::Imp<file::states::Ready>, AccessError>,
}

impl OpenFile {
    /// Wraps an endpoint whose server has answered `Success`.
    pub fn new(endpoint: file::Imp<file::states::Ready>) -> OpenFile {
        OpenFile { endpoint: Ok(endpoint) }
    }

    /// Sends a request and waits for its answer, which returns the endpoint.
    fn ask<R: Receiver>(
        &mut self,
        limit: Duration,
        request: impl FnOnce(file::Imp<file::states::Ready>) -> R,
    ) -> Result<R::Event, AccessError> {
        let ready = mem::replace(&mut self.endpoint, Err(AccessError::ServerEnded))?;
        wait(request(ready), limit).inspect_err(|error| self.endpoint = Err(*error))
    }

    /// Keeps the endpoint for the next request, and returns the answer of this one.
    fn answered<T>(
        &mut self,
        next: file::Imp<file::states::Ready>,
        answer: Result<T, file::FileError>,
    ) -> Result<T, AccessError> {
        self.endpoint = Ok(next);
        Ok(answer?)
    }

    /// Returns the file's attributes.
    pub fn attributes(&mut self) -> Result<file::FileAttributes, AccessError> {
        match self.ask(REQUEST_LIMIT, |ready| ready.get_attributes())? {
            file::ImpReadyAfterGetAttributes::Attributes { attributes, next } => self.answered(next, Ok(attributes)),
            file::ImpReadyAfterGetAttributes::ChannelClosed(_) => Err(AccessError::ServerEnded),
        }
    }

    /// Reads from byte `offset` into `block`, up to its length. Returns the block and the number of bytes read, 0 at
    /// the end of the file.
    pub fn read_at(&mut self, block: ExVec<u8>, offset: u64) -> Result<(ExVec<u8>, usize), AccessError> {
        let all = block.len();
        self.read_part(block, offset, all)
    }

    /// Reads at most `bytes` bytes from byte `offset` into the start of `block`. See [`read_at`](Self::read_at).
    pub fn read_part(
        &mut self,
        block: ExVec<u8>,
        offset: u64,
        bytes: usize,
    ) -> Result<(ExVec<u8>, usize), AccessError> {
        let wanted = count_of(&block, bytes);
        match self.ask(REQUEST_LIMIT, |ready| ready.read(block, offset, wanted))? {
            file::ImpReadyAfterRead::ReadDone { data, count, next } => {
                self.endpoint = Ok(next);
                let count = (count as usize).min(data.len());
                Ok((data, count))
            }
            file::ImpReadyAfterRead::ReadFailed { error, next, .. } => self.answered(next, Err(error)),
            file::ImpReadyAfterRead::ChannelClosed(_) => Err(AccessError::ServerEnded),
        }
    }

    /// Reads the file from start to end, in pieces of at most [`BLOCK_BYTES`].
    pub fn pieces(&mut self) -> Pieces<'_> {
        Pieces { file: self, block: None, offset: 0 }
    }

    /// Writes the first `bytes` bytes of `block` at byte `offset`. Returns the block, the number of bytes written and,
    /// if that is not all, the error.
    pub fn write_at(&mut self, block: ExVec<u8>, offset: u64, bytes: usize) -> Result<Written, AccessError> {
        let count = count_of(&block, bytes);
        match self.ask(REQUEST_LIMIT, |ready| ready.write(block, offset, count))? {
            file::ImpReadyAfterWrite::WriteDone { data, next } => {
                self.endpoint = Ok(next);
                Ok(Written { block: data, bytes: count as usize, offset, failed: None })
            }
            file::ImpReadyAfterWrite::WriteFailed { data, error, written, next } => {
                self.endpoint = Ok(next);
                Ok(Written { block: data, bytes: written.min(count) as usize, offset, failed: Some(error) })
            }
            file::ImpReadyAfterWrite::ChannelClosed(_) => Err(AccessError::ServerEnded),
        }
    }

    /// Appends the first `bytes` bytes of `block` atomically. Returns the block, the number of bytes written and, if
    /// that is not all, the error.
    pub fn append(&mut self, block: ExVec<u8>, bytes: usize) -> Result<Written, AccessError> {
        let count = count_of(&block, bytes);
        match self.ask(REQUEST_LIMIT, |ready| ready.append(block, count))? {
            file::ImpReadyAfterAppend::Appended { data, offset, next } => {
                self.endpoint = Ok(next);
                Ok(Written { block: data, bytes: count as usize, offset, failed: None })
            }
            file::ImpReadyAfterAppend::WriteFailed { data, error, written, next } => {
                self.endpoint = Ok(next);
                Ok(Written { block: data, bytes: written.min(count) as usize, offset: 0, failed: Some(error) })
            }
            file::ImpReadyAfterAppend::ChannelClosed(_) => Err(AccessError::ServerEnded),
        }
    }

    /// Truncates the file to `size_bytes`, or extends it with a hole.
    pub fn set_size(&mut self, size_bytes: u64) -> Result<(), AccessError> {
        match self.ask(BULK_LIMIT, |ready| ready.set_size(size_bytes))? {
            file::ImpReadyAfterSetSize::Done { next } => self.answered(next, Ok(())),
            file::ImpReadyAfterSetSize::Failed { error, next } => self.answered(next, Err(error)),
            file::ImpReadyAfterSetSize::ChannelClosed(_) => Err(AccessError::ServerEnded),
        }
    }

    /// Waits until written data is on the medium.
    pub fn sync(&mut self) -> Result<(), AccessError> {
        match self.ask(BULK_LIMIT, |ready| ready.sync())? {
            file::ImpReadyAfterSync::Done { next } => self.answered(next, Ok(())),
            file::ImpReadyAfterSync::Failed { error, next } => self.answered(next, Err(error)),
            file::ImpReadyAfterSync::ChannelClosed(_) => Err(AccessError::ServerEnded),
        }
    }

    /// Locks `length` bytes from `start` on, or all from there if `length` is 0; returns whether no other client's lock
    /// excludes it. The lock ends with this file, and with its server: every request fails then.
    pub fn lock(&mut self, kind: LockKind, start: u64, length: u64) -> Result<bool, AccessError> {
        match self.ask(REQUEST_LIMIT, |ready| ready.lock(kind, start, length))? {
            file::ImpReadyAfterLock::Locked { next } => self.answered(next, Ok(true)),
            file::ImpReadyAfterLock::Excluded { next } => self.answered(next, Ok(false)),
            file::ImpReadyAfterLock::Failed { error, next } => self.answered(next, Err(error)),
            file::ImpReadyAfterLock::ChannelClosed(_) => Err(AccessError::ServerEnded),
        }
    }

    /// Gives up this file's locks of a range, likewise.
    pub fn unlock(&mut self, start: u64, length: u64) -> Result<(), AccessError> {
        match self.ask(REQUEST_LIMIT, |ready| ready.unlock(start, length))? {
            file::ImpReadyAfterUnlock::Done { next } => self.answered(next, Ok(())),
            file::ImpReadyAfterUnlock::Failed { error, next } => self.answered(next, Err(error)),
            file::ImpReadyAfterUnlock::ChannelClosed(_) => Err(AccessError::ServerEnded),
        }
    }

    /// Returns whether no other client's lock excludes one of this kind.
    pub fn may_lock(&mut self, kind: LockKind, start: u64, length: u64) -> Result<bool, AccessError> {
        match self.ask(REQUEST_LIMIT, |ready| ready.test_lock(kind, start, length))? {
            file::ImpReadyAfterTestLock::Free { next } => self.answered(next, Ok(true)),
            file::ImpReadyAfterTestLock::Excluded { next } => self.answered(next, Ok(false)),
            file::ImpReadyAfterTestLock::Failed { error, next } => self.answered(next, Err(error)),
            file::ImpReadyAfterTestLock::ChannelClosed(_) => Err(AccessError::ServerEnded),
        }
    }
}

/// Result of a write.
pub struct Written {
    /// The block, unchanged.
    pub block: ExVec<u8>,
    /// Number of its bytes that are in the file.
    pub bytes: usize,
    /// Where in the file they begin; 0 if an append failed.
    pub offset: u64,
    /// The error, if not all of them are.
    pub failed: Option<file::FileError>,
}

impl Written {
    /// Returns the block if all bytes are in the file.
    pub fn all(self) -> Result<ExVec<u8>, AccessError> {
        match self.failed {
            None => Ok(self.block),
            Some(error) => Err(error.into()),
        }
    }
}

/// Clamps a count to the length of the block.
fn count_of(block: &ExVec<u8>, bytes: usize) -> u32 {
    u32::try_from(bytes.min(block.len())).unwrap_or(u32::MAX)
}

/// Sequential reader of a file. Created by [`OpenFile::pieces`].
pub struct Pieces<'f> {
    file: &'f mut OpenFile,
    block: Option<ExVec<u8>>,
    offset: u64,
}

impl Pieces<'_> {
    /// Returns the next piece, `None` at the end of the file.
    ///
    /// # Errors
    /// Those of [`OpenFile::read_at`], or no memory for a block.
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

/// Allocates a block of [`BLOCK_BYTES`].
pub fn new_block() -> Result<ExVec<u8>, Status> {
    ExVec::new(BLOCK_BYTES)
}
