//! What can be wrong with a request, a disk or a volume.

use core::fmt;

use hadris_io::ErrorKind;

use crate::DiskError;

/// Why a volume did not do what it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The disk holds no FAT volume.
    NotRecognised,
    /// The volume is of a kind that is not served: blocks that are too large, say.
    NotSupported,
    /// The disk failed.
    Disk(DiskError),
    /// What is on the disk contradicts itself.
    Damaged(&'static str),
    /// Nothing has that name.
    NotFound,
    /// The name is taken.
    AlreadyExists,
    /// A part of the path is not a folder.
    NotADirectory,
    /// It is a folder.
    IsADirectory,
    /// The folder has names in it.
    NotEmpty,
    /// A folder cannot be moved into itself.
    IntoItself,
    /// FAT cannot hold such a name.
    BadName,
    /// That is not for clients: the root cannot be removed or renamed.
    NotPermitted,
    /// There is no room left, for content or for a name.
    NoSpace,
    /// A file of FAT has at most 4 GiB less one byte.
    TooLarge,
    /// The volume cannot be written to.
    ReadOnly,
    /// There is no memory left, or too much is open.
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
            // Without an error of the device: a request outside it, which only damage leads to.
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
            Error::NotADirectory => "a part of the path is not a folder",
            Error::IsADirectory => "it is a folder",
            Error::NotEmpty => "the folder has names in it",
            Error::IntoItself => "a folder cannot be moved into itself",
            Error::BadName => "FAT cannot hold that name",
            Error::NotPermitted => "the root stays as it is",
            Error::NoSpace => "the volume has no room left",
            Error::TooLarge => "a file of FAT cannot be that large",
            Error::ReadOnly => "the volume cannot be written to",
            Error::Exhausted => "there is no memory left, or too much is open",
            Error::ShutDown => "the volume was unmounted",
        };
        f.write_str(text)
    }
}
