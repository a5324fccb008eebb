//! Errors of a mounted volume, with messages that suggest a remedy.

use core::fmt;

use crate::format::error::{FormatError, JournalProblem, Problem, Structure};
use crate::format::features::{FeatureNames, READ_ONLY_COMPATIBLE};

pub use block_source::DiskError;

/// Reasons for a volume to be read-only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadOnlyReason {
    /// It was mounted read-only.
    Asked,
    /// The disk is read-only.
    Disk,
    /// It uses unsupported features, with which it can be read but not written: flags of
    /// [`READ_ONLY_COMPATIBLE`](crate::READ_ONLY_COMPATIBLE).
    Features(u32),
    /// It was not cleanly unmounted and has no journal to recover from.
    NotClean,
    /// Its superblock records errors.
    Faulty,
    /// Its journal is unusable.
    Journal(JournalProblem),
    /// It has more block groups than are kept in memory.
    TooManyGroups,
    /// Metadata could not be written at this byte offset.
    WriteFailed(u64, DiskError),
    /// The disk failed to make writes durable.
    FlushFailed(DiskError),
    /// One change was larger than the journal.
    TooLarge,
}

impl fmt::Display for ReadOnlyReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadOnlyReason::Asked => formatter.write_str("it was mounted to be read only"),
            ReadOnlyReason::Disk => formatter.write_str("the disk refuses to be written"),
            ReadOnlyReason::Features(flags) => {
                write!(formatter, "it uses features that are read but not written: ")?;
                FeatureNames::write(formatter, *flags, READ_ONLY_COMPATIBLE)
            }
            ReadOnlyReason::NotClean => {
                formatter.write_str("it was not unmounted when it was last in use; check it first")
            }
            ReadOnlyReason::Faulty => formatter.write_str("errors were found on it before; check it first"),
            ReadOnlyReason::Journal(problem) => write!(formatter, "its journal cannot be used: {problem}"),
            ReadOnlyReason::TooManyGroups => formatter.write_str("it has too many block groups"),
            ReadOnlyReason::WriteFailed(offset, error) => {
                write!(formatter, "metadata could not be written at byte {offset}: {error}")
            }
            ReadOnlyReason::FlushFailed(error) => write!(formatter, "the disk could not be flushed: {error}"),
            ReadOnlyReason::TooLarge => formatter.write_str("a change was larger than its journal"),
        }
    }
}

/// Errors of operations on a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The volume does not conform to the format.
    Format(FormatError),
    /// The disk could not be read at this byte offset.
    Read(u64, DiskError),
    /// The disk could not be written at this byte offset.
    Write(u64, DiskError),
    /// The disk failed to make writes durable.
    Flush(DiskError),
    /// The volume is read-only, for this reason.
    ReadOnly(ReadOnlyReason),
    /// The volume was unmounted.
    ShutDown,
    /// No block is free, apart from reserved ones.
    NoSpace,
    /// No inode is free.
    NoInodes,
    /// The name exists.
    AlreadyExists,
    /// The folder is not empty.
    NotEmpty,
    /// A folder, where another kind was expected.
    IsADirectory,
    /// A folder cannot be moved into itself or below itself.
    IntoItself,
    /// The node has the maximum number of links.
    TooManyNames,
    /// The file would exceed the maximum size.
    TooLarge,
    /// The name is empty, `.` or `..`, or contains a zero or a slash.
    BadName,
    /// The node is immutable or append-only (`chattr +i`, `+a`).
    Protected,
    /// No such name.
    NotFound,
    /// A path component before the last is not a folder, or a folder was expected.
    NotADirectory,
    /// A file was expected.
    NotAFile,
    /// Too many symbolic links on the path.
    TooManyLinks,
    /// The path, or a name in it, exceeds the limit.
    NameTooLong,
}

impl From<FormatError> for Error {
    fn from(error: FormatError) -> Error {
        Error::Format(error)
    }
}

impl Error {
    pub(crate) fn corrupt(structure: Structure, block: u64, problem: Problem) -> Error {
        FormatError::corrupt(structure, block, problem).into()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Format(error) => error.fmt(formatter),
            Error::Read(offset, error) => write!(formatter, "the disk could not be read at byte {offset}: {error}"),
            Error::Write(offset, error) => write!(formatter, "the disk could not be written at byte {offset}: {error}"),
            Error::Flush(error) => write!(formatter, "the disk could not be flushed: {error}"),
            Error::ReadOnly(reason) => write!(formatter, "the volume is read only: {reason}"),
            Error::ShutDown => formatter.write_str("the volume was unmounted"),
            Error::NoSpace => formatter.write_str("the volume is full"),
            Error::NoInodes => formatter.write_str("the volume has no room for another file"),
            Error::AlreadyExists => formatter.write_str("the name is taken"),
            Error::NotEmpty => formatter.write_str("the folder is not empty"),
            Error::IsADirectory => formatter.write_str("it is a folder"),
            Error::IntoItself => formatter.write_str("a folder cannot be moved into itself"),
            Error::TooManyNames => formatter.write_str("it has as many names as ext2 allows"),
            Error::TooLarge => formatter.write_str("the file would be larger than ext2 allows"),
            Error::BadName => formatter.write_str("that cannot be a name"),
            Error::Protected => formatter.write_str("it is marked as not to be changed; remove the mark with chattr"),
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
