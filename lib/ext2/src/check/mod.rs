//! Checking and repairing an unmounted volume.
//!
//! Key items: [`check`], [`Mode`], [`Fault`], [`Finding`], [`Summary`]. The check runs in rounds, each in the same
//! order: superblock and descriptors, journal, orphan inodes, all inodes and their blocks, blocks with several owners,
//! folders, connectivity from the root, link counts, bitmaps and free counts. Repairs of a round may uncover other
//! faults, so rounds repeat until one finds nothing to repair; the last round therefore verifies the others.
//!
//! *All or nothing.* A round changes nothing on the disk, only an `overlay` in memory, through which the next round
//! reads. After the last round, everything is written: first to a log in free blocks (`redo`), so that the next check
//! completes a repair interrupted by a crash, then in place (`apply`); a disk that fails in between gets its old
//! contents back. A repair that would leave faults writes nothing at all ([`Mode::Preen`] leaves those whose repair
//! loses data). Without a repair, nothing is written.
//!
//! *Memory* is bounded by the volume's size: a bit for each block (five where blocks have several owners), five bytes
//! for each inode, sixteen for each folder, the descriptors, at most 16 MiB for the names of one folder, and about 2
//! MiB of the disk. [`memory_bytes`](CheckOptions::memory_bytes) limits it; the remainder is for changes: a changed
//! sector takes its size and a hundred bytes more, a copy of another sector only the hundred bytes. *Time* is bounded
//! by the number of inodes and blocks; nothing is recursive.
//!
//! Not here: volumes with features that ext2 does not have, which are refused by name.

mod apply;
mod attributes;
mod bits;
mod connect;
mod device;
mod entries;
mod error;
mod fault;
mod find;
mod finish;
mod folders;
mod groups;
mod index;
mod inodes;
mod journal;
mod links;
mod lost;
mod names;
mod node;
mod orphans;
mod overlay;
mod redo;
mod remap;
mod resize;
mod shared;
mod state;
mod superblock;
mod totals;
mod tree;

use core::fmt;

pub use device::{BUFFER_BYTES, BUFFERS};
pub use error::CheckError;
pub use fault::{Cost, Done, Fault, Finding};

use block_source::BlockSource;
use state::Checker;

/// Maximum rounds. Each repairs faults that the previous one uncovered.
const MAX_ROUNDS: u32 = 12;

/// Permitted repairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Read-only: faults are reported (`e2fsck -n`).
    Report,
    /// Safe repairs, which lose no named data (`e2fsck -p`).
    Preen,
    /// All repairs (`e2fsck -y`).
    Repair,
}

/// Options of a check.
#[derive(Clone, Copy, Debug)]
pub struct CheckOptions {
    /// Permitted repairs.
    pub mode: Mode,
    /// Maximum memory of the check, in bytes.
    pub memory_bytes: u64,
}

/// The outcome of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// No faults.
    Clean,
    /// Faults were found, and all are repaired.
    Repaired,
    /// Faults remain.
    Faulty,
}

/// Results of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The outcome.
    pub outcome: Outcome,
    /// Faults reported.
    pub faults: u64,
    /// Faults repaired.
    pub repaired: u64,
    /// Faults remaining.
    pub left: u64,
    /// Whether the volume was written. A repair that would leave faults writes and repairs nothing.
    pub written: bool,
    /// Inodes of the volume.
    pub inodes: u32,
    /// Inodes in use.
    pub used_inodes: u32,
    /// Folders among them.
    pub folders: u32,
    /// Block size in bytes.
    pub block_bytes: u32,
    /// Blocks of the volume.
    pub blocks: u32,
    /// Blocks in use.
    pub used_blocks: u32,
}

impl fmt::Display for Summary {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcome = match self.outcome {
            Outcome::Clean => "clean",
            Outcome::Repaired => "repaired",
            Outcome::Faulty => "faulty",
        };
        let Summary { used_inodes, inodes, folders, used_blocks, blocks, block_bytes, .. } = self;
        write!(formatter, "{outcome}: {} faults, {} repaired, {} left; ", self.faults, self.repaired, self.left)?;
        write!(formatter, "{used_inodes} of {inodes} inodes in use, {folders} of them folders, ")?;
        write!(formatter, "{used_blocks} of {blocks} blocks of {block_bytes} bytes")
    }
}

/// Checks the volume on a disk, and reports each fault when it is found and handled.
pub async fn check<S: BlockSource>(
    source: &S,
    options: &CheckOptions,
    report: &mut dyn FnMut(&Finding),
) -> Result<Summary, CheckError> {
    if options.mode != Mode::Report && source.is_read_only() {
        return Err(CheckError::ReadOnly);
    }
    let mut checker = Checker::open(source, options, report).await?;
    for round in 0..MAX_ROUNDS {
        checker.begin_round(round)?;
        checker.go_round().await?;
        if !checker.has_repaired_in_round() {
            break;
        }
    }
    checker.finish().await
}
