//! What changes a volume: each operation checks and loads everything first, in one change of the store, and then
//! makes the change without waiting, so that none is ever half done.

mod attributes;
mod create;
mod extended_attributes;
mod link;
pub(crate) mod orphans;
mod release;
mod remove;
mod rename;
mod size;
mod write;

pub use attributes::AttributeChanges;
pub use create::{NewKind, NewNode};
pub use write::Partial;
pub(crate) use write::Position;

use crate::error::Error;
use crate::source::BlockSource;
use crate::volume::Core;
use crate::wire::directory::LONGEST_NAME;
use crate::wire::inode::{Inode, Kind, flag};

/// The most names that Linux lets an inode have. Each folder names its parent once.
pub(crate) const MAX_NAMES: u16 = 32_000;

/// Refuses what cannot be a new name, or one that is taken out.
fn check_name(name: &[u8]) -> Result<(), Error> {
    if name.is_empty() || name == b"." || name == b".." || name.iter().any(|&byte| byte == 0 || byte == b'/') {
        return Err(Error::BadName);
    }
    if name.len() > LONGEST_NAME { Err(Error::NameTooLong) } else { Ok(()) }
}

/// Refuses to change or take out what is marked as not to be changed.
fn check_unprotected(inode: &Inode) -> Result<(), Error> {
    if inode.flags & (flag::IMMUTABLE | flag::APPEND_ONLY) != 0 { Err(Error::Protected) } else { Ok(()) }
}

impl<S: BlockSource> Core<S> {
    /// A folder in which names may be made.
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
