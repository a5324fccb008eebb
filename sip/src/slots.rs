//! A slab with generation-checked keys: a vector with a free list.

use alloc::vec::Vec;

/// Maximum generation of a slot, before it wraps to 0: below [`u32::MAX`], so that no key is [`u64::MAX`].
const MAX_USES: u32 = u32::MAX - 1;

/// Values by key. A key consists of slot index and generation.
pub(crate) struct Slots<T> {
    entries: Vec<Entry<T>>,
    free: Vec<u32>,
}

struct Entry<T> {
    uses: u32,
    value: Option<T>,
}

impl<T> Slots<T> {
    pub(crate) const fn new() -> Slots<T> {
        Slots { entries: Vec::new(), free: Vec::new() }
    }

    /// Returns the key that the next insert will return.
    pub(crate) fn next_key(&self) -> u64 {
        match self.free.last().and_then(|&place| Some((place, self.entries.get(place as usize)?))) {
            Some((place, entry)) => key(place, entry.uses),
            None => key(self.entries.len() as u32, 0),
        }
    }

    /// Inserts a value and returns its key.
    pub(crate) fn insert(&mut self, value: T) -> u64 {
        if let Some(place) = self.free.pop()
            && let Some(entry) = self.entries.get_mut(place as usize)
        {
            entry.value = Some(value);
            return key(place, entry.uses);
        }
        let place = self.entries.len() as u32;
        self.entries.push(Entry { uses: 0, value: Some(value) });
        key(place, 0)
    }

    pub(crate) fn get_mut(&mut self, wanted: u64) -> Option<&mut T> {
        let entry = self.entries.get_mut(place_of(wanted))?;
        if entry.uses == uses_of(wanted) { entry.value.as_mut() } else { None }
    }

    pub(crate) fn remove(&mut self, wanted: u64) -> Option<T> {
        let entry = self.entries.get_mut(place_of(wanted))?;
        if entry.uses != uses_of(wanted) {
            return None;
        }
        let value = entry.value.take()?;
        entry.uses = if entry.uses == MAX_USES { 0 } else { entry.uses + 1 };
        self.free.push(place_of(wanted) as u32);
        Some(value)
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// Removes all values and returns them.
    pub(crate) fn drain(&mut self) -> Vec<T> {
        self.free.clear();
        self.entries.drain(..).filter_map(|entry| entry.value).collect()
    }
}

fn key(place: u32, uses: u32) -> u64 {
    u64::from(uses) << 32 | u64::from(place)
}

fn place_of(key: u64) -> usize {
    key as u32 as usize
}

fn uses_of(key: u64) -> u32 {
    (key >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::Slots;

    #[test]
    fn a_key_names_its_value_until_that_is_removed() {
        let mut slots = Slots::new();
        let first = slots.insert('a');
        let second = slots.insert('b');
        assert_eq!(slots.remove(first), Some('a'));
        let third = slots.insert('c');
        assert_ne!(third, first);
        assert_eq!((slots.get_mut(first).copied(), slots.get_mut(second).copied()), (None, Some('b')));
        assert_eq!((slots.len(), slots.remove(first)), (2, None));
    }
}
