//! Reading an open file: the `File` contract as plain functions.
//!
//! Key types: [`OpenFile`], [`read_all`] for a program that wants every byte in order. The caller's block is lent to the file system and comes back with each answer, also when the file
//! system dies in the middle. Deliberately not here: buffering; callers pick the size of their block.

use sip::Status;
use sip::exheap::ExVec;

use crate::access::AccessError;
use crate::file;

/// Bytes of a block that is large enough to make the cost of a message small.
pub const BLOCK_BYTES: usize = 64 * 1024;

/// An open file.
pub struct OpenFile {
    endpoint: Option<file::Imp<file::states::Ready>>,
}

impl OpenFile {
    /// The file behind an endpoint whose server said `Success`.
    pub fn new(endpoint: file::Imp<file::states::Ready>) -> OpenFile {
        OpenFile { endpoint: Some(endpoint) }
    }

    /// What is known of the file.
    pub fn attributes(&mut self) -> Result<file::FileAttributes, AccessError> {
        let endpoint = self.endpoint.take().ok_or(AccessError::ServerEnded)?;
        match endpoint.get_attributes().receive() {
            file::ImpReadyAfterGetAttributes::Attributes { attributes, next } => {
                self.endpoint = Some(next);
                Ok(attributes)
            }
            file::ImpReadyAfterGetAttributes::ChannelClosed(_) => Err(AccessError::ServerEnded),
        }
    }

    /// Reads from the byte `offset` on into `block`, as much as fits or there is. Gives the block back with
    /// the number of bytes read, which is 0 at the end of the file.
    pub fn read_at(&mut self, block: ExVec<u8>, offset: u64) -> Result<(ExVec<u8>, usize), AccessError> {
        let endpoint = self.endpoint.take().ok_or(AccessError::ServerEnded)?;
        let wanted = u32::try_from(block.len()).unwrap_or(u32::MAX);
        match endpoint.read(block, offset, wanted).receive() {
            file::ImpReadyAfterRead::ReadDone { data, count, next } => {
                self.endpoint = Some(next);
                let count = (count as usize).min(data.len());
                Ok((data, count))
            }
            file::ImpReadyAfterRead::ReadFailed { error, next, .. } => {
                self.endpoint = Some(next);
                Err(error.into())
            }
            file::ImpReadyAfterRead::ChannelClosed(_) => Err(AccessError::ServerEnded),
        }
    }
}

/// Reads a file from its start to its end and hands each piece to `each`: the block and how many of its bytes are
/// the file's. `each` gives a block for the next piece, the same or another, or ends the reading with an error.
pub fn read_all<E: From<AccessError>>(
    file: &mut OpenFile,
    mut each: impl FnMut(ExVec<u8>, usize) -> Result<ExVec<u8>, E>,
) -> Result<(), E> {
    let mut block = new_block().map_err(|status| E::from(status.into()))?;
    let mut offset = 0;
    loop {
        let (filled, count) = file.read_at(block, offset)?;
        if count == 0 {
            return Ok(());
        }
        offset += count as u64;
        block = each(filled, count)?;
    }
}

/// A block to read into.
pub fn new_block() -> Result<ExVec<u8>, Status> {
    ExVec::new(BLOCK_BYTES)
}
