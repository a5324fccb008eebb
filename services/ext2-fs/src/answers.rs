//! The library's errors and kinds in the words of the contracts.

use contracts::directory::{NameError, NodeAttributes, NodeChanges, NodeKind, NodeParts};
use contracts::file::{FileAttributes, FileError};
use contracts::file_system::FileSystemError;
use contracts::service_provider::StartError;
use ext2::{AttributeChanges, DiskError, Error, Inode, Kind};

pub(crate) fn start_error(error: &Error) -> StartError {
    match error {
        Error::NotExt2 { .. } | Error::TooSmall(_) => StartError::NotRecognised,
        Error::UnsupportedFeatures(_) | Error::UnsupportedRevision(_) | Error::UnsupportedBlockSize(_) => {
            StartError::NotSupported
        }
        Error::Read(_, DiskError::NoMemory) => StartError::Exhausted,
        Error::Read(..) => StartError::Missing,
        _ => StartError::Damaged,
    }
}

pub(crate) fn name_error(error: &Error) -> NameError {
    match error {
        Error::NotFound => NameError::NotFound,
        Error::NotADirectory => NameError::NotADirectory,
        Error::NotAFile | Error::IsADirectory => NameError::IsADirectory,
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

/// What a client asks to be changed. Times on the volume are seconds from 1970 to 2106.
pub(crate) fn attribute_changes(changes: &NodeChanges) -> AttributeChanges {
    let wanted = |part| changes.which.contains(part);
    let time = |seconds: i64| u32::try_from(seconds.max(0)).unwrap_or(u32::MAX);
    AttributeChanges {
        permissions: wanted(NodeParts::PERMISSIONS).then_some((changes.permissions & 0o7777) as u16),
        owner: wanted(NodeParts::OWNER).then_some(changes.owner),
        group: wanted(NodeParts::GROUP).then_some(changes.group),
        modified: wanted(NodeParts::MODIFIED).then(|| time(changes.modified_s)),
        accessed: wanted(NodeParts::ACCESSED).then(|| time(changes.accessed_s)),
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

pub(crate) fn file_attributes(inode: &Inode) -> FileAttributes {
    FileAttributes {
        size_bytes: inode.size,
        allocated_bytes: u64::from(inode.sectors) * SECTOR_BYTES,
        node: inode.number.into(),
        modified_s: inode.modified.into(),
        permissions: inode.permissions.into(),
        links: inode.links.into(),
    }
}
