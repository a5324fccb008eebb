//! Changing what is known of a node.

use crate::error::Error;
use crate::namespace::check_unprotected;
use crate::source::BlockSource;
use crate::volume::Volume;

/// What to change; the rest stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AttributeChanges {
    /// The twelve permission bits.
    pub permissions: Option<u16>,
    /// The owning user's number.
    pub owner: Option<u32>,
    /// The owning group's number.
    pub group: Option<u32>,
    /// Seconds since 1970 of the last change of the content.
    pub modified: Option<u32>,
    /// Seconds since 1970 of the last access.
    pub accessed: Option<u32>,
}

impl<S: BlockSource> Volume<S> {
    /// Changes what is known of a node.
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
        // It may have gone in the meantime.
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
