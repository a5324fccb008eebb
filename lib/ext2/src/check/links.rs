//! Link counts, and inodes without links.

use super::state::{Checker, known};
use super::superblock::feature;
use super::{CheckError, Fault};
use crate::format::ROOT_INODE;
use crate::format::inode::Kind;
use crate::format::superblock::field;
use crate::format::write_u32;
use block_source::BlockSource;

/// Maximum link count: a folder with more has [`UNCOUNTED`].
const MAX_LINKS: u16 = 65_000;
const UNCOUNTED: u16 = 1;

impl<S: BlockSource> Checker<'_, S> {
    /// Sets the feature for folders with more links than can be counted.
    async fn need_uncounted_links(&mut self) -> Result<(), CheckError> {
        let has = self.volume.read_only & feature::DIR_NLINK != 0;
        if !has && self.report(Fault::MissingFeature { name: "dir_nlink" }).await? {
            self.volume.read_only |= feature::DIR_NLINK;
            write_u32(&mut self.superblock, field::READ_ONLY_COMPATIBLE, self.volume.read_only);
            self.write_superblock().await?;
        }
        Ok(())
    }

    pub(super) async fn check_links(&mut self) -> Result<(), CheckError> {
        for inode in (ROOT_INODE..=ROOT_INODE).chain(self.volume.first_inode..=self.volume.inodes()) {
            if !self.is_used(inode) {
                continue;
            }
            if self.names[inode as usize] == 0 && inode != ROOT_INODE && !self.name(inode).await? {
                continue;
            }
            let (says, names) = (self.links[inode as usize], self.names[inode as usize]);
            let overflows = self.is_folder(inode) && names > MAX_LINKS;
            if overflows {
                self.need_uncounted_links().await?;
            }
            let right = if overflows { UNCOUNTED } else { names };
            // A folder with more subfolders than can be counted has link count 1.
            let uncounted =
                self.is_folder(inode) && says == UNCOUNTED && self.volume.read_only & feature::DIR_NLINK != 0;
            if says != right && !uncounted && self.report(Fault::Links { inode, says, right }).await? {
                let mut node = self.load(inode).await?;
                node.set_links(right);
                self.store(&node).await?;
                self.links[inode as usize] = right;
            }
        }
        Ok(())
    }

    /// Links a nameless inode into `lost+found`, or clears it if it is empty. Returns whether it was linked.
    async fn name(&mut self, inode: u32) -> Result<bool, CheckError> {
        let mut node = self.load(inode).await?;
        let plain = matches!(node.kind(), Some(Kind::File | Kind::Directory));
        if plain && node.sectors() == 0 && self.known(inode) & known::ATTRIBUTES == 0 {
            if self.report(Fault::NoNameNoContent { inode }).await? {
                self.clear_inode(&mut node);
                self.store(&node).await?;
            }
            return Ok(false);
        }
        let fault = Fault::NoName { inode };
        if !self.may_fix(&fault) || !self.is_folder(ROOT_INODE) {
            self.report_no_room(fault);
            return Ok(false);
        }
        self.mark();
        if self.put_into_lost(inode).await?.is_none() {
            self.report_no_room(fault);
            return Ok(false);
        }
        self.report(fault).await
    }
}
