//! Folders: their entries, names and chains.

use alloc::collections::{BTreeSet, VecDeque};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use hadris_fat_raw::lfn::Assembler;
use hadris_fat_raw::{ATTR_DIRECTORY, ENTRY_FREE, RootLocation, ShortEntry, Slot, fold_unicode, short_name};

use crate::BlockSource;
use crate::check::table::Chain;
use crate::check::{Checker, Remedy};
use crate::error::Error;

pub(super) const SLOT_BYTES: u64 = 32;
/// Maximum slots of a folder.
pub(super) const MAX_SLOTS: u64 = 65_536;
/// Offset of the first cluster, which must be 0 in a long-name slot.
const LONG_CLUSTER_AT: usize = 26;
pub(super) const DOT: [u8; 11] = *b".          ";
pub(super) const DOT_DOT: [u8; 11] = *b"..         ";

/// Location of a folder's entries.
pub(super) enum Place {
    /// In the root region of FAT12 and FAT16.
    Fixed {
        /// Offset in bytes.
        start: u64,
        /// Length in bytes.
        size: u64,
    },
    /// In its cluster chain, as far as that is valid.
    Clusters(Vec<u32>),
}

/// A folder to check.
pub(super) struct Folder {
    pub(super) place: Place,
    /// Its path, for messages.
    pub(super) path: String,
    /// First cluster of its parent, for `..`: 0 for the root. `None` for the root itself.
    pub(super) parent: Option<u32>,
}

impl Folder {
    pub(super) fn root(place: Place) -> Folder {
        Folder { place, path: String::new(), parent: None }
    }

    /// The first cluster, as entries state it.
    pub(super) fn first(&self) -> u32 {
        match &self.place {
            Place::Clusters(clusters) if self.parent.is_some() => clusters.first().copied().unwrap_or(0),
            _ => 0,
        }
    }
}

/// State of the check of a folder.
struct Names {
    assembler: Assembler,
    /// Slots of a long name whose short entry has not been read yet.
    long_slots: Vec<u64>,
    short: BTreeSet<[u8; 11]>,
    long: BTreeSet<Vec<u16>>,
    /// Number of the next generated name.
    next: u32,
}

/// An entry with a name.
struct Named {
    offset: u64,
    entry: ShortEntry,
    path: String,
    long_slots: Vec<u64>,
}

impl<S: BlockSource> Checker<S> {
    pub(super) fn slot_offset(&self, place: &Place, index: u64) -> Option<u64> {
        let at = index * SLOT_BYTES;
        match place {
            Place::Fixed { start, size } => (at < *size).then_some(start + at),
            Place::Clusters(clusters) => {
                let cluster_bytes = u64::from(self.geometry.cluster_size());
                let cluster = *clusters.get((at / cluster_bytes) as usize)?;
                Some(self.geometry.cluster_offset(cluster)? + at % cluster_bytes)
            }
        }
    }

    pub(super) async fn write_entry(&self, offset: u64, entry: &ShortEntry) -> Result<(), Error> {
        Ok(self.bytes.write(offset, &entry.encode()).await?)
    }

    pub(super) async fn free_slots(&self, slots: &[u64]) -> Result<(), Error> {
        for offset in slots {
            self.bytes.write(*offset, &[ENTRY_FREE]).await?;
        }
        Ok(())
    }

    /// Checks a folder, and queues its subfolders.
    pub(super) async fn check_folder(&mut self, folder: &Folder, waiting: &mut VecDeque<Folder>) -> Result<(), Error> {
        let mut names = Names {
            assembler: Assembler::new(),
            long_slots: Vec::new(),
            short: BTreeSet::new(),
            long: BTreeSet::new(),
            next: 0,
        };
        let mut index = 0;
        if folder.parent.is_some() {
            if self.is_garbage(folder).await? {
                return self.check_garbage(folder).await;
            }
            self.check_dots(folder).await?;
            index = 2;
        }
        while index < MAX_SLOTS
            && let Some(offset) = self.slot_offset(&folder.place, index)
        {
            index += 1;
            let mut raw = [0; SLOT_BYTES as usize];
            self.bytes.read(offset, &mut raw).await?;
            match Slot::parse(&raw) {
                Slot::End => {
                    self.check_behind_end(folder, index).await?;
                    break;
                }
                Slot::Free => self.check_orphans(folder, &mut names).await?,
                Slot::Long(part) => {
                    // The first slot of a long name ends the previous one.
                    if part.sequence() & hadris_fat_raw::LFN_LAST_ENTRY != 0 {
                        self.check_orphans(folder, &mut names).await?;
                    }
                    names.assembler.push(&part);
                    names.long_slots.push(offset);
                    self.check_long_slot(folder, offset, &raw).await?;
                }
                Slot::Short(entry) if entry.is_label() => {
                    self.check_orphans(folder, &mut names).await?;
                    self.check_label_entry(folder, offset, entry).await?;
                }
                Slot::Short(entry) => self.check_entry(folder, offset, entry, &mut names, waiting).await?,
            }
        }
        self.check_orphans(folder, &mut names).await
    }

    /// Checks the fixed fields of a long-name slot.
    async fn check_long_slot(&mut self, folder: &Folder, offset: u64, raw: &[u8]) -> Result<(), Error> {
        let text = || format!("{}/: a long name slot has a first cluster", folder.path);
        if raw[LONG_CLUSTER_AT..LONG_CLUSTER_AT + 2] != [0, 0] && self.log.problem(Remedy::Safe, text()) {
            self.bytes.write(offset + LONG_CLUSTER_AT as u64, &[0, 0]).await?;
        }
        Ok(())
    }

    /// Checks for long-name slots without a short entry.
    async fn check_orphans(&mut self, folder: &Folder, names: &mut Names) -> Result<(), Error> {
        names.assembler.reset();
        let slots = core::mem::take(&mut names.long_slots);
        if !slots.is_empty() {
            let text = format!("{}/: orphaned long name slot", folder.path);
            if self.log.problem(Remedy::Safe, text) {
                self.free_slots(&slots).await?;
            }
        }
        Ok(())
    }

    /// Checks the entries `.` and `..` of a folder other than the root.
    async fn check_dots(&mut self, folder: &Folder) -> Result<(), Error> {
        let wanted = [(0, DOT, folder.first()), (1, DOT_DOT, folder.parent.unwrap_or(0))];
        for (index, name, cluster) in wanted {
            let Some(offset) = self.slot_offset(&folder.place, index) else { return Ok(()) };
            let mut raw = [0; SLOT_BYTES as usize];
            self.bytes.read(offset, &mut raw).await?;
            let what = if index == 0 { "." } else { ".." };
            let (entry, remedy) = match Slot::parse(&raw) {
                Slot::Short(entry) if entry.name() == name && entry.is_dir() => {
                    let found = entry.first_cluster(self.kind());
                    let is_root = cluster == 0 && self.geometry.root() == RootLocation::Cluster(found);
                    if found == cluster || is_root {
                        continue;
                    }
                    (entry, Remedy::Safe)
                }
                Slot::Free | Slot::End => (ShortEntry::new(name, ATTR_DIRECTORY), Remedy::Safe),
                Slot::Short(entry) if entry.name() == name => (ShortEntry::new(name, ATTR_DIRECTORY), Remedy::Safe),
                _ => (ShortEntry::new(name, ATTR_DIRECTORY), Remedy::Lossy),
            };
            if self.log.problem(remedy, format!("{}: wrong `{what}` entry", folder.path)) {
                let mut entry = entry;
                entry.set_first_cluster(self.kind(), cluster);
                self.write_entry(offset, &entry).await?;
            }
        }
        Ok(())
    }

    async fn check_entry(
        &mut self,
        folder: &Folder,
        offset: u64,
        entry: ShortEntry,
        names: &mut Names,
        waiting: &mut VecDeque<Folder>,
    ) -> Result<(), Error> {
        let long: Option<Vec<u16>> = names.assembler.finish(entry.lfn_checksum()).map(<[u16]>::to_vec);
        if long.is_none() {
            self.check_orphans(folder, names).await?;
        }
        let name = match &long {
            Some(units) => String::from_utf16_lossy(units),
            None => shown(&entry),
        };
        let long_slots = core::mem::take(&mut names.long_slots);
        let mut named = Named { offset, entry, path: format!("{}/{name}", folder.path), long_slots };
        self.check_name(&mut named, long, names).await?;
        if named.entry.is_dir() {
            self.check_directory(folder, named, waiting).await
        } else {
            self.log.report.files += 1;
            self.check_file(named).await
        }
    }

    async fn check_name(&mut self, named: &mut Named, long: Option<Vec<u16>>, names: &mut Names) -> Result<(), Error> {
        let folded = long.map(|units| units.iter().map(|unit| fold_unicode(*unit)).collect::<Vec<u16>>());
        let text = if !is_good(&named.entry.name()) {
            format!("{}: invalid short name", named.path)
        } else if names.short.contains(&named.entry.name())
            || folded.as_ref().is_some_and(|name| names.long.contains(name))
        {
            format!("{}: duplicate name", named.path)
        } else {
            names.short.insert(named.entry.name());
            names.long.extend(folded);
            return Ok(());
        };
        if self.log.problem(Remedy::Lossy, text) {
            let mut made_up = made_up_name(names.next);
            while names.short.contains(&made_up) {
                names.next += 1;
                made_up = made_up_name(names.next);
            }
            names.next += 1;
            names.short.insert(made_up);
            self.free_slots(&named.long_slots).await?;
            named.entry.set_name(made_up);
            named.entry.set_nt_case(0);
            self.write_entry(named.offset, &named.entry).await?;
        }
        Ok(())
    }

    async fn check_directory(
        &mut self,
        parent: &Folder,
        mut named: Named,
        waiting: &mut VecDeque<Folder>,
    ) -> Result<(), Error> {
        let first = named.entry.first_cluster(self.kind());
        let mut clusters = Vec::new();
        let trust = self.trust_in_folder(first).await?;
        let chain = self.follow(first, u32::MAX, trust, Some(&mut clusters)).await?;
        if let Some(broken) = chain.broken
            && self.log.problem(Remedy::Lossy, format!("{}/: chain {broken}", named.path))
        {
            if chain.last.is_none() {
                self.free_slots(&named.long_slots).await?;
                return self.free_slots(&[named.offset]).await;
            }
            self.end_chain(chain.last).await?;
        }
        if chain.last.is_none() {
            return Ok(());
        }
        if named.entry.size() != 0
            && self.log.problem(Remedy::Safe, format!("{}/: the entry of a folder has a size", named.path))
        {
            named.entry.set_size(0);
            self.write_entry(named.offset, &named.entry).await?;
        }
        waiting.push_back(Folder { place: Place::Clusters(clusters), path: named.path, parent: Some(parent.first()) });
        Ok(())
    }

    async fn check_file(&mut self, mut named: Named) -> Result<(), Error> {
        let first = named.entry.first_cluster(self.kind());
        let size = u64::from(named.entry.size());
        let cluster_bytes = u64::from(self.geometry.cluster_size());
        // At most the maximum size of a FAT file.
        let needed = size.div_ceil(cluster_bytes) as u32;
        let chain = match first {
            0 => Chain::NONE,
            first => {
                let trust = self.trust_in_file(first, needed).await?;
                self.follow(first, needed, trust, None).await?
            }
        };
        if chain.clusters == needed {
            let text = format!("{}: chain longer than its {size} bytes", named.path);
            if chain.goes_on && self.log.problem(Remedy::Safe, text) {
                // The rest belongs to another chain, or is reported as lost.
                self.end_chain(chain.last).await?;
                if needed == 0 {
                    named.entry.set_first_cluster(self.kind(), 0);
                    self.write_entry(named.offset, &named.entry).await?;
                }
            }
            return Ok(());
        }
        let text = match chain.broken {
            Some(broken) => format!("{}: chain {broken}", named.path),
            None => format!("{}: chain shorter than its {size} bytes", named.path),
        };
        if self.log.problem(Remedy::Lossy, text) {
            self.end_chain(chain.last).await?;
            let kept = u64::from(chain.clusters) * cluster_bytes;
            // Less than the size, which fits.
            named.entry.set_size(kept as u32);
            if chain.last.is_none() {
                named.entry.set_first_cluster(self.kind(), 0);
            }
            self.write_entry(named.offset, &named.entry).await?;
        }
        Ok(())
    }
}

/// A short name, for messages.
fn shown(entry: &ShortEntry) -> String {
    let mut out = [0; short_name::DISPLAY_MAX];
    let ascii = |byte: u8| if byte.is_ascii_graphic() { char::from(byte) } else { '?' };
    let length = short_name::display(&entry.name(), entry.nt_case(), ascii, &mut out);
    String::from_utf8_lossy(&out[..length]).into_owned()
}

/// Whether these eleven bytes are a valid short name.
pub(super) fn is_good(name: &[u8; 11]) -> bool {
    // 0x05 encodes 0xE5, which would mark a deleted entry.
    let rest = if name[0] == 5 { &name[1..] } else { &name[..] };
    let is_plain = |byte: &u8| {
        *byte >= b' ' && *byte != 0x7F && !byte.is_ascii_lowercase() && !b"\"*+,./:;<=>?[\\]|".contains(byte)
    };
    name[0] != b' ' && rest.iter().all(is_plain)
}

fn made_up_name(number: u32) -> [u8; 11] {
    let mut name = *b"FSCK0000REN";
    let mut rest = number;
    for place in name[4..8].iter_mut().rev() {
        *place = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_are_told_from_what_is_none() {
        for good in [b"README  TXT", b"A          ", b"\x05BC     X  ", b"A~1     TX1", b"A B     C D"] {
            assert!(is_good(good), "{good:?}");
        }
        for bad in
            [b"readme  txt", b" A         ", b"A.B        ", b"A\x01         ", b".          ", b"A\x7F         "]
        {
            assert!(!is_good(bad), "{bad:?}");
        }
    }

    #[test]
    fn made_up_names_count() {
        assert_eq!(&made_up_name(0), b"FSCK0000REN");
        assert_eq!(&made_up_name(1234), b"FSCK1234REN");
    }
}
