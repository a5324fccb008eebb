//! Disk usage of nested folders.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use contracts::directory::NodeAttributes;

/// Usage of the open folders, outermost first.
#[derive(Default)]
pub struct Sums {
    open: Vec<u64>,
    /// Files with several links that were counted, by volume and number.
    counted: BTreeMap<String, BTreeSet<u64>>,
}

impl Sums {
    /// Begins a folder, or a single file, as an entry of its own.
    pub fn begin(&mut self, volume: &str, attributes: &NodeAttributes) {
        self.open.push(0);
        self.add(volume, attributes);
    }

    /// Adds a file to the innermost open folder. A file with several links counts only once, where it is found first.
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

    /// Ends the innermost open folder; adds its sum to the parent's and returns it.
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
