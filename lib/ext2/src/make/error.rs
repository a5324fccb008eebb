//! Errors of formatting a disk.

use core::fmt;

use block_source::DiskError;

/// Errors of formatting a disk. Its content may be lost all the same for [`MakeError::Disk`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MakeError {
    /// The disk cannot be written to.
    ReadOnly,
    /// Unsupported block size in bytes.
    BlockSize(u32),
    /// Too many reserved blocks, in percent.
    Reserved {
        /// Requested amount.
        asked: u32,
        /// Maximum amount.
        most: u32,
    },
    /// This many inodes do not fit on the disk.
    Inodes(u32),
    /// The disk has no room for the metadata and a few files.
    TooSmall {
        /// Size of the disk in bytes.
        disk_bytes: u64,
        /// Minimum size in bytes of a volume with blocks of this size.
        min_bytes: u64,
    },
    /// The disk has more blocks of this size than the format can count or describe.
    TooLarge {
        /// Size of the disk in bytes.
        disk_bytes: u64,
        /// Block size in bytes.
        block_bytes: u32,
    },
    /// The disk could not be written at this byte.
    Disk(u64, DiskError),
}

impl fmt::Display for MakeError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MakeError::ReadOnly => formatter.write_str("the disk cannot be written to"),
            MakeError::BlockSize(bytes) => {
                write!(formatter, "blocks of {bytes} bytes are not supported; choose 1024, 2048 or 4096")
            }
            MakeError::Reserved { asked, most } => {
                write!(formatter, "{asked} parts in a hundred cannot be reserved; choose at most {most}")
            }
            MakeError::Inodes(asked) => {
                write!(formatter, "{asked} nodes do not fit on the disk; choose fewer, or let the number be chosen")
            }
            MakeError::TooSmall { disk_bytes, min_bytes } => {
                write!(formatter, "the disk is too small: it has {disk_bytes} bytes, a volume needs {min_bytes}")
            }
            MakeError::TooLarge { disk_bytes, block_bytes } => write!(
                formatter,
                "the disk is too large: its {disk_bytes} bytes are more than ext2 allows with blocks of {block_bytes} bytes"
            ),
            MakeError::Disk(offset, error) => {
                write!(formatter, "the disk could not be written at byte {offset}: {error}")
            }
        }
    }
}

impl core::error::Error for MakeError {}
