//! Requests of a volume for extended attributes.

use alloc::vec::Vec;

use task_sync::Mode;

use super::Volume;
use crate::error::Error;
use crate::format::attributes::{ExtendedAttribute, LONGEST_NAME};
use crate::source::BlockSource;

impl<S: BlockSource> Volume<S> {
    /// Returns whether any node read since the mount had extended attributes. While this is false, no node that a path
    /// led to or through has any.
    pub fn has_seen_extended_attributes(&self) -> bool {
        self.0.inodes.has_seen_attributes()
    }

    /// All extended attributes of a node.
    pub async fn extended_attributes(&self, number: u32) -> Result<Vec<ExtendedAttribute>, Error> {
        self.0.admission.check_mounted()?;
        let _attributes = self.0.attributes.lock(Mode::Shared).await;
        let inode = self.0.inodes.get(number).await?;
        let mut all = self.0.attributes.inline_attributes(&inode).await?;
        if let Some(held) = self.0.attributes.held_attributes(&inode).await? {
            all.extend(held.attributes);
        }
        Ok(all)
    }

    /// Returns the value of a node's extended attribute with this name in this
    /// [namespace](crate::format::attributes::namespace), if it has one.
    pub async fn extended_attribute(&self, number: u32, namespace: u8, name: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let all = self.extended_attributes(number).await?;
        Ok(all.into_iter().find(|one| one.namespace == namespace && one.name == name).map(|one| one.value))
    }

    /// Sets or replaces an extended attribute of a file or folder. Its name has 1 to 255 bytes, none of them zero. All
    /// those of a node must fit into one block, else the error is [`Error::NoSpace`].
    pub async fn set_extended_attribute(&self, number: u32, new: ExtendedAttribute) -> Result<(), Error> {
        if new.namespace == 0 || new.name.is_empty() || new.name.contains(&0) {
            return Err(Error::BadName);
        }
        if new.name.len() > LONGEST_NAME {
            return Err(Error::NameTooLong);
        }
        let (namespace, name) = (new.namespace, new.name.clone());
        self.0.attributes.change_attributes(number, namespace, &name, Some(new)).await
    }

    /// Removes an extended attribute; [`Error::NotFound`] if there is none of this name.
    pub async fn remove_extended_attribute(&self, number: u32, namespace: u8, name: &[u8]) -> Result<(), Error> {
        self.0.attributes.change_attributes(number, namespace, name, None).await
    }
}
