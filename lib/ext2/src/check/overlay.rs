//! Changes of a repair, held in memory over a read-only disk.
//!
//! Not here: the disk, and the order of writes.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::CheckError;

/// Memory overhead of a change beside its content, in bytes: its entries in the map and in the write list.
const OVERHEAD_BYTES: u64 = 96;

/// The new content of one sector of the disk.
#[derive(Clone)]
pub(super) enum Piece {
    Bytes(Box<[u8]>),
    /// Content of the disk at this offset.
    Copy(u64),
}

/// Changed sectors by offset.
pub(super) struct Overlay {
    pieces: BTreeMap<u64, Piece>,
    /// Memory in use, and its limit, in bytes.
    used: u64,
    limit: u64,
}

impl Overlay {
    pub(super) fn new(limit: u64) -> Overlay {
        Overlay { pieces: BTreeMap::new(), used: 0, limit }
    }

    pub(super) fn set_limit(&mut self, limit: u64) {
        self.limit = limit;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    pub(super) fn get(&self, offset: u64) -> Option<&Piece> {
        self.pieces.get(&offset)
    }

    /// Returns the changes that begin in `start..end`.
    pub(super) fn range(&self, start: u64, end: u64) -> impl Iterator<Item = (u64, &Piece)> {
        self.pieces.range(start..end).map(|(&offset, piece)| (offset, piece))
    }

    pub(super) fn offsets(&self) -> impl Iterator<Item = u64> {
        self.pieces.keys().copied()
    }

    /// Changes a sector.
    pub(super) fn insert(&mut self, offset: u64, piece: Piece) -> Result<(), CheckError> {
        let used = self.used - self.get(offset).map_or(0, cost) + cost(&piece);
        if used > self.limit {
            return Err(CheckError::TooManyChanges { allowed: self.limit });
        }
        self.used = used;
        self.pieces.insert(offset, piece);
        Ok(())
    }
}

impl Piece {
    /// Creates a piece with these bytes.
    pub(super) fn of(bytes: &[u8]) -> Result<Piece, CheckError> {
        let mut own = Vec::new();
        own.try_reserve_exact(bytes.len()).map_err(|_| CheckError::NoMemory)?;
        own.extend_from_slice(bytes);
        Ok(Piece::Bytes(own.into_boxed_slice()))
    }
}

fn cost(piece: &Piece) -> u64 {
    match piece {
        Piece::Bytes(bytes) => OVERHEAD_BYTES + bytes.len() as u64,
        Piece::Copy(_) => OVERHEAD_BYTES,
    }
}
