//! Directory entries of neither file nor folder: the volume label, entries after the end of a folder, and content that
//! is not that of a folder.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use hadris_fat_raw::{ATTR_DIRECTORY, ATTR_VOLUME_ID, FIRST_DATA_CLUSTER, ShortEntry, Slot};

use crate::BlockSource;
use crate::check::folder::{DOT, DOT_DOT, Folder, MAX_SLOTS, SLOT_BYTES, is_good};
use crate::check::{Checker, Remedy};
use crate::error::Error;

/// Attribute bits that no system sets.
const RESERVED_ATTRIBUTES: u8 = 0xC0;
const NO_ENTRY: [u8; SLOT_BYTES as usize] = [0; SLOT_BYTES as usize];

impl<S: BlockSource> Checker<S> {
    /// Checks the slots from `first` on, behind the end of the folder. This crate ignores them, but Linux and fsck.fat
    /// do not, and the next new entry would move the end behind the first of them. A crash leaves them in a new cluster
    /// that was written in part.
    pub(super) async fn check_behind_end(&mut self, folder: &Folder, first: u64) -> Result<(), Error> {
        let mut used = Vec::new();
        for index in first..MAX_SLOTS {
            let Some(offset) = self.slot_offset(&folder.place, index) else { break };
            let mut raw = NO_ENTRY;
            self.bytes.read(offset, &mut raw).await?;
            if !matches!(Slot::parse(&raw), Slot::End | Slot::Free) {
                used.push(offset);
            }
        }
        let text = || format!("{}/: {} entries after its end", folder.path, used.len());
        if !used.is_empty() && self.log.problem(Remedy::Safe, text()) {
            for offset in used {
                self.bytes.write(offset, &NO_ENTRY).await?;
            }
        }
        Ok(())
    }

    /// Checks an entry with the volume label.
    pub(super) async fn check_label_entry(
        &mut self,
        folder: &Folder,
        offset: u64,
        mut entry: ShortEntry,
    ) -> Result<(), Error> {
        let has_content = entry.first_cluster(self.kind()) != 0 || entry.size() != 0 || entry.is_dir();
        let text = || format!("{}/: the volume label has content", folder.path);
        if has_content && self.log.problem(Remedy::Safe, text()) {
            entry.set_first_cluster(self.kind(), 0);
            entry.set_size(0);
            // Other bits could make it part of a long name.
            entry.set_attributes(ATTR_VOLUME_ID);
            self.write_entry(offset, &entry).await?;
        }
        if folder.parent.is_some() || self.label.is_some() {
            return Ok(());
        }
        let is_none = !is_good(&entry.name());
        if is_none && self.log.problem(Remedy::Lossy, String::from("/: invalid volume label")) {
            return self.free_slots(&[offset]).await;
        }
        self.label = Some(entry.name());
        Ok(())
    }

    /// Whether a folder's content is garbage: it does not begin like a folder, and most of it cannot be entries. A
    /// crash leaves such a folder when its name was written and its first cluster was not.
    pub(super) async fn is_garbage(&self, folder: &Folder) -> Result<bool, Error> {
        let (mut good, mut bad) = (0_u32, 0_u32);
        for index in 0..MAX_SLOTS {
            let Some(offset) = self.slot_offset(&folder.place, index) else { break };
            let mut raw = NO_ENTRY;
            self.bytes.read(offset, &mut raw).await?;
            match Slot::parse(&raw) {
                Slot::End => break,
                Slot::Short(entry) if index < 2 && (entry.name() == DOT || entry.name() == DOT_DOT) => {
                    return Ok(false);
                }
                Slot::Short(entry) if self.is_plausible(&entry) => good += 1,
                Slot::Short(_) => bad += 1,
                Slot::Free | Slot::Long(_) => {}
            }
        }
        Ok(bad > good)
    }

    fn is_plausible(&self, entry: &ShortEntry) -> bool {
        let first = entry.first_cluster(self.kind());
        let is_there = first == 0 || (FIRST_DATA_CLUSTER..=self.geometry.max_cluster()).contains(&first);
        is_good(&entry.name()) && is_there && !entry.is_label() && entry.attributes() & RESERVED_ATTRIBUTES == 0
    }

    /// Handles such a folder. Its apparent entries are not followed: they may lead to clusters of other files.
    pub(super) async fn check_garbage(&mut self, folder: &Folder) -> Result<(), Error> {
        if !self.log.problem(Remedy::Lossy, format!("{}/: not the content of a folder", folder.path)) {
            return Ok(());
        }
        for index in 0..MAX_SLOTS {
            let Some(offset) = self.slot_offset(&folder.place, index) else { break };
            let (name, cluster) = match index {
                0 => (DOT, folder.first()),
                1 => (DOT_DOT, folder.parent.unwrap_or(0)),
                _ => {
                    self.bytes.write(offset, &NO_ENTRY).await?;
                    continue;
                }
            };
            let mut entry = ShortEntry::new(name, ATTR_DIRECTORY);
            entry.set_first_cluster(self.kind(), cluster);
            self.write_entry(offset, &entry).await?;
        }
        Ok(())
    }
}
