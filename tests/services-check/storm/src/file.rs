//! The file over the bare contract, so that returned blocks can be counted.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use client::access::AccessError;
use client::namespace::Namespace;
use contracts::file::{self, states};
use sip::channel::Closed;
use sip::exheap::ExVec;

use crate::pieces::{PIECE_BYTES, PIECES, Versions, fill, version_of};

/// Why a step failed.
pub enum Lost {
    /// The file system ended.
    Ended,
    /// An invariant is violated.
    Wrong(String),
}

impl From<AccessError> for Lost {
    fn from(error: AccessError) -> Lost {
        if error.may_pass() { Lost::Ended } else { Lost::Wrong(format!("{error}")) }
    }
}

/// The open file.
pub struct StormFile(file::Imp<states::Ready>);

impl StormFile {
    /// Opens an existing file.
    pub fn open(namespace: &mut Namespace, path: &str) -> Result<StormFile, AccessError> {
        namespace.open(path, file::new_channel, |importer| match importer.receive() {
            file::ImpStart::Success { next } => Ok(StormFile(next)),
            file::ImpStart::Refused { error, .. } => Err(error.into()),
            file::ImpStart::ChannelClosed(_) => Err(AccessError::ServerEnded),
        })
    }

    /// Reads pieces: as many bytes as there are.
    pub fn read(self, first: usize, count: usize) -> Result<(StormFile, Vec<u8>), Lost> {
        let bytes = count * PIECE_BYTES;
        let block = ExVec::<u8>::new(bytes).map_err(AccessError::from)?;
        match self.0.read(block, (first * PIECE_BYTES) as u64, bytes as u32).receive() {
            file::ImpReadyAfterRead::ReadDone { data, count, next } => {
                Ok((StormFile(next), data[..(count as usize).min(data.len())].to_vec()))
            }
            file::ImpReadyAfterRead::ReadFailed { error, .. } => Err(AccessError::from(error).into()),
            file::ImpReadyAfterRead::ChannelClosed(closed) => Err(came_home(closed, bytes)),
        }
    }

    /// Reads pieces, which must match the last writes.
    pub fn read_exactly(self, client: u32, versions: &Versions, first: usize, count: usize) -> Result<StormFile, Lost> {
        let (file, bytes) = self.read(first, count)?;
        for piece in first..first + count {
            let (found, expected) = (piece_of(&bytes, client, first, piece), versions.written(piece));
            if found != Some(expected) {
                return Err(Lost::Wrong(format!("piece {piece} is of version {found:?}, {expected} was written")));
            }
        }
        Ok(file)
    }

    /// Reads all pieces after a crash.
    pub fn read_any(self, client: u32, versions: &mut Versions) -> Result<StormFile, Lost> {
        let (file, bytes) = self.read(0, PIECES)?;
        for piece in 0..PIECES {
            versions.find(piece, piece_of(&bytes, client, 0, piece)).map_err(Lost::Wrong)?;
        }
        Ok(file)
    }

    /// Writes a version of pieces.
    pub fn write(self, client: u32, version: u32, first: usize, count: usize) -> Result<StormFile, Lost> {
        let bytes = count * PIECE_BYTES;
        let mut block = ExVec::<u8>::new(bytes).map_err(AccessError::from)?;
        for (index, piece) in block.chunks_exact_mut(PIECE_BYTES).enumerate() {
            fill(piece, client, first + index, version);
        }
        match self.0.write(block, (first * PIECE_BYTES) as u64, bytes as u32).receive() {
            file::ImpReadyAfterWrite::WriteDone { next, .. } => Ok(StormFile(next)),
            file::ImpReadyAfterWrite::WriteFailed { error, .. } => Err(AccessError::from(error).into()),
            file::ImpReadyAfterWrite::ChannelClosed(closed) => Err(came_home(closed, bytes)),
        }
    }

    /// Waits until everything is on the medium.
    pub fn sync(self) -> Result<StormFile, Lost> {
        match self.0.sync().receive() {
            file::ImpReadyAfterSync::Done { next } => Ok(StormFile(next)),
            file::ImpReadyAfterSync::Failed { error, .. } => Err(AccessError::from(error).into()),
            file::ImpReadyAfterSync::ChannelClosed(_) => Err(Lost::Ended),
        }
    }
}

/// Returns the version of a piece in bytes that were read from the piece `first` on; beyond the end it is absent.
fn piece_of(bytes: &[u8], client: u32, first: usize, piece: usize) -> Option<u32> {
    let start = ((piece - first) * PIECE_BYTES).min(bytes.len());
    version_of(&bytes[start..(start + PIECE_BYTES).min(bytes.len())], client, piece)
}

/// Checks that the returned block is the one that was lent.
fn came_home(mut closed: Closed, bytes: usize) -> Lost {
    let home: Vec<ExVec<u8>> = closed.take_home().into_iter().filter_map(|block| block.into_vec().ok()).collect();
    match &home[..] {
        [block] if block.len() == bytes => Lost::Ended,
        _ => Lost::Wrong(format!("of one block of {bytes} bytes that was lent, {} came home", home.len())),
    }
}
