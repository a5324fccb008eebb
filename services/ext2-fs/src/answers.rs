//! The library's errors and kinds in the words of the contracts.

use contracts::directory::{NameError, NodeAttributes, NodeKind};
use contracts::file::{FileAttributes, FileError};
use contracts::service_provider::StartError;
use ext2::{DiskError, Error, Inode, Kind};

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
        Error::NotAFile => NameError::IsADirectory,
        Error::TooManyLinks => NameError::TooManyLinks,
        Error::NameTooLong => NameError::BadPath,
        Error::Read(_, DiskError::Gone) => NameError::Unavailable,
        Error::Read(_, DiskError::NoMemory) => NameError::Exhausted,
        Error::Read(..) => NameError::DeviceError,
        _ => NameError::Damaged,
    }
}

pub(crate) fn file_error(error: &Error) -> FileError {
    match error {
        Error::NotFound => FileError::NotFound,
        Error::NotADirectory => FileError::NotADirectory,
        Error::NotAFile => FileError::NotAFile,
        Error::TooManyLinks => FileError::TooManyLinks,
        Error::NameTooLong => FileError::BadPath,
        Error::Read(_, DiskError::Gone) => FileError::Unavailable,
        Error::Read(_, DiskError::NoMemory) => FileError::Exhausted,
        Error::Read(..) => FileError::DeviceError,
        _ => FileError::Damaged,
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
