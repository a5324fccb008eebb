//! A least-recently-used cache with a limit in bytes.
//!
//! A map for look-up and a doubly linked list in order of use, as in the paper; the links are indices, which avoids
//! unsafe code.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Counters of a cache since its creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounts {
    /// Look-ups that found an entry.
    pub hits: u64,
    /// Look-ups that found no entry.
    pub misses: u64,
    /// Bytes currently held.
    pub bytes: usize,
    /// Entries currently held.
    pub entries: usize,
}

/// End of the list.
const NONE: usize = usize::MAX;

struct Entry<K, V> {
    key: K,
    value: V,
    bytes: usize,
    newer: usize,
    older: usize,
}

pub(crate) struct Cache<K, V> {
    positions: BTreeMap<K, usize>,
    entries: Vec<Entry<K, V>>,
    newest: usize,
    oldest: usize,
    bytes: usize,
    limit: usize,
    hits: u64,
    misses: u64,
}

impl<K: Ord + Copy, V: Clone> Cache<K, V> {
    /// An empty cache that holds at most `limit` bytes.
    pub(crate) fn new(limit: usize) -> Cache<K, V> {
        Cache {
            positions: BTreeMap::new(),
            entries: Vec::new(),
            newest: NONE,
            oldest: NONE,
            bytes: 0,
            limit,
            hits: 0,
            misses: 0,
        }
    }

    pub(crate) fn get(&mut self, key: K) -> Option<V> {
        let Some(&position) = self.positions.get(&key) else {
            self.misses += 1;
            return None;
        };
        self.hits += 1;
        if self.newest != position {
            self.unlink(position);
            self.link_newest(position);
        }
        Some(self.entries[position].value.clone())
    }

    /// Inserts a value that counts `bytes` towards the limit, evicting the least recently used entries.
    /// A value larger than the limit is not kept; an existing value of the key is removed either way.
    pub(crate) fn insert(&mut self, key: K, value: V, bytes: usize) {
        if let Some(&position) = self.positions.get(&key) {
            self.remove_at(position);
        }
        if bytes > self.limit {
            return;
        }
        while self.limit - bytes < self.bytes {
            self.remove_at(self.oldest);
        }
        let position = self.entries.len();
        self.entries.push(Entry { key, value, bytes, newer: NONE, older: NONE });
        self.positions.insert(key, position);
        self.bytes += bytes;
        self.link_newest(position);
    }

    /// Removes the entry of `key`, if present.
    pub(crate) fn remove(&mut self, key: K) {
        if let Some(&position) = self.positions.get(&key) {
            self.remove_at(position);
        }
    }

    pub(crate) fn counts(&self) -> CacheCounts {
        CacheCounts { hits: self.hits, misses: self.misses, bytes: self.bytes, entries: self.entries.len() }
    }

    fn remove_at(&mut self, position: usize) {
        self.unlink(position);
        let removed = self.entries.swap_remove(position);
        self.positions.remove(&removed.key);
        self.bytes -= removed.bytes;
        // `swap_remove` moved the last entry here: redirect the links to its old index.
        if let Some(moved) = self.entries.get(position) {
            let (key, newer, older) = (moved.key, moved.newer, moved.older);
            self.positions.insert(key, position);
            self.point_older_of(newer, position);
            self.point_newer_of(older, position);
        }
    }

    fn unlink(&mut self, position: usize) {
        let (newer, older) = (self.entries[position].newer, self.entries[position].older);
        self.point_older_of(newer, older);
        self.point_newer_of(older, newer);
    }

    fn link_newest(&mut self, position: usize) {
        let former = self.newest;
        self.entries[position].older = former;
        self.point_older_of(NONE, position);
        self.point_newer_of(former, position);
        self.entries[position].newer = NONE;
    }

    /// Sets the `older` link of `position` to `target`; for [`NONE`], sets the list's newest entry.
    fn point_older_of(&mut self, position: usize, target: usize) {
        match self.entries.get_mut(position) {
            Some(entry) => entry.older = target,
            None => self.newest = target,
        }
    }

    /// Sets the `newer` link of `position` to `target`; for [`NONE`], sets the list's oldest entry.
    fn point_newer_of(&mut self, position: usize, target: usize) {
        match self.entries.get_mut(position) {
            Some(entry) => entry.newer = target,
            None => self.oldest = target,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_goes_first() {
        let mut cache = Cache::new(30);
        cache.insert(1, 'a', 10);
        cache.insert(2, 'b', 10);
        cache.insert(3, 'c', 10);
        assert_eq!(cache.get(1), Some('a'));
        cache.insert(4, 'd', 10);
        assert_eq!(cache.get(2), None);
        assert_eq!((cache.get(1), cache.get(3), cache.get(4)), (Some('a'), Some('c'), Some('d')));
        assert_eq!(cache.counts(), CacheCounts { hits: 4, misses: 1, bytes: 30, entries: 3 });
    }

    #[test]
    fn what_is_larger_than_the_cache_is_not_kept() {
        let mut cache = Cache::new(30);
        cache.insert(1, 'a', 10);
        cache.insert(2, 'b', 31);
        assert_eq!((cache.get(1), cache.get(2)), (Some('a'), None));
    }

    #[test]
    fn behaves_as_a_list_in_order_of_use() {
        let mut cache = Cache::new(64);
        let mut model: Vec<(u32, u32, usize)> = Vec::new();
        let mut random = 12345u32;
        for step in 0..20_000u32 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let key = (random >> 16) % 24;
            let found = model.iter().position(|entry| entry.0 == key);
            if random & 0x1000 == 0 {
                assert_eq!(cache.get(key), found.map(|index| model[index].1));
                if let Some(index) = found {
                    let entry = model.remove(index);
                    model.push(entry);
                }
            } else {
                let bytes = (random >> 8) as usize % 16;
                if let Some(index) = found {
                    model.remove(index);
                }
                while model.iter().map(|entry| entry.2).sum::<usize>() + bytes > 64 {
                    model.remove(0);
                }
                model.push((key, step, bytes));
                cache.insert(key, step, bytes);
            }
            assert_eq!(cache.counts().entries, model.len());
            assert_eq!(cache.counts().bytes, model.iter().map(|entry| entry.2).sum());
        }
    }
}
