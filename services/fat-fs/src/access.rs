//! Folders as clients have them.

use alloc::rc::Rc;

use disk_source::DiskSource;
use fat::Folder;
use mount_permit::Permit;

/// A folder as a client has it.
pub(crate) struct Here {
    pub(crate) folder: Rc<Folder<DiskSource>>,
    pub(crate) permit: Permit,
}

/// A folder that requests begin at.
pub(crate) type Base = Rc<Here>;
