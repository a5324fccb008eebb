//! In-memory name indexes of large directories, which find a name, or room for one, without reading the directory.
//!
//! Only hashes are kept, with the directory block that has the name; the block is read for the rest. Directories with
//! an htree do not need one. Eviction is least recently used first.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Bytes charged for a name.
const NAME_BYTES: usize = 16;
/// Bytes charged for a directory block.
const BLOCK_BYTES: usize = 2;

/// Names of one directory.
#[derive(Default)]
pub(crate) struct NameIndex {
    /// Number of names with this hash in this block.
    places: BTreeMap<(u32, u32), u32>,
    /// Maximum free room in each block.
    room: Vec<u16>,
}

impl NameIndex {
    /// Returns the blocks that may contain the name.
    pub(crate) fn candidates(&self, name: &[u8]) -> Vec<u32> {
        let hash = hash(name);
        self.places.range((hash, 0)..=(hash, u32::MAX)).map(|(&(_, block), _)| block).collect()
    }

    /// Returns the first block with this many free bytes.
    pub(crate) fn block_with_room(&self, bytes: usize) -> Option<u32> {
        self.room.iter().position(|&room| usize::from(room) >= bytes).map(|block| block as u32)
    }

    pub(crate) fn add(&mut self, name: &[u8], block: u32) {
        *self.places.entry((hash(name), block)).or_insert(0) += 1;
    }

    pub(crate) fn remove(&mut self, name: &[u8], block: u32) {
        let key = (hash(name), block);
        if let Some(count) = self.places.get_mut(&key) {
            *count -= 1;
            if *count == 0 {
                self.places.remove(&key);
            }
        }
    }

    /// Sets the free bytes of a known block or the next one.
    pub(crate) fn set_room(&mut self, block: u32, bytes: usize) {
        let block = block as usize;
        if block >= self.room.len() {
            self.room.resize(block + 1, 0);
        }
        // A block has at most 4096 bytes.
        self.room[block] = bytes as u16;
    }

    /// Bytes of memory in use.
    pub(crate) fn bytes(&self) -> usize {
        self.places.len() * NAME_BYTES + self.room.len() * BLOCK_BYTES
    }
}

/// FNV-1a: short, and good enough to spread names.
fn hash(name: &[u8]) -> u32 {
    name.iter().fold(0x811c_9dc5, |hash, &byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

struct Entry {
    used: u64,
    bytes: usize,
    index: NameIndex,
}

/// Directories whose names are in memory.
pub(crate) struct NameIndexes {
    folders: BTreeMap<u32, Entry>,
    bytes: usize,
    limit: usize,
    clock: u64,
}

impl NameIndexes {
    pub(crate) fn new(limit: usize) -> NameIndexes {
        NameIndexes { folders: BTreeMap::new(), bytes: 0, limit, clock: 0 }
    }

    /// Maximum bytes of one directory.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Returns whether a directory's names are in memory.
    pub(crate) fn contains(&self, folder: u32) -> bool {
        self.folders.contains_key(&folder)
    }

    /// Calls `work` with a directory's names, if they are in memory.
    pub(crate) fn with<R>(&mut self, folder: u32, work: impl FnOnce(&mut NameIndex) -> R) -> Option<R> {
        self.clock += 1;
        let entry = self.folders.get_mut(&folder)?;
        entry.used = self.clock;
        let result = work(&mut entry.index);
        self.bytes -= entry.bytes;
        entry.bytes = entry.index.bytes();
        self.bytes += entry.bytes;
        self.keep_limit();
        Some(result)
    }

    pub(crate) fn insert(&mut self, folder: u32, index: NameIndex) {
        self.forget(folder);
        self.clock += 1;
        let bytes = index.bytes();
        self.bytes += bytes;
        self.folders.insert(folder, Entry { used: self.clock, bytes, index });
        self.keep_limit();
    }

    pub(crate) fn forget(&mut self, folder: u32) {
        if let Some(entry) = self.folders.remove(&folder) {
            self.bytes -= entry.bytes;
        }
    }

    fn keep_limit(&mut self) {
        while self.bytes > self.limit {
            let oldest = self.folders.iter().min_by_key(|(_, entry)| entry.used).map(|(&folder, _)| folder);
            match oldest {
                Some(folder) => self.forget(folder),
                None => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_used_longest_ago_goes() {
        let index = |count: u32| {
            let mut index = NameIndex::default();
            (0..count).for_each(|number| index.add(&number.to_le_bytes(), number));
            index
        };
        let mut folders = NameIndexes::new(100 * NAME_BYTES);
        folders.insert(1, index(40));
        folders.insert(2, index(40));
        assert_eq!(folders.with(1, |index| index.candidates(&7u32.to_le_bytes())), Some(alloc::vec![7]));
        folders.insert(3, index(40));
        assert!(folders.with(2, |_| ()).is_none());
        assert!(folders.with(1, |_| ()).is_some());
        folders.with(1, |index| (100..170u32).for_each(|number| index.add(&number.to_le_bytes(), number)));
        assert!(folders.with(3, |_| ()).is_none() && folders.with(1, |_| ()).is_none());
        assert_eq!(folders.bytes, 0);
    }

    #[test]
    fn a_name_is_found_as_often_as_it_was_added() {
        let mut index = NameIndex::default();
        index.add(b"a", 3);
        index.add(b"a", 3);
        index.remove(b"a", 3);
        assert_eq!(index.candidates(b"a"), [3]);
        index.remove(b"a", 3);
        assert!(index.candidates(b"a").is_empty());
        index.set_room(2, 100);
        assert_eq!((index.block_with_room(50), index.block_with_room(101)), (Some(2), None));
    }
}
