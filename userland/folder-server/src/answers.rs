//! Maps errors and nodes of the host to those of the contracts.

use contracts::directory::{NameError, NodeAttributes, NodeKind};
use contracts::file::FileError;
use file_server::AttributeChanges;
use nine_p::{Attributes, Changes, Entry, errno};

use crate::session::Error;

/// Unit of `Attributes::blocks` in bytes.
const BLOCK_BYTES: u64 = 512;

pub(crate) fn name_error(error: Error) -> NameError {
    match error {
        Error::Broken => NameError::DeviceError,
        Error::BadPath => NameError::BadPath,
        Error::LeadsOut => NameError::NotPermitted,
        Error::IntoItself => NameError::IntoItself,
        Error::TooManyLinks => NameError::TooManyLinks,
        Error::NotAFile | Error::NotSupported => NameError::NotSupported,
        Error::Exhausted => NameError::Exhausted,
        Error::Host(number) => match number {
            errno::ENOENT | errno::ESTALE => NameError::NotFound,
            errno::EACCES | errno::EPERM => NameError::NotPermitted,
            errno::EEXIST => NameError::AlreadyExists,
            errno::ENOTDIR => NameError::NotADirectory,
            errno::EISDIR => NameError::IsADirectory,
            errno::EINVAL | errno::ENAMETOOLONG => NameError::BadPath,
            errno::ENOSPC | errno::EDQUOT => NameError::NoSpace,
            errno::EROFS => NameError::ReadOnly,
            errno::ENOTEMPTY => NameError::NotEmpty,
            errno::EMLINK => NameError::TooManyNames,
            errno::ELOOP => NameError::TooManyLinks,
            errno::EXDEV | errno::EOPNOTSUPP => NameError::NotSupported,
            errno::ENFILE | errno::EMFILE | errno::ENOMEM => NameError::Exhausted,
            _ => NameError::DeviceError,
        },
    }
}

pub(crate) fn file_error(error: Error) -> FileError {
    match error {
        Error::Broken => FileError::DeviceError,
        Error::BadPath => FileError::BadPath,
        Error::LeadsOut => FileError::NotPermitted,
        Error::TooManyLinks => FileError::TooManyLinks,
        Error::NotAFile | Error::NotSupported | Error::IntoItself => FileError::NotAFile,
        Error::Exhausted => FileError::Exhausted,
        Error::Host(number) => match number {
            errno::ENOENT | errno::ESTALE => FileError::NotFound,
            errno::EACCES | errno::EPERM | errno::ETXTBSY => FileError::NotPermitted,
            errno::ENOTDIR => FileError::NotADirectory,
            errno::EISDIR => FileError::IsADirectory,
            errno::EOPNOTSUPP | errno::ENXIO => FileError::NotAFile,
            errno::EINVAL | errno::ENAMETOOLONG => FileError::BadPath,
            errno::ENOSPC | errno::EDQUOT => FileError::NoSpace,
            errno::EROFS => FileError::ReadOnly,
            errno::EFBIG => FileError::TooLarge,
            errno::ELOOP => FileError::TooManyLinks,
            errno::ENFILE | errno::EMFILE | errno::ENOMEM => FileError::Exhausted,
            _ => FileError::DeviceError,
        },
    }
}

/// Returns the node kind in a mode.
pub(crate) fn node_kind(mode: u32) -> NodeKind {
    match mode & Attributes::KIND {
        Attributes::DIRECTORY => NodeKind::Directory,
        Attributes::FILE => NodeKind::File,
        Attributes::LINK => NodeKind::Link,
        _ => NodeKind::Other,
    }
}

/// Returns the node kind in a directory entry, if it has one.
pub(crate) fn entry_kind(entry: &Entry<'_>) -> Option<NodeKind> {
    match entry.kind {
        Entry::UNKNOWN => None,
        Entry::DIRECTORY => Some(NodeKind::Directory),
        Entry::FILE => Some(NodeKind::File),
        Entry::LINK => Some(NodeKind::Link),
        _ => Some(NodeKind::Other),
    }
}

pub(crate) fn node_attributes(known: &Attributes) -> NodeAttributes {
    NodeAttributes {
        size_bytes: known.size,
        allocated_bytes: known.blocks.saturating_mul(BLOCK_BYTES),
        node: known.qid.path,
        modified_s: known.modified_s.cast_signed(),
        accessed_s: known.accessed_s.cast_signed(),
        changed_s: known.changed_s.cast_signed(),
        permissions: known.mode & 0o7777,
        links: u32::try_from(known.links).unwrap_or(u32::MAX),
        owner: known.owner,
        group: known.group,
    }
}

pub(crate) fn attribute_changes(changes: AttributeChanges) -> Changes {
    let valid = [
        (changes.permissions.is_some(), Changes::MODE),
        (changes.owner.is_some(), Changes::OWNER),
        (changes.group.is_some(), Changes::GROUP),
        (changes.modified_s.is_some(), Changes::MODIFIED | Changes::MODIFIED_SET),
        (changes.accessed_s.is_some(), Changes::ACCESSED | Changes::ACCESSED_SET),
    ];
    Changes {
        valid: valid.iter().filter(|(is_wanted, _)| *is_wanted).map(|(_, bits)| bits).sum(),
        mode: changes.permissions.unwrap_or_default(),
        owner: changes.owner.unwrap_or_default(),
        group: changes.group.unwrap_or_default(),
        modified_s: changes.modified_s.unwrap_or_default().cast_unsigned(),
        accessed_s: changes.accessed_s.unwrap_or_default().cast_unsigned(),
        ..Changes::default()
    }
}
