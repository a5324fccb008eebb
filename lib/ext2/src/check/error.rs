//! Errors that abort a check.

use core::fmt;

use crate::format::error::FormatError;
use crate::format::features::{COMPATIBLE, FeatureNames, READ_ONLY_COMPATIBLE};
use block_source::DiskError;

/// Reasons for aborting a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckError {
    /// Reading the disk failed at this byte offset.
    Read(u64, DiskError),
    /// Writing the disk failed at this byte offset.
    Write(u64, DiskError),
    /// The disk is read-only, but a repair is needed.
    ReadOnly,
    /// There is no supported volume.
    Volume(FormatError),
    /// The volume has features that the checker does not support: flags of
    /// [`READ_ONLY_COMPATIBLE`](crate::format::features::READ_ONLY_COMPATIBLE).
    Features(u32),
    /// As `Features`: flags of [`COMPATIBLE`](crate::format::features::COMPATIBLE).
    OtherFeatures(u32),
    /// The superblock is inconsistent in this number, and no backup has a better one.
    Superblock {
        /// Name of the field.
        field: &'static str,
        /// Its value on disk.
        says: u64,
    },
    /// There is no superblock, but the signature of other content.
    Foreign {
        /// Kind of the other content, with its article.
        kind: &'static str,
    },
    /// There is no superblock, and no proof that a backup belongs to the current content of the disk.
    Unproven {
        /// The block of the backup.
        backup: u64,
        /// Why it is not certain.
        reason: &'static str,
    },
    /// The check needs more memory than is allowed.
    MemoryLimit {
        /// Memory needed, in bytes.
        needed: u64,
        /// Memory allowed, in bytes.
        allowed: u64,
    },
    /// Out of memory.
    NoMemory,
    /// A repair would change more than fits in this many bytes of memory.
    TooManyChanges {
        /// Memory allowed for changes, in bytes.
        allowed: u64,
    },
    /// The disk failed while a repair was written, and again during the rollback.
    Unfinished {
        /// Number of runs of sectors that were changed.
        changes: u64,
    },
}

impl fmt::Display for CheckError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CheckError::Read(offset, error) => {
                write!(formatter, "the disk could not be read at byte {offset}: {error}")
            }
            CheckError::Write(offset, error) => {
                write!(formatter, "the disk could not be written at byte {offset}: {error}")
            }
            CheckError::ReadOnly => formatter.write_str("the disk cannot be written to; only look at it"),
            CheckError::Volume(error) => error.fmt(formatter),
            CheckError::Features(flags) => {
                formatter.write_str("the volume uses features that cannot be checked: ")?;
                FeatureNames::write(formatter, *flags, READ_ONLY_COMPATIBLE)
            }
            CheckError::OtherFeatures(flags) => {
                formatter.write_str("the volume uses features that cannot be checked: ")?;
                FeatureNames::write(formatter, *flags, COMPATIBLE)
            }
            CheckError::Superblock { field, says } => write!(
                formatter,
                "the volume cannot be repaired: {field} in the superblock is {says}, and no backup is better"
            ),
            CheckError::Foreign { kind } => {
                write!(formatter, "the disk holds {kind}, not an ext2 file system; nothing was changed")
            }
            CheckError::Unproven { backup, reason } => write!(
                formatter,
                "the superblock is gone, and the backup at block {backup} may be of an older volume: {reason}; \
                 nothing was changed; if you know that it is the right one, run e2fsck -b {backup} on Linux"
            ),
            CheckError::MemoryLimit { needed, allowed } => {
                write!(formatter, "to check this volume takes {needed} bytes of memory, but only {allowed} are allowed")
            }
            CheckError::TooManyChanges { allowed } => write!(
                formatter,
                "the repair would change more than {allowed} bytes of memory can hold, so nothing was written; \
                 run e2fsck -f on Linux, or copy the files to another disk"
            ),
            CheckError::Unfinished { changes } => write!(
                formatter,
                "the disk failed in the middle of the repair, and {changes} changes could not be taken back; \
                 the volume is marked as not clean, and the repair can be done again when the disk works"
            ),
            CheckError::NoMemory => formatter.write_str("no memory is left"),
        }
    }
}

impl core::error::Error for CheckError {}
