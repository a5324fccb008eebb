//! Errors of requests, disks and volumes.

use core::fmt;

use hadris_io::ErrorKind;

use crate::DiskError;

/// Why an operation on a volume failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// Not a FAT volume.
    NotRecognised,
    /// An unsupported variant of FAT, for instance with clusters that are too large.
    NotSupported,
    /// The disk failed.
    Disk(DiskError),
    /// The on-disk structures are inconsistent.
    Damaged(&'static str),
    /// No such file or folder.
    NotFound,
    /// The name already exists.
    AlreadyExists,
    /// A component of the path is not a folder.
    NotADirectory,
    /// It is a folder.
    IsADirectory,
    /// The folder is not empty.
    NotEmpty,
    /// A folder cannot be moved into itself.
    IntoItself,
    /// Not a valid FAT name.
    BadName,
    /// Not permitted to clients: the root cannot be removed or renamed.
    NotPermitted,
    /// No space left, for content or for a directory entry.
    NoSpace,
    /// Beyond FAT's maximum file size of 4 GiB less one byte.
    TooLarge,
    /// The volume is read-only.
    ReadOnly,
    /// Out of memory, or too many open files.
    Exhausted,
    /// The volume was unmounted.
    ShutDown,
}

impl From<DiskError> for Error {
    fn from(error: DiskError) -> Error {
        match error {
            DiskError::ReadOnly => Error::ReadOnly,
            DiskError::NoMemory => Error::Exhausted,
            other => Error::Disk(other),
        }
    }
}

impl From<hadris_io::Error<DiskError>> for Error {
    fn from(error: hadris_io::Error<DiskError>) -> Error {
        if let Some(disk) = error.device_error() {
            return Error::from(*disk);
        }
        match error.kind() {
            // Without a device error it is an access beyond the disk, which only damage causes.
            ErrorKind::Io => Error::Damaged(error.message()),
            ErrorKind::NotRecognized => Error::NotRecognised,
            ErrorKind::Corrupt => Error::Damaged(error.message()),
            ErrorKind::NotFound | ErrorKind::InvalidHandle => Error::NotFound,
            ErrorKind::AlreadyExists | ErrorKind::Busy => Error::AlreadyExists,
            ErrorKind::NotADirectory => Error::NotADirectory,
            ErrorKind::IsADirectory | ErrorKind::Symlink => Error::IsADirectory,
            ErrorKind::DirectoryNotEmpty => Error::NotEmpty,
            ErrorKind::NoSpace => Error::NoSpace,
            ErrorKind::ReadOnly => Error::ReadOnly,
            ErrorKind::InvalidInput | ErrorKind::NameTooLong => Error::BadName,
            ErrorKind::Unsupported => Error::NotSupported,
            ErrorKind::FileTooLarge => Error::TooLarge,
            _ => Error::Exhausted,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Error::NotRecognised => "it holds no FAT volume",
            Error::NotSupported => "this kind of FAT volume is not supported",
            Error::Disk(error) => return error.fmt(f),
            Error::Damaged(what) => return write!(f, "the volume is damaged: {what}"),
            Error::NotFound => "not found",
            Error::AlreadyExists => "the name is taken",
            Error::NotADirectory => "a component of the path is not a folder",
            Error::IsADirectory => "it is a folder",
            Error::NotEmpty => "the folder is not empty",
            Error::IntoItself => "a folder cannot be moved into itself",
            Error::BadName => "the name is not a valid FAT name",
            Error::NotPermitted => "the root stays as it is",
            Error::NoSpace => "no space left on the volume",
            Error::TooLarge => "the file would exceed FAT's maximum size",
            Error::ReadOnly => "the volume is read-only",
            Error::Exhausted => "out of memory, or too many open files",
            Error::ShutDown => "the volume was unmounted",
        };
        f.write_str(text)
    }
}
