//! Free physical memory during the boot: a short sorted list of ranges.
//!
//! Key type: [`Regions`]. Pure: it touches no memory, so it is tested on the host. Deliberately not
//! here: the use of memory afterwards, by `frames` and the kernel.

/// A range of physical addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Region {
    /// First address.
    pub start: u64,
    /// The address after the last.
    pub end: u64,
}

impl Region {
    /// Returns its size in bytes.
    pub(crate) fn bytes(self) -> u64 {
        self.end.saturating_sub(self.start)
    }
}

/// Maximum number of ranges, more than the memory map of any PC has.
const MOST: usize = 128;

/// Disjoint ranges in ascending order.
pub(crate) struct Regions {
    list: [Region; MOST],
    count: usize,
}

impl Regions {
    /// Creates an empty list.
    pub(crate) const fn new() -> Self {
        Self { list: [Region { start: 0, end: 0 }; MOST], count: 0 }
    }

    /// Returns the ranges.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Region> + '_ {
        self.list[..self.count].iter().copied()
    }

    /// Returns the size of all ranges in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.iter().map(Region::bytes).sum()
    }

    /// Adds a range, merged with those it touches. Ranges beyond the list's capacity are dropped: leaving memory
    /// unused is harmless.
    pub(crate) fn add(&mut self, mut region: Region) {
        if region.bytes() == 0 {
            return;
        }
        let mut kept = 0;
        for index in 0..self.count {
            let other = self.list[index];
            if other.end < region.start || region.end < other.start {
                self.list[kept] = other;
                kept += 1;
            } else {
                region = Region { start: region.start.min(other.start), end: region.end.max(other.end) };
            }
        }
        self.count = kept;
        if kept < MOST {
            let at = self.list[..kept].iter().position(|other| other.start > region.start).unwrap_or(kept);
            self.list.copy_within(at..kept, at + 1);
            self.list[at] = region;
            self.count += 1;
        }
    }

    /// Removes a range.
    pub(crate) fn remove(&mut self, gone: Region) {
        let before = core::mem::replace(self, Self::new());
        for region in before.iter() {
            self.add(Region { start: region.start, end: region.end.min(gone.start).max(region.start) });
            self.add(Region { start: region.start.max(gone.end).min(region.end), end: region.end });
        }
    }

    /// Removes `bytes` bytes, aligned, at the lowest address that is at least `least` and wholly below `below`.
    pub(crate) fn take(&mut self, bytes: u64, alignment: u64, least: u64, below: u64) -> Option<u64> {
        let start = self.iter().find_map(|region| {
            let start = region.start.max(least).checked_next_multiple_of(alignment)?;
            let end = start.checked_add(bytes)?;
            (end <= region.end.min(below)).then_some(start)
        })?;
        self.remove(Region { start, end: start + bytes });
        Some(start)
    }

    /// Returns the largest range.
    pub(crate) fn largest(&self) -> Option<Region> {
        self.iter().max_by_key(|region| region.bytes())
    }

    /// Shrinks all ranges to whole pages.
    pub(crate) fn trim_to_pages(&mut self, page_bytes: u64) {
        let before = core::mem::replace(self, Self::new());
        for region in before.iter() {
            let start = region.start.next_multiple_of(page_bytes);
            self.add(Region { start, end: (region.end / page_bytes * page_bytes).max(start) });
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;

    fn region(start: u64, end: u64) -> Region {
        Region { start, end }
    }

    fn regions(list: &[(u64, u64)]) -> Regions {
        let mut regions = Regions::new();
        list.iter().for_each(|&(start, end)| regions.add(region(start, end)));
        regions
    }

    fn list(regions: &Regions) -> Vec<(u64, u64)> {
        regions.iter().map(|region| (region.start, region.end)).collect()
    }

    #[test]
    fn what_touches_is_joined_and_sorted() {
        assert_eq!(list(&regions(&[(50, 60), (10, 20), (20, 30), (25, 55), (70, 70)])), [(10, 60)]);
        assert_eq!(list(&regions(&[(50, 60), (10, 20)])), [(10, 20), (50, 60)]);
    }

    #[test]
    fn what_is_removed_is_gone_whatever_it_overlaps() {
        let all = [(10, 20), (30, 40)];
        for (gone, left) in [
            ((0, 5), vec![(10, 20), (30, 40)]),
            ((12, 15), vec![(10, 12), (15, 20), (30, 40)]),
            ((15, 35), vec![(10, 15), (35, 40)]),
            ((0, 100), vec![]),
            ((10, 20), vec![(30, 40)]),
        ] {
            let mut regions = regions(&all);
            regions.remove(region(gone.0, gone.1));
            assert_eq!(list(&regions), left, "{gone:?}");
        }
    }

    #[test]
    fn taking_keeps_alignment_and_limits() {
        let mut regions = regions(&[(3, 20), (100, 400)]);
        assert_eq!(regions.take(8, 8, 0, 1000), Some(8));
        assert_eq!(regions.take(8, 8, 0, 1000), Some(104));
        assert_eq!(regions.take(100, 1, 300, 1000), Some(300));
        assert_eq!(regions.take(100, 1, 0, 150), None);
        assert_eq!(regions.take(u64::MAX, 1, 0, u64::MAX), None);
    }

    #[test]
    fn a_full_list_drops_what_it_has_no_room_for() {
        let mut regions = Regions::new();
        (0..1000u64).for_each(|number| regions.add(region(number * 10, number * 10 + 5)));
        assert_eq!(regions.iter().count(), MOST);
        assert_eq!(regions.bytes(), MOST as u64 * 5);
    }
}
