//! A hash table with open addressing: loads that the cache does not foresee.

use alloc::vec;
use alloc::vec::Vec;

use crate::numbers::{Numbers, digest};

const KEYS: u64 = 60_000;
const OPERATIONS: u32 = 400_000;

/// Numbers by key; 0 is no key.
struct Map {
    entries: Vec<(u64, u64)>,
    used: usize,
}

pub fn run() -> u64 {
    let mut numbers = Numbers::of(0x3a9);
    let mut map = Map { entries: vec![(0, 0); 16], used: 0 };
    let mut found = 0_u64;
    for operation in 0..OPERATIONS {
        let key = 1 + numbers.below(KEYS);
        if operation % 4 == 0 {
            map.add(key, u64::from(operation));
        } else {
            found = found.wrapping_mul(31).wrapping_add(map.get(key).unwrap_or(1));
        }
    }
    digest([found, map.used as u64])
}

impl Map {
    /// The place of a key, or that where it belongs.
    fn place(&self, key: u64) -> usize {
        let mask = self.entries.len() - 1;
        let mut place = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & mask;
        while self.entries[place].0 != key && self.entries[place].0 != 0 {
            place = (place + 1) & mask;
        }
        place
    }

    fn get(&self, key: u64) -> Option<u64> {
        let (there, number) = self.entries[self.place(key)];
        (there == key).then_some(number)
    }

    fn add(&mut self, key: u64, number: u64) {
        if self.used * 4 >= self.entries.len() * 3 {
            self.grow();
        }
        let place = self.place(key);
        self.used += usize::from(self.entries[place].0 == 0);
        self.entries[place].0 = key;
        self.entries[place].1 = self.entries[place].1.wrapping_add(number);
    }

    fn grow(&mut self) {
        let larger = vec![(0, 0); self.entries.len() * 2];
        let entries = core::mem::replace(&mut self.entries, larger);
        for entry in entries.into_iter().filter(|entry| entry.0 != 0) {
            let place = self.place(entry.0);
            self.entries[place] = entry;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_is_found_after_growth() {
        let mut map = Map { entries: vec![(0, 0); 16], used: 0 };
        (1..=1000).for_each(|key| map.add(key, key * 3));
        map.add(7, 1);
        assert_eq!((map.get(7), map.get(1000), map.get(1001), map.used), (Some(22), Some(3000), None, 1000));
    }
}
