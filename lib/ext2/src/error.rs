//! What can go wrong, in words that a person can act on.

use core::fmt;

use crate::features::FeatureNames;

/// Why the source could not deliver bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// The device tried and failed; the number is the device's own code for it.
    Failed(u32),
    /// The device answered with fewer bytes than were asked for.
    Short,
    /// There is no device any more: its driver ended.
    Gone,
    /// There is no memory to read into.
    NoMemory,
}

impl fmt::Display for ReadError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Failed(code) => write!(formatter, "the device failed with code {code}"),
            ReadError::Short => formatter.write_str("the device gave fewer bytes than it has"),
            ReadError::Gone => formatter.write_str("the disk driver has ended"),
            ReadError::NoMemory => formatter.write_str("no memory is left to read into"),
        }
    }
}

/// A structure of the file system, as an error names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Structure {
    /// The superblock.
    Superblock,
    /// The descriptor of this block group.
    GroupDescriptor(u32),
    /// The inode with this number.
    Inode(u32),
    /// A block of block numbers of the inode with this number.
    IndirectBlock(u32),
    /// The entry at this byte offset of the folder with this inode number.
    DirectoryEntry(u32, u64),
}

impl fmt::Display for Structure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Structure::Superblock => formatter.write_str("the superblock"),
            Structure::GroupDescriptor(group) => write!(formatter, "the descriptor of group {group}"),
            Structure::Inode(inode) => write!(formatter, "inode {inode}"),
            Structure::IndirectBlock(inode) => write!(formatter, "an indirect block of inode {inode}"),
            Structure::DirectoryEntry(inode, offset) => {
                write!(formatter, "the folder entry at byte {offset} of inode {inode}")
            }
        }
    }
}

/// What is wrong with a structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// A number lies outside what the rest of the file system allows.
    OutOfRange {
        /// Which number.
        field: &'static str,
        /// What the disk says.
        value: u64,
        /// The least it may be.
        least: u64,
        /// The most it may be.
        most: u64,
    },
    /// A number has a value that means nothing here.
    Meaningless {
        /// Which number.
        field: &'static str,
        /// What the disk says.
        value: u64,
    },
    /// Something that has to be there is missing.
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

/// Metadata that contradicts itself or the rest of the file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corruption {
    /// Where it was found.
    pub structure: Structure,
    /// The block of the volume that holds it.
    pub block: u64,
    /// What is wrong with it.
    pub problem: Problem,
}

impl fmt::Display for Corruption {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "the file system is damaged: {} (block {}): {}; run e2fsck on the disk",
            self.structure, self.block, self.problem
        )
    }
}

/// Why an operation on a volume did not succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The disk does not hold an ext2 file system, or its superblock was overwritten.
    NotExt2 {
        /// What stands where the magic number should.
        found: u16,
        /// Block number and block size (bytes) of a backup superblock, if one was found.
        backup: Option<(u64, u32)>,
    },
    /// The disk has this many bytes, too few for any file system.
    TooSmall(u64),
    /// The disk is smaller than the file system says it is.
    Truncated {
        /// Bytes of the disk.
        disk_bytes: u64,
        /// Bytes of the file system.
        volume_bytes: u64,
    },
    /// The volume uses features without whose knowledge it cannot be read.
    UnsupportedFeatures(FeatureNames),
    /// The volume's format revision is newer than any known.
    UnsupportedRevision(u32),
    /// The volume's block size in bytes is not one of 1024, 2048 and 4096.
    UnsupportedBlockSize(u64),
    /// Metadata is damaged.
    Corrupt(Corruption),
    /// The disk could not be read at this byte offset.
    Read(u64, ReadError),
    /// Nothing has that name.
    NotFound,
    /// A part of the path that has more after it is not a folder, or a folder was expected.
    NotADirectory,
    /// A file was expected.
    NotAFile,
    /// The path leads through more symbolic links than are followed.
    TooManyLinks,
    /// The path, or a name in it, is longer than the format allows.
    NameTooLong,
}

impl Error {
    pub(crate) fn corrupt(structure: Structure, block: u64, problem: Problem) -> Error {
        Error::Corrupt(Corruption { structure, block, problem })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NotExt2 { found, backup: None } => write!(
                formatter,
                "this is not an ext2 disk: bytes 1080 and 1081 hold {found:#06x} instead of 0xef53; make one with mke2fs"
            ),
            Error::NotExt2 { backup: Some((block, block_bytes)), .. } => write!(
                formatter,
                "the superblock of this ext2 disk is destroyed, but a backup is at block {block}; run e2fsck -b {block} -B {block_bytes} on the disk"
            ),
            Error::TooSmall(bytes) => {
                write!(formatter, "this is not an ext2 disk: it has only {bytes} bytes; make one with mke2fs")
            }
            Error::Truncated { disk_bytes, volume_bytes } => write!(
                formatter,
                "the disk is cut off: it has {disk_bytes} bytes, its file system needs {volume_bytes}; copy the image again"
            ),
            Error::UnsupportedFeatures(names) => write!(
                formatter,
                "the disk uses features that are not supported: {names}; copy its files to a disk made with mke2fs -t ext2"
            ),
            Error::UnsupportedRevision(revision) => write!(
                formatter,
                "the disk has format revision {revision}, only 0 and 1 are supported; copy its files to a disk made with mke2fs -t ext2"
            ),
            Error::UnsupportedBlockSize(bytes) => write!(
                formatter,
                "the disk has blocks of {bytes} bytes, only 1024, 2048 and 4096 are supported; copy its files to a disk made with mke2fs -b 4096"
            ),
            Error::Corrupt(corruption) => corruption.fmt(formatter),
            Error::Read(offset, error) => write!(formatter, "the disk could not be read at byte {offset}: {error}"),
            Error::NotFound => formatter.write_str("no such file or folder"),
            Error::NotADirectory => formatter.write_str("not a folder"),
            Error::NotAFile => formatter.write_str("not a file"),
            Error::TooManyLinks => {
                write!(formatter, "the path leads through more than {} symbolic links", crate::LINK_LIMIT)
            }
            Error::NameTooLong => formatter.write_str("the name is too long"),
        }
    }
}

impl core::error::Error for Error {}
