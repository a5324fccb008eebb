//! Shortest edit script between two sequences of lines, by crate `similar`.

use alloc::vec::Vec;
use core::ops::Range;

use similar::{Algorithm, DiffTag, capture_diff_slices};

/// A replacement of old lines by new lines. One of them may be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Lines removed.
    pub old: Range<usize>,
    /// Lines added.
    pub new: Range<usize>,
}

/// Returns the changes from `old` to `new`; lines with equal numbers are equal.
pub fn of(old: &[u32], new: &[u32]) -> Vec<Change> {
    let mut changes: Vec<Change> = Vec::new();
    for (tag, old, new) in capture_diff_slices(Algorithm::Myers, old, new).iter().map(|op| op.as_tag_tuple()) {
        match changes.last_mut() {
            _ if tag == DiffTag::Equal => {}
            // Adjacent removals and additions are one change.
            Some(last) if last.old.end == old.start && last.new.end == new.start => {
                (last.old.end, last.new.end) = (old.end, new.end);
            }
            _ => changes.push(Change { old, new }),
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(text: &str) -> Vec<u32> {
        text.chars().map(u32::from).collect()
    }

    /// Applies the changes to the old sequence, which must give the new one; returns the number of changed lines.
    fn check(old: &[u32], new: &[u32]) -> usize {
        let (mut made, mut at, mut cost) = (Vec::new(), 0, 0);
        for change in of(old, new) {
            made.extend_from_slice(&old[at..change.old.start]);
            made.extend_from_slice(&new[change.new.clone()]);
            at = change.old.end;
            cost += change.old.len() + change.new.len();
        }
        made.extend_from_slice(&old[at..]);
        assert_eq!(made, new);
        cost
    }

    #[test]
    fn the_papers_example_takes_five_changes() {
        assert_eq!(check(&numbers("abcabba"), &numbers("cbabac")), 5);
        assert_eq!(check(&numbers("same"), &numbers("same")), 0);
        assert_eq!(check(&[], &numbers("ab")), 2);
        assert_eq!(check(&numbers("ab"), &[]), 2);
        assert_eq!(check(&numbers("abc"), &numbers("xyz")), 6);
    }

    /// Cost of the shortest edit script, by the quadratic table.
    fn shortest(old: &[u32], new: &[u32]) -> usize {
        let mut row: Vec<usize> = (0..=new.len()).collect();
        for (i, left) in old.iter().enumerate() {
            let mut diagonal = row[0];
            row[0] = i + 1;
            for (j, right) in new.iter().enumerate() {
                let next = if left == right { diagonal } else { row[j].min(row[j + 1]) + 1 };
                diagonal = core::mem::replace(&mut row[j + 1], next);
            }
        }
        row[new.len()]
    }

    #[test]
    fn ways_are_shortest_for_random_sequences() {
        let mut state = 7_u32;
        let mut random = |below: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) % below
        };
        for _ in 0..2_000 {
            let letters = 1 + random(5);
            let [old, new] = [0, 0].map(|_| (0..random(24)).map(|_| random(letters)).collect::<Vec<u32>>());
            assert_eq!(check(&old, &new), shortest(&old, &new), "{old:?} {new:?}");
        }
    }

    #[test]
    fn files_with_nothing_in_common_end_soon() {
        let old: Vec<u32> = (0..60_000).collect();
        let new: Vec<u32> = (100_000..160_000).collect();
        assert_eq!(check(&old, &new), 120_000);
        let backwards: Vec<u32> = (0..20_000).rev().collect();
        assert!(check(&old[..20_000], &backwards) < 40_000);
    }
}
