//! Changes of directory entries: create, link, rename and remove.
//!
//! Each operation validates and loads everything first, in one change of the store, and then makes the change without
//! an await, so that none is ever half done.

mod create;
mod link;
mod remove;
mod rename;

use alloc::rc::Rc;

use task_sync::{Mutex, MutexGuard};

use crate::admission::Admission;
use crate::directory::Directories;
use crate::error::Error;
use crate::format::directory::LONGEST_NAME;
use crate::format::inode::{Inode, Kind, flag};
use crate::inode::InodeTable;
use crate::orphans::OrphanList;
use crate::source::BlockSource;
use crate::store::Store;
pub use create::{NewKind, NewNode};
pub(crate) use remove::RemovalKind;

/// Maximum links of an inode in Linux (`EXT2_LINK_MAX`). Each subdirectory links to its parent once.
pub(crate) const MAX_NAMES: u16 = 32_000;

/// Rejects names that cannot be created or removed.
fn check_name(name: &[u8]) -> Result<(), Error> {
    if name.is_empty() || name == b"." || name == b".." || name.iter().any(|&byte| byte == 0 || byte == b'/') {
        return Err(Error::BadName);
    }
    if name.len() > LONGEST_NAME { Err(Error::NameTooLong) } else { Ok(()) }
}

/// Owns the lock of the namespace. An operation that removes the last link of an inode returns its number; the caller
/// [evicts](crate::file_system::FileSystem::evict) it.
pub(crate) struct Namespace<S: BlockSource> {
    lock: Mutex<()>,
    store: Store<S>,
    admission: Rc<Admission<S>>,
    inodes: Rc<InodeTable<S>>,
    orphans: Rc<OrphanList<S>>,
    directories: Rc<Directories<S>>,
}

impl<S: BlockSource> Namespace<S> {
    pub(crate) fn new(
        store: Store<S>,
        admission: Rc<Admission<S>>,
        inodes: Rc<InodeTable<S>>,
        orphans: Rc<OrphanList<S>>,
        directories: Rc<Directories<S>>,
    ) -> Namespace<S> {
        Namespace { lock: Mutex::default(), store, admission, inodes, orphans, directories }
    }

    /// Waits for the lock of the namespace.
    pub(crate) async fn lock(&self) -> MutexGuard<'_, ()> {
        self.lock.lock().await
    }

    /// A directory in which entries may be changed.
    async fn open_folder(&self, number: u32) -> Result<Inode, Error> {
        let folder = self.inodes.get(number).await?;
        if folder.kind != Kind::Directory {
            return Err(Error::NotADirectory);
        }
        if folder.links == 0 {
            return Err(Error::NotFound);
        }
        if folder.flags & flag::IMMUTABLE != 0 { Err(Error::Protected) } else { Ok(folder) }
    }
}
