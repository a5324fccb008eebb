//! Writes the changes of a repair, after all of them were computed and verified.
//!
//! *Order.* First, blocks that nothing on the disk refers to: copies, new tables, and the repair log
//! ([`redo`](super::redo)). Then the superblock marks the volume as not clean and locates the log: from then on the
//! repair is atomic. Then all other blocks are written in place, the superblock last. A flush separates each two steps.
//!
//! On a volume without room for a log, the order alone must suffice: references to a new block are written after it,
//! and no referenced block is reused, so a second repair finds the same faults as the first, apart from partially
//! written blocks. The last fields of [`Order`] hold the requirements of journals and truncated inodes.
//!
//! *Undo.* Each run of sectors is read before it is written, and its old content replaces the new in memory. If the
//! disk fails in between, the old contents are written back in reverse order.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::CheckError;
use super::bits::Bits;
use super::device::{Device, PAGE_BYTES};
use super::overlay::Piece;
use crate::format::superblock::{BYTES, OFFSET};
use block_source::BlockSource;

/// Time of a sector's write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    New,
    InPlace,
    /// Distance from the end of the orphan list.
    Orphan(u32),
    Journal,
    Superblock,
}

/// Bytes of the disk that change later than the rest of their sector.
pub(super) struct Held {
    pub(super) offset: u64,
    pub(super) bytes: Vec<u8>,
}

/// Order of the writes.
pub(super) struct Order<'a> {
    pub(super) block_bytes: u64,
    /// Blocks that were free.
    pub(super) new_blocks: &'a Bits,
    /// Superblock on the disk while changes are written in place. `None` without a log if no field of the superblock
    /// could mark the volume as not clean.
    pub(super) marked: Option<Vec<u8>>,
    /// Offsets of truncated inodes, in list order: each refers to the next until it is written.
    pub(super) orphans: Vec<u64>,
    /// First block of the journal, which is emptied after everything else it held is in place.
    pub(super) journal: Option<u64>,
    /// Inode of a replayed journal that is removed; it stays until the superblock no longer refers to it.
    pub(super) held: Option<Held>,
    /// The final superblock, but not marked clean.
    pub(super) unsettled: Vec<u8>,
}

/// Adjacent sectors written at once.
struct Run {
    stage: Stage,
    offset: u64,
    bytes: usize,
}

impl<S: BlockSource> Device<'_, S> {
    /// Writes all changes or none.
    pub(super) async fn apply(&mut self, order: &Order<'_>) -> Result<(), CheckError> {
        if self.overlay.is_empty() {
            return Ok(());
        }
        let runs = self.runs(order)?;
        let piece_bytes = self.piece_bytes();
        let start = OFFSET / piece_bytes * piece_bytes;
        let end = (OFFSET + BYTES as u64).next_multiple_of(piece_bytes);
        let before = self.read_disk(start, (end - start) as usize).await?;
        self.prepare_writing()?;
        let mut begun = 0;
        let written = self.write_runs(order, &runs, &mut begun).await;
        let Err(error) = written else { return Ok(()) };
        if self.undo(&runs[..begun]).await.is_err() || self.write_settled(start, &before).await.is_err() {
            return Err(CheckError::Unfinished { changes: begun as u64 });
        }
        Err(error)
    }

    async fn write_runs(&mut self, order: &Order<'_>, runs: &[Run], begun: &mut usize) -> Result<(), CheckError> {
        let mut stage = Stage::New;
        for (index, run) in runs.iter().enumerate() {
            if run.stage != stage {
                self.flush().await?;
                if let Some(marked) = order.marked.as_ref().filter(|_| stage == Stage::New) {
                    self.patch_disk(OFFSET, marked).await?;
                    self.flush().await?;
                }
                stage = run.stage;
                if stage == Stage::Superblock {
                    self.release(order).await?;
                }
            }
            *begun = index + 1;
            self.exchange(run, order.held.as_ref()).await?;
        }
        self.flush().await
    }

    /// Removes a journal's inode: the superblock first, then the inode.
    async fn release(&mut self, order: &Order<'_>) -> Result<(), CheckError> {
        let Some(held) = &order.held else { return Ok(()) };
        self.patch_disk(OFFSET, &order.unsettled).await?;
        self.flush().await?;
        self.patch_disk(held.offset, &held.bytes).await?;
        self.flush().await
    }

    /// Writes bytes to the disk that are not whole sectors.
    async fn patch_disk(&mut self, offset: u64, bytes: &[u8]) -> Result<(), CheckError> {
        let piece_bytes = self.piece_bytes();
        let start = offset / piece_bytes * piece_bytes;
        let end = (offset + bytes.len() as u64).next_multiple_of(piece_bytes);
        let mut content = self.read_disk(start, (end - start) as usize).await?;
        content[(offset - start) as usize..][..bytes.len()].copy_from_slice(bytes);
        self.write_disk(start, &content).await
    }

    async fn write_settled(&mut self, offset: u64, bytes: &[u8]) -> Result<(), CheckError> {
        self.flush().await?;
        self.write_disk(offset, bytes).await?;
        self.flush().await
    }

    /// Reads in advance the sources of copies that are overwritten themselves.
    pub(super) async fn keep_sources(&mut self) -> Result<(), CheckError> {
        let piece_bytes = self.piece_bytes();
        let changing: Vec<(u64, u64)> = self
            .overlay
            .range(0, u64::MAX)
            .filter_map(|(offset, piece)| match piece {
                Piece::Copy(from) if self.overlay.get(*from).is_some() => Some((offset, *from)),
                _ => None,
            })
            .collect();
        for (offset, from) in changing {
            let bytes = self.read_disk(from, piece_bytes as usize).await?;
            self.overlay.insert(offset, Piece::of(&bytes)?)?;
        }
        Ok(())
    }

    /// Returns the runs to write, in order.
    fn runs(&self, order: &Order<'_>) -> Result<Vec<Run>, CheckError> {
        let piece_bytes = self.piece_bytes();
        let sector = |offset: u64| offset / piece_bytes * piece_bytes;
        let last: BTreeMap<u64, u32> = order.orphans.iter().map(|&offset| sector(offset)).zip(0..).collect();
        let superblock = sector(OFFSET)..OFFSET + BYTES as u64;
        let stage = |offset: u64| match () {
            () if superblock.contains(&offset) => Stage::Superblock,
            () if order.journal.is_some_and(|journal| sector(journal) == offset) => Stage::Journal,
            () if order.new_blocks.has((offset / order.block_bytes) as u32) => Stage::New,
            () => last.get(&offset).map_or(Stage::InPlace, |&place| Stage::Orphan(u32::MAX - place)),
        };
        let mut runs: Vec<Run> = Vec::new();
        for offset in self.overlay.offsets() {
            let (stage, bytes) = (stage(offset), piece_bytes as usize);
            match runs.last_mut() {
                Some(run)
                    if run.stage == stage
                        && run.offset + run.bytes as u64 == offset
                        && run.offset / PAGE_BYTES == offset / PAGE_BYTES =>
                {
                    run.bytes += bytes;
                }
                _ => {
                    runs.try_reserve(1).map_err(|_| CheckError::NoMemory)?;
                    runs.push(Run { stage, offset, bytes });
                }
            }
        }
        runs.sort_by_key(|run| (run.stage, run.offset));
        Ok(runs)
    }

    /// Writes a run's new content, and keeps the old content in memory instead.
    async fn exchange(&mut self, run: &Run, held: Option<&Held>) -> Result<(), CheckError> {
        let before = self.read_disk(run.offset, run.bytes).await?;
        let mut after = self.read(run.offset, run.bytes).await?;
        if let Some(held) = held {
            let end = run.offset + run.bytes as u64;
            let (from, to) = (held.offset.max(run.offset), (held.offset + held.bytes.len() as u64).min(end));
            if from < to {
                let range = (from - run.offset) as usize..(to - run.offset) as usize;
                after[range.clone()].copy_from_slice(&before[range]);
            }
        }
        self.keep(run.offset, &before)?;
        self.write_disk(run.offset, &after).await
    }

    /// Keeps the content to restore on failure. Old content of copies from elsewhere on the disk is kept only as far as
    /// memory allows: it is in blocks that were free, or that a journal overwrites.
    fn keep(&mut self, offset: u64, before: &[u8]) -> Result<(), CheckError> {
        let piece_bytes = self.piece_bytes();
        let places = (offset..).step_by(piece_bytes as usize);
        for (at, bytes) in places.zip(before.chunks(piece_bytes as usize)) {
            let is_copy = matches!(self.overlay.get(at), Some(Piece::Copy(_)));
            let kept = Piece::of(bytes).and_then(|piece| self.overlay.insert(at, piece));
            if !is_copy {
                kept?;
            }
        }
        Ok(())
    }

    /// Restores the old contents of runs, the last one first.
    async fn undo(&mut self, runs: &[Run]) -> Result<(), CheckError> {
        let mut stage = None;
        for run in runs.iter().rev() {
            if stage.is_some_and(|stage| stage != run.stage) {
                self.flush().await?;
            }
            stage = Some(run.stage);
            let piece_bytes = self.piece_bytes();
            for at in (run.offset..run.offset + run.bytes as u64).step_by(piece_bytes as usize) {
                if let Some(Piece::Bytes(bytes)) = self.overlay.get(at).cloned() {
                    self.write_disk(at, &bytes).await?;
                }
            }
        }
        Ok(())
    }
}
