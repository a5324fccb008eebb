//! Hard links.

use task_sync::Mode;

use super::{MAX_NAMES, Namespace, check_name};
use crate::directory::change::{INSERT_BLOCKS, INSERT_NEW_BLOCKS};
use crate::error::Error;
use crate::format::directory::NewEntry;
use crate::format::inode::Kind;
use crate::inode::check_unprotected;
use crate::source::BlockSource;

impl<S: BlockSource> Namespace<S> {
    pub(crate) async fn link(&self, folder: u32, name: &[u8], target: u32) -> Result<(), Error> {
        self.admission.check_writable()?;
        check_name(name)?;
        let _namespace = self.lock().await;
        let folder_node = self.inodes.node(folder);
        let _content = folder_node.content.acquire(Mode::Exclusive).await;
        self.admission.check_writable()?;
        let parent = self.open_folder(folder).await?;
        let inode = self.inodes.get(target).await?;
        if inode.kind == Kind::Directory {
            return Err(Error::IsADirectory);
        }
        if inode.links == 0 {
            return Err(Error::NotFound);
        }
        check_unprotected(&inode)?;
        if self.directories.find(&parent, name).await?.is_some() {
            return Err(Error::AlreadyExists);
        }
        if inode.links >= MAX_NAMES {
            return Err(Error::TooManyNames);
        }
        let change = self.store.begin_for(INSERT_BLOCKS + 1, INSERT_NEW_BLOCKS).await?;
        let parent_place = self.inodes.fetch(&change, folder).await?;
        let place = self.inodes.fetch(&change, target).await?;
        let entry = NewEntry { inode: target, kind: inode.kind.entry_number(), name };
        let insertion = self.directories.plan_insertion(&change, &parent, &entry).await?;
        self.directories.insert_entry(&change, &parent_place, &insertion, &entry)?;
        let now = self.store.now_s();
        self.inodes.change(&change, &place, |inode| {
            inode.links += 1;
            inode.changed = now;
        })?;
        Ok(())
    }
}
