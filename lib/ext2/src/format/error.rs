//! Errors of the format: a volume that is not ext2, is not supported or is corrupt.

use core::fmt;

use super::features::{FeatureNames, JOURNAL_INCOMPATIBLE};

/// A structure of the file system, for errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Structure {
    /// The superblock.
    Superblock,
    /// Block bitmap of this group.
    BlockBitmap(u32),
    /// Inode bitmap of this group.
    InodeBitmap(u32),
    /// The journal.
    Journal,
    /// The descriptor of this block group.
    GroupDescriptor(u32),
    /// The inode with this number.
    Inode(u32),
    /// An indirect block of the inode with this number.
    IndirectBlock(u32),
    /// The entry at this byte offset of the folder with this inode number.
    DirectoryEntry(u32, u64),
    /// The extended attributes of the inode with this number.
    ExtendedAttributes(u32),
}

impl fmt::Display for Structure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Structure::Superblock => formatter.write_str("the superblock"),
            Structure::BlockBitmap(group) => write!(formatter, "the block bitmap of group {group}"),
            Structure::InodeBitmap(group) => write!(formatter, "the inode bitmap of group {group}"),
            Structure::Journal => formatter.write_str("the journal"),
            Structure::GroupDescriptor(group) => write!(formatter, "the descriptor of group {group}"),
            Structure::Inode(inode) => write!(formatter, "inode {inode}"),
            Structure::IndirectBlock(inode) => write!(formatter, "an indirect block of inode {inode}"),
            Structure::DirectoryEntry(inode, offset) => {
                write!(formatter, "the folder entry at byte {offset} of inode {inode}")
            }
            Structure::ExtendedAttributes(inode) => write!(formatter, "the extended attributes of inode {inode}"),
        }
    }
}

/// Kinds of corruption of a structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// A number outside the limits of the file system.
    OutOfRange {
        /// Name of the number.
        field: &'static str,
        /// Value on the disk.
        value: u64,
        /// Minimum.
        least: u64,
        /// Maximum.
        most: u64,
    },
    /// A number without a meaning.
    Meaningless {
        /// Name of the number.
        field: &'static str,
        /// Value on the disk.
        value: u64,
    },
    /// A required part is missing.
    Missing(&'static str),
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::OutOfRange { field, value, least, most } => {
                write!(formatter, "{field} is {value}, but must lie between {least} and {most}")
            }
            Problem::Meaningless { field, value } => write!(formatter, "{field} is {value:#x}, which has no meaning"),
            Problem::Missing(what) => write!(formatter, "{what} is missing"),
        }
    }
}

/// Metadata that is inconsistent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corruption {
    /// Location of the corruption.
    pub structure: Structure,
    /// Block of the volume that holds it.
    pub block: u64,
    /// Kind of the corruption.
    pub problem: Problem,
}

impl fmt::Display for Corruption {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "the file system is damaged: {} (block {}): {}; run e2fsck, or here `check --repair`, on the disk",
            self.structure, self.block, self.problem
        )
    }
}

/// Kinds of corruption of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JournalProblem {
    /// It is on another disk.
    External,
    /// Its inode is not one of a journal.
    Inode,
    /// Its superblock has this value instead of the magic number.
    Magic(u32),
    /// Its superblock is inconsistent in this field.
    Field(&'static str),
    /// It uses features that are not supported: its incompatible flags.
    Features(u32),
    /// One of its blocks refers to a block outside the volume.
    Target(u32),
}

impl fmt::Display for JournalProblem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JournalProblem::External => formatter.write_str("it is on another disk"),
            JournalProblem::Inode => formatter.write_str("its inode is damaged"),
            JournalProblem::Magic(found) => {
                write!(formatter, "its superblock begins with {found:#010x} instead of 0xc03b3998")
            }
            JournalProblem::Field(field) => write!(formatter, "{field} in its superblock makes no sense"),
            JournalProblem::Features(flags) => {
                formatter.write_str("it uses features that are not supported: ")?;
                FeatureNames::write(formatter, *flags, JOURNAL_INCOMPATIBLE)
            }
            JournalProblem::Target(block) => {
                write!(formatter, "it names block {block}, which the volume does not have")
            }
        }
    }
}

/// Violations of the format by a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormatError {
    /// The disk does not hold an ext2 file system, or its superblock was overwritten.
    NotExt2 {
        /// Value in place of the magic number.
        found: u16,
        /// Block number and block size (bytes) of a backup superblock, if one was found.
        backup: Option<(u64, u32)>,
    },
    /// The disk has this many bytes, too few for any file system.
    TooSmall(u64),
    /// The disk is smaller than the size in the superblock.
    Truncated {
        /// Size of the disk in bytes.
        disk_bytes: u64,
        /// Size of the file system in bytes.
        volume_bytes: u64,
    },
    /// The volume uses incompatible features that are not supported.
    UnsupportedFeatures(FeatureNames),
    /// The volume's format revision is newer than any known.
    UnsupportedRevision(u32),
    /// The volume's block size in bytes is not one of 1024, 2048 and 4096.
    UnsupportedBlockSize(u64),
    /// Metadata is damaged.
    Corrupt(Corruption),
    /// The journal needs recovery, which is impossible.
    Journal(JournalProblem),
}

impl FormatError {
    pub(crate) fn corrupt(structure: Structure, block: u64, problem: Problem) -> FormatError {
        FormatError::Corrupt(Corruption { structure, block, problem })
    }
}

impl fmt::Display for FormatError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FormatError::NotExt2 { found, backup: None } => write!(
                formatter,
                "this is not an ext2 disk: bytes 1080 and 1081 hold {found:#06x} instead of 0xef53; make one with mke2fs, or here with `format`"
            ),
            FormatError::NotExt2 { backup: Some((block, block_bytes)), .. } => write!(
                formatter,
                "the superblock of this ext2 disk is destroyed, but a backup is at block {block}; run e2fsck -b {block} -B {block_bytes} on the disk"
            ),
            FormatError::TooSmall(bytes) => {
                write!(
                    formatter,
                    "this is not an ext2 disk: it has only {bytes} bytes; make one with mke2fs, or here with `format`"
                )
            }
            FormatError::Truncated { disk_bytes, volume_bytes } => write!(
                formatter,
                "the disk is cut off: it has {disk_bytes} bytes, its file system needs {volume_bytes}; copy the image again"
            ),
            FormatError::UnsupportedFeatures(names) => write!(
                formatter,
                "the disk uses features that are not supported: {names}; copy its files to a disk made with mke2fs -t ext2"
            ),
            FormatError::UnsupportedRevision(revision) => write!(
                formatter,
                "the disk has format revision {revision}, only 0 and 1 are supported; copy its files to a disk made with mke2fs -t ext2"
            ),
            FormatError::UnsupportedBlockSize(bytes) => write!(
                formatter,
                "the disk has blocks of {bytes} bytes, only 1024, 2048 and 4096 are supported; copy its files to a disk made with mke2fs -b 4096"
            ),
            FormatError::Corrupt(corruption) => corruption.fmt(formatter),
            FormatError::Journal(problem) => {
                write!(
                    formatter,
                    "the journal of the disk cannot be replayed: {problem}; run e2fsck, or here `check --repair`, on the disk"
                )
            }
        }
    }
}

impl core::error::Error for FormatError {}
