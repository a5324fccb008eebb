//! Sums of folders within folders.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use contracts::directory::NodeAttributes;

/// The room that folders take which are not gone through yet, each within the one before.
#[derive(Default)]
pub struct Sums {
    open: Vec<u64>,
    /// Files of several names that were counted, by volume and number.
    counted: BTreeMap<String, BTreeSet<u64>>,
}

impl Sums {
    /// A folder, or a file alone, from which on sums are wanted.
    pub fn begin(&mut self, volume: &str, attributes: &NodeAttributes) {
        self.open.push(0);
        self.add(volume, attributes);
    }

    /// One more in the folder that was begun last. A file that has several names counts where it is met first.
    pub fn add(&mut self, volume: &str, attributes: &NodeAttributes) {
        let is_new = attributes.links <= 1 || attributes.node == 0 || {
            if !self.counted.contains_key(volume) {
                self.counted.insert(String::from(volume), BTreeSet::new());
            }
            self.counted.get_mut(volume).is_some_and(|nodes| nodes.insert(attributes.node))
        };
        if let (true, Some(sum)) = (is_new, self.open.last_mut()) {
            *sum = sum.saturating_add(attributes.allocated_bytes);
        }
    }

    /// What was begun last is done; its sum counts for the folder around it, too.
    pub fn end(&mut self) -> u64 {
        let sum = self.open.pop().unwrap_or(0);
        if let Some(around) = self.open.last_mut() {
            *around = around.saturating_add(sum);
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(node: u64, links: u32, allocated_bytes: u64) -> NodeAttributes {
        NodeAttributes {
            size_bytes: 0,
            allocated_bytes,
            node,
            modified_s: 0,
            accessed_s: 0,
            changed_s: 0,
            permissions: 0,
            links,
            owner: 0,
            group: 0,
        }
    }

    #[test]
    fn folders_count_for_those_around_them() {
        let mut sums = Sums::default();
        sums.begin("/fs/a", &node(2, 3, 1));
        sums.add("/fs/a", &node(11, 1, 10));
        sums.begin("/fs/a", &node(12, 2, 1));
        sums.add("/fs/a", &node(13, 1, 100));
        assert_eq!(sums.end(), 101);
        assert_eq!(sums.end(), 112);
        assert_eq!(sums.end(), 0);
    }

    #[test]
    fn a_file_of_two_names_takes_its_room_once() {
        let mut sums = Sums::default();
        sums.begin("/fs/a", &node(2, 2, 0));
        sums.add("/fs/a", &node(11, 2, 10));
        sums.add("/fs/a", &node(11, 2, 10));
        sums.add("/fs/b", &node(11, 2, 10));
        assert_eq!(sums.end(), 20);
    }
}
