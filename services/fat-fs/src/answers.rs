//! Maps errors and nodes of the library `fat` to those of the contracts.

use contracts::directory::{NameError, NodeAttributes, NodeKind};
use contracts::file::FileError;
use contracts::file_system::FileSystemError;
use contracts::service_provider::StartError;
use fat::{DiskError, Error, Kind, Node};

pub(crate) fn start_error(error: Error) -> StartError {
    match error {
        Error::NotRecognised => StartError::NotRecognised,
        Error::NotSupported => StartError::NotSupported,
        Error::Exhausted => StartError::Exhausted,
        Error::Disk(_) | Error::ReadOnly => StartError::Missing,
        _ => StartError::Damaged,
    }
}

pub(crate) fn name_error(error: Error) -> NameError {
    match error {
        Error::NotRecognised | Error::Damaged(_) => NameError::Damaged,
        Error::Disk(DiskError::Gone) | Error::ShutDown => NameError::Unavailable,
        Error::Disk(_) => NameError::DeviceError,
        Error::NotFound => NameError::NotFound,
        Error::AlreadyExists => NameError::AlreadyExists,
        Error::NotADirectory => NameError::NotADirectory,
        Error::IsADirectory => NameError::IsADirectory,
        Error::NotEmpty => NameError::NotEmpty,
        Error::IntoItself => NameError::IntoItself,
        Error::BadName => NameError::BadPath,
        Error::NotPermitted => NameError::NotPermitted,
        Error::NoSpace | Error::TooLarge => NameError::NoSpace,
        Error::ReadOnly => NameError::ReadOnly,
        Error::Exhausted => NameError::Exhausted,
        Error::NotSupported => NameError::NotSupported,
    }
}

pub(crate) fn file_error(error: Error) -> FileError {
    match error {
        Error::NotRecognised | Error::Damaged(_) | Error::NotSupported => FileError::Damaged,
        Error::Disk(DiskError::Gone) | Error::ShutDown => FileError::Unavailable,
        Error::Disk(_) => FileError::DeviceError,
        Error::NotFound | Error::AlreadyExists | Error::NotEmpty | Error::IntoItself => FileError::NotFound,
        Error::NotADirectory => FileError::NotADirectory,
        Error::IsADirectory => FileError::IsADirectory,
        Error::BadName => FileError::BadPath,
        Error::NotPermitted => FileError::NotPermitted,
        Error::NoSpace => FileError::NoSpace,
        Error::TooLarge => FileError::TooLarge,
        Error::ReadOnly => FileError::ReadOnly,
        Error::Exhausted => FileError::Exhausted,
    }
}

pub(crate) fn file_system_error(error: Error) -> FileSystemError {
    match error {
        Error::Disk(DiskError::Gone) | Error::ShutDown => FileSystemError::Unavailable,
        Error::Disk(_) | Error::ReadOnly => FileSystemError::DeviceError,
        Error::NoSpace => FileSystemError::NoSpace,
        Error::Exhausted => FileSystemError::Exhausted,
        _ => FileSystemError::Damaged,
    }
}

pub(crate) fn node_kind(kind: Kind) -> NodeKind {
    match kind {
        Kind::Directory => NodeKind::Directory,
        Kind::File => NodeKind::File,
    }
}

pub(crate) fn node_attributes(node: &Node) -> NodeAttributes {
    NodeAttributes {
        size_bytes: node.size_bytes,
        allocated_bytes: node.allocated_bytes,
        node: node.number,
        modified_s: node.modified_s,
        accessed_s: node.accessed_s,
        // FAT does not store a change time.
        changed_s: node.modified_s,
        permissions: node.permissions,
        links: 1,
        owner: 0,
        group: 0,
    }
}
