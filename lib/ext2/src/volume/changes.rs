//! Requests of a volume that change names and inodes.

use super::Volume;
use crate::error::Error;
use crate::format::inode::Inode;
use crate::inode::check_unprotected;
use crate::namespace::{NewNode, RemovalKind};
use crate::open_file::OpenFile;
use crate::source::BlockSource;

/// Attributes to change; `None` keeps one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AttributeChanges {
    /// Permission bits (12).
    pub permissions: Option<u16>,
    /// User ID of the owner.
    pub owner: Option<u32>,
    /// Group ID of the owner.
    pub group: Option<u32>,
    /// Seconds since 1970 of the last change of the content.
    pub modified: Option<u32>,
    /// Seconds since 1970 of the last access.
    pub accessed: Option<u32>,
}

impl<S: BlockSource> Volume<S> {
    /// Creates a node; [`Error::AlreadyExists`] if the directory has the name.
    pub async fn create(&self, folder: u32, name: &[u8], node: NewNode<'_>) -> Result<Inode, Error> {
        Ok(self.0.namespace.create(folder, name, &node).await?.0)
    }

    /// Creates a node and opens it, before another task can remove it.
    pub async fn create_open(&self, folder: u32, name: &[u8], node: NewNode<'_>) -> Result<OpenFile<S>, Error> {
        let (_, node) = self.0.namespace.create(folder, name, &node).await?;
        Ok(OpenFile::new(self.0.clone(), node))
    }

    /// Creates a hard link to anything but a directory.
    pub async fn link(&self, folder: u32, name: &[u8], target: u32) -> Result<(), Error> {
        self.0.namespace.link(folder, name, target).await
    }

    /// Renames an entry. An existing target is replaced: a directory must be empty, and is replaced only by a
    /// directory. Two links of the same inode are left unchanged.
    pub async fn rename(
        &self,
        from_folder: u32,
        from_name: &[u8],
        to_folder: u32,
        to_name: &[u8],
    ) -> Result<(), Error> {
        let namespace = &self.0.namespace;
        if let Some(number) = namespace.rename((from_folder, from_name), (to_folder, to_name)).await? {
            // The entry is replaced. If the eviction fails, the next mount repeats it.
            let _ = self.0.evict(number).await;
        }
        Ok(())
    }

    /// Removes a link of anything but a directory. The last link frees the inode once it is not open.
    pub async fn unlink(&self, folder: u32, name: &[u8]) -> Result<(), Error> {
        self.remove(folder, name, RemovalKind::NonDirectory).await
    }

    /// Removes an empty directory.
    pub async fn remove_directory(&self, folder: u32, name: &[u8]) -> Result<(), Error> {
        self.remove(folder, name, RemovalKind::Directory).await
    }

    async fn remove(&self, folder: u32, name: &[u8], what: RemovalKind) -> Result<(), Error> {
        if let Some(number) = self.0.namespace.remove(folder, name, what).await? {
            // The entry is removed. If the eviction fails, the next mount repeats it.
            let _ = self.0.evict(number).await;
        }
        Ok(())
    }

    /// Changes attributes of an inode.
    pub async fn set_attributes(&self, number: u32, changes: AttributeChanges) -> Result<(), Error> {
        let parts = &*self.0;
        parts.admission.check_writable()?;
        let inode = parts.inodes.get(number).await?;
        check_unprotected(&inode)?;
        if changes == AttributeChanges::default() {
            return Ok(());
        }
        let change = parts.store.begin(1).await?;
        let place = parts.inodes.fetch(&change, number).await?;
        // It may have been freed meanwhile.
        let inode = parts.inodes.get(number).await?;
        check_unprotected(&inode)?;
        let now = parts.store.now_s();
        parts.inodes.change(&change, &place, |inode| {
            inode.permissions = changes.permissions.map_or(inode.permissions, |permissions| permissions & 0o7777);
            inode.owner = changes.owner.unwrap_or(inode.owner);
            inode.group = changes.group.unwrap_or(inode.group);
            inode.modified = changes.modified.unwrap_or(inode.modified);
            inode.accessed = changes.accessed.unwrap_or(inode.accessed);
            inode.changed = now;
        })?;
        Ok(())
    }
}
