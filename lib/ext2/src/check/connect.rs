//! Connectivity: each folder is reachable from the root, and its `..` leads back.

use super::state::{Checker, Folder};
use super::{CheckError, Fault, entries};
use crate::format::ROOT_INODE;
use block_source::BlockSource;

/// Walk number of a folder that is known to be connected.
const CONNECTED: u32 = u32::MAX;

impl<S: BlockSource> Checker<'_, S> {
    pub(super) async fn connect(&mut self) -> Result<(), CheckError> {
        if !self.is_folder(ROOT_INODE) && !self.make_root().await? {
            return Ok(());
        }
        let mut index = 0;
        // Reconnecting may create `lost+found`, which is connected.
        while index < self.folders.len() {
            let number = self.folders[index].number;
            if number != ROOT_INODE && self.folders[index].walk != CONNECTED {
                // Walk numbers start at 1, and there are fewer walks than folders.
                self.connect_one(number, number).await?;
            }
            // Folders may have been inserted before it.
            index = self.folder_index(number).map_or(index, |index| index) + 1;
        }
        let mut number = 0;
        while let Some(folder) = self.next_folder(number) {
            number = folder.number;
            if folder.parent != 0 && folder.parent != folder.dot_dot {
                self.answer(&folder).await?;
            }
        }
        Ok(())
    }

    fn next_folder(&self, after: u32) -> Option<Folder> {
        let index = self.folders.partition_point(|folder| folder.number <= after);
        self.folders.get(index).copied()
    }

    /// Walks from a folder up to the root, and moves an unconnected one into `lost+found`.
    async fn connect_one(&mut self, number: u32, walk: u32) -> Result<(), CheckError> {
        let mut at = number;
        while let Some(index) = self.folder_index(at) {
            let folder = self.folders[index];
            if at == ROOT_INODE || folder.walk == CONNECTED {
                break;
            }
            // Visited twice: the folder is its own ancestor.
            let circle = folder.walk == walk;
            if circle || folder.parent == 0 {
                self.bring_back(at, if circle { folder.parent } else { 0 }).await?;
                break;
            }
            self.folders[index].walk = walk;
            at = folder.parent;
        }
        let mut at = number;
        while let Some(index) = self.folder_index(at) {
            if at == ROOT_INODE || self.folders[index].walk == CONNECTED {
                break;
            }
            self.folders[index].walk = CONNECTED;
            at = self.folders[index].parent;
        }
        Ok(())
    }

    /// Moves a folder into `lost+found`, and removes the name by which it was its own descendant.
    async fn bring_back(&mut self, number: u32, old_parent: u32) -> Result<(), CheckError> {
        let fault = Fault::Unconnected { folder: number };
        if !self.may_fix(&fault) {
            self.report(fault).await?;
            return Ok(());
        }
        self.mark();
        let Some(lost) = self.put_into_lost(number).await? else {
            self.report_no_room(fault);
            return Ok(());
        };
        self.report(fault).await?;
        if old_parent != 0 {
            self.take_name(old_parent, number).await?;
        }
        if let Some(index) = self.folder_index(number) {
            self.folders[index].parent = lost;
        }
        Ok(())
    }

    /// Removes the name of an inode from a folder.
    async fn take_name(&mut self, folder: u32, inode: u32) -> Result<(), CheckError> {
        let node = self.load(folder).await?;
        for (_, block) in self.data_blocks(&node).await? {
            let mut bytes = self.read_block(block).await?;
            let found = entries::entries(&bytes)
                .find(|entry| entry.inode == inode && !entries::is_dot(entry.name))
                .map(|entry| entry.offset);
            if let Some(offset) = found {
                entries::remove(&mut bytes, offset);
                self.count_name(inode, false);
                return self.write_block(block, &bytes).await;
            }
        }
        Ok(())
    }

    /// Sets the `..` of a folder to its parent.
    async fn answer(&mut self, folder: &Folder) -> Result<(), CheckError> {
        let Folder { number, parent, dot_dot, .. } = *folder;
        if !self.report(Fault::DotDot { folder: number, says: dot_dot, right: parent }).await? {
            return Ok(());
        }
        let node = self.load(number).await?;
        let Some(&(_, block)) = self.data_blocks(&node).await?.first() else { return Ok(()) };
        let mut bytes = self.read_block(block).await?;
        let Some(offset) =
            entries::entries(&bytes).nth(1).filter(|entry| entry.name == b"..").map(|entry| entry.offset)
        else {
            return Ok(());
        };
        entries::set_inode(&mut bytes, offset, parent);
        self.write_block(block, &bytes).await?;
        self.count_name(dot_dot, false);
        self.count_name(parent, true);
        if let Some(index) = self.folder_index(number) {
            self.folders[index].dot_dot = parent;
        }
        Ok(())
    }
}
