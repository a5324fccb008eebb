//! Ranges of a stream received out of order.

use alloc::vec::Vec;
use core::ops::Range;

/// Maximum number of ranges; a segment that would add one is dropped, to be retransmitted.
const MAX_RANGES: usize = 64;

/// Disjoint, non-adjacent ranges in ascending order.
#[derive(Debug, Default)]
pub(crate) struct Ranges {
    all: Vec<Known>,
    stamp: u64,
}

#[derive(Debug)]
struct Known {
    range: Range<u64>,
    /// Sequence of the last insertion into it.
    stamp: u64,
}

impl Ranges {
    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether a range is contained.
    pub(crate) fn contains(&self, range: &Range<u64>) -> bool {
        self.all.iter().any(|known| known.range.start <= range.start && range.end <= known.range.end)
    }

    /// Whether a range can be inserted within the limit.
    pub(crate) fn has_room_for(&self, range: &Range<u64>) -> bool {
        self.all.len() < MAX_RANGES || self.touching(range).1 > 0
    }

    /// Index and number of the ranges that a range overlaps or touches.
    fn touching(&self, range: &Range<u64>) -> (usize, usize) {
        let first = self.all.partition_point(|known| known.range.end < range.start);
        let end = self.all.partition_point(|known| known.range.start <= range.end);
        (first, end.saturating_sub(first))
    }

    pub(crate) fn add(&mut self, range: Range<u64>) {
        let (first, count) = self.touching(&range);
        let touched = &self.all[first..first + count];
        let start = touched.first().map_or(range.start, |known| known.range.start.min(range.start));
        let end = touched.last().map_or(range.end, |known| known.range.end.max(range.end));
        self.stamp += 1;
        let joined = Known { range: start..end, stamp: self.stamp };
        self.all.splice(first..first + count, [joined]);
    }

    /// Removes the first range if it begins at or before `next`; returns its end.
    pub(crate) fn take_up_to(&mut self, next: u64) -> Option<u64> {
        let front = self.all.first().filter(|known| known.range.start <= next)?;
        let end = front.range.end;
        self.all.remove(0);
        Some(end.max(next))
    }

    /// The ranges, most recently extended first (RFC 2018, section 4).
    pub(crate) fn newest<const N: usize>(&self) -> [Option<Range<u64>>; N] {
        let mut newest: [Option<&Known>; N] = [None; N];
        for known in &self.all {
            let at = newest.iter().position(|other| other.is_none_or(|other| other.stamp < known.stamp));
            if let Some(at) = at {
                newest[at..].rotate_right(1);
                newest[at] = Some(known);
            }
        }
        newest.map(|known| known.map(|known| known.range.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_are_joined_and_the_newest_comes_first() {
        let mut ranges = Ranges::default();
        for range in [10..20, 40..50, 70..80, 30..40] {
            ranges.add(range);
        }
        assert_eq!(ranges.newest(), [Some(30..50), Some(70..80), Some(10..20), None]);
        assert_eq!(ranges.newest(), [Some(30..50), Some(70..80)]);
        assert!(ranges.contains(&(32..48)) && !ranges.contains(&(15..21)));
        ranges.add(15..75);
        assert_eq!(ranges.newest(), [Some(10..80), None]);
        assert_eq!((ranges.take_up_to(9), ranges.take_up_to(10), ranges.is_empty()), (None, Some(80), true));
    }

    #[test]
    fn their_number_has_a_bound() {
        let mut ranges = Ranges::default();
        let mut count = 0;
        for at in 0..1000 {
            let range = at * 10..at * 10 + 5;
            if ranges.has_room_for(&range) {
                ranges.add(range);
                count += 1;
            }
        }
        assert_eq!(count, MAX_RANGES);
        assert!(ranges.has_room_for(&(5..8)), "it touches one");
    }
}
