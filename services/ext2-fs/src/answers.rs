//! Maps errors and inodes of the library `ext2` to those of the contracts.

use contracts::directory::{NameError, NodeAttributes, NodeKind};
use contracts::file::FileError;
use contracts::file_system::FileSystemError;
use contracts::service_provider::StartError;
use ext2::{DiskError, Error, FormatError, Inode, Kind};
use file_server::AttributeChanges;

pub(crate) fn start_error(error: &Error) -> StartError {
    match error {
        Error::Format(FormatError::NotExt2 { .. } | FormatError::TooSmall(_)) => StartError::NotRecognised,
        Error::Format(
            FormatError::UnsupportedFeatures(_)
            | FormatError::UnsupportedRevision(_)
            | FormatError::UnsupportedBlockSize(_),
        ) => StartError::NotSupported,
        Error::Read(_, DiskError::NoMemory) => StartError::Exhausted,
        Error::Read(..) => StartError::Missing,
        _ => StartError::Damaged,
    }
}

pub(crate) fn name_error(error: &Error) -> NameError {
    match error {
        Error::NotFound => NameError::NotFound,
        Error::NotADirectory => NameError::NotADirectory,
        Error::IsADirectory => NameError::IsADirectory,
        Error::NotAFile => NameError::NotSupported,
        Error::TooManyLinks => NameError::TooManyLinks,
        Error::NameTooLong | Error::BadName => NameError::BadPath,
        Error::AlreadyExists => NameError::AlreadyExists,
        Error::NotEmpty => NameError::NotEmpty,
        Error::IntoItself => NameError::IntoItself,
        Error::TooManyNames => NameError::TooManyNames,
        Error::Protected => NameError::NotPermitted,
        Error::ReadOnly(_) => NameError::ReadOnly,
        Error::NoSpace | Error::NoInodes | Error::TooLarge => NameError::NoSpace,
        Error::ShutDown | Error::Read(_, DiskError::Gone) | Error::Write(_, DiskError::Gone) => NameError::Unavailable,
        Error::Read(_, DiskError::NoMemory) | Error::Write(_, DiskError::NoMemory) => NameError::Exhausted,
        Error::Read(..) | Error::Write(..) => NameError::DeviceError,
        _ => NameError::Damaged,
    }
}

pub(crate) fn file_error(error: &Error) -> FileError {
    match error {
        Error::NotFound => FileError::NotFound,
        Error::NotADirectory => FileError::NotADirectory,
        Error::IsADirectory => FileError::IsADirectory,
        Error::NotAFile => FileError::NotAFile,
        Error::TooManyLinks => FileError::TooManyLinks,
        Error::NameTooLong | Error::BadName => FileError::BadPath,
        Error::Protected => FileError::NotPermitted,
        Error::ReadOnly(_) => FileError::ReadOnly,
        Error::NoSpace | Error::NoInodes => FileError::NoSpace,
        Error::TooLarge => FileError::TooLarge,
        Error::ShutDown | Error::Read(_, DiskError::Gone) | Error::Write(_, DiskError::Gone) => FileError::Unavailable,
        Error::Read(_, DiskError::NoMemory) | Error::Write(_, DiskError::NoMemory) => FileError::Exhausted,
        Error::Read(..) | Error::Write(..) => FileError::DeviceError,
        _ => FileError::Damaged,
    }
}

pub(crate) fn file_system_error(error: &Error) -> FileSystemError {
    match error {
        Error::NoSpace | Error::NoInodes => FileSystemError::NoSpace,
        Error::ShutDown | Error::Read(_, DiskError::Gone) | Error::Write(_, DiskError::Gone) => {
            FileSystemError::Unavailable
        }
        Error::Read(_, DiskError::NoMemory) | Error::Write(_, DiskError::NoMemory) => FileSystemError::Exhausted,
        Error::Read(..) | Error::Write(..) | Error::ReadOnly(_) => FileSystemError::DeviceError,
        _ => FileSystemError::Damaged,
    }
}

/// Maps attribute changes; times outside 1970 to 2106 are clamped by the library.
pub(crate) fn attribute_changes(changes: AttributeChanges) -> ext2::AttributeChanges {
    let time = |seconds: i64| u32::try_from(seconds.max(0)).unwrap_or(u32::MAX);
    ext2::AttributeChanges {
        // The low twelve bits.
        permissions: changes.permissions.map(|permissions| permissions as u16),
        owner: changes.owner,
        group: changes.group,
        modified: changes.modified_s.map(time),
        accessed: changes.accessed_s.map(time),
    }
}

pub(crate) fn node_kind(kind: Kind) -> NodeKind {
    match kind {
        Kind::Directory => NodeKind::Directory,
        Kind::File => NodeKind::File,
        Kind::SymbolicLink => NodeKind::Link,
        Kind::CharacterDevice | Kind::BlockDevice | Kind::Fifo | Kind::Socket => NodeKind::Other,
    }
}

/// Bytes in the unit of [`Inode::sectors`].
const SECTOR_BYTES: u64 = 512;

pub(crate) fn node_attributes(inode: &Inode) -> NodeAttributes {
    NodeAttributes {
        size_bytes: inode.size,
        allocated_bytes: u64::from(inode.sectors) * SECTOR_BYTES,
        node: inode.number.into(),
        modified_s: inode.modified.into(),
        accessed_s: inode.accessed.into(),
        changed_s: inode.changed.into(),
        permissions: inode.permissions.into(),
        links: inode.links.into(),
        owner: inode.owner,
        group: inode.group,
    }
}
