//! The shortest way from one sequence of lines to another: Myers' algorithm with its linear-space division (*An O(ND)
//! Difference Algorithm and Its Variations*, 1986, section 4b).

use alloc::collections::BTreeSet;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

/// Lines that differ: these of the old sequence stand where these of the new one stand. One of them may be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Lines that are left out.
    pub old: Range<usize>,
    /// Lines that come in.
    pub new: Range<usize>,
}

/// After so many steps a division is taken that may not be the best, so that files that have little in common do not
/// take quadratic time.
const MAX_STEPS: usize = 4_000;

/// What changes from `old` to `new`, whose lines are the same where their numbers are.
pub fn changes(old: &[u32], new: &[u32]) -> Vec<Change> {
    let mut kept = Kept { old: vec![false; old.len()], new: vec![false; new.len()] };
    // Lines that only one of them has cannot be in both, so they take no part in the search.
    let (left, right) = (in_both(old, new), in_both(new, old));
    compare(&left, &right, &mut kept);
    kept.changes()
}

/// A line's number and its place.
type Line = (u32, usize);

/// The lines that the other sequence has as well, with their places.
fn in_both(lines: &[u32], other: &[u32]) -> Vec<Line> {
    let known: BTreeSet<u32> = other.iter().copied().collect();
    let numbered = lines.iter().copied().enumerate().map(|(place, line)| (line, place));
    numbered.filter(|(line, _)| known.contains(line)).collect()
}

/// Finds the lines that are in both. The parts that are still to be compared are a list, not calls in calls.
fn compare(old: &[Line], new: &[Line], kept: &mut Kept) {
    let mut left = Vec::from([(old, new)]);
    while let Some((mut old, mut new)) = left.pop() {
        while let ([(a, x), old_rest @ ..], [(b, y), new_rest @ ..]) = (old, new)
            && a == b
        {
            kept.keep(*x, *y);
            (old, new) = (old_rest, new_rest);
        }
        while let ([old_rest @ .., (a, x)], [new_rest @ .., (b, y)]) = (old, new)
            && a == b
        {
            kept.keep(*x, *y);
            (old, new) = (old_rest, new_rest);
        }
        if old.is_empty() || new.is_empty() {
            continue;
        }
        let (x, y) = middle(old, new);
        if (x, y) == (0, 0) || (x, y) == (old.len(), new.len()) {
            continue;
        }
        left.push((&old[..x], &new[..y]));
        left.push((&old[x..], &new[y..]));
    }
}

/// Lines that are in both.
struct Kept {
    old: Vec<bool>,
    new: Vec<bool>,
}

impl Kept {
    fn keep(&mut self, old: usize, new: usize) {
        self.old[old] = true;
        self.new[new] = true;
    }

    fn changes(&self) -> Vec<Change> {
        let mut changes = Vec::new();
        let (mut old, mut new) = (0, 0);
        while old < self.old.len() || new < self.new.len() {
            let end = |kept: &[bool], from: usize| {
                kept[from..].iter().position(|kept| *kept).map_or(kept.len(), |offset| from + offset)
            };
            let (old_end, new_end) = (end(&self.old, old), end(&self.new, new));
            if old_end > old || new_end > new {
                changes.push(Change { old: old..old_end, new: new..new_end });
            }
            (old, new) = (old_end + 1, new_end + 1);
        }
        changes
    }
}

/// A point on a shortest way from the start of both to their ends, found from both sides at once.
fn middle(old: &[Line], new: &[Line]) -> (usize, usize) {
    let (n, m) = (old.len() as isize, new.len() as isize);
    let delta = n - m;
    let most = ((n + m + 1) / 2).min(MAX_STEPS as isize);
    let offset = most + 1;
    let index = |diagonal: isize| (diagonal + offset) as usize;
    // The furthest x on each diagonal, from the start and (counted from the end) from the end.
    let mut forward = vec![0_isize; (2 * offset + 1) as usize];
    let mut backward = forward.clone();
    for steps in 0..=most {
        for diagonal in (-steps..=steps).step_by(2) {
            let x = furthest(&forward, diagonal, steps, offset);
            let x = slide(x, x - diagonal, |x, y| x < n && y < m && old[x as usize].0 == new[y as usize].0);
            forward[index(diagonal)] = x;
            let mirrored = delta - diagonal;
            if delta % 2 != 0
                && mirrored.abs() < steps
                && x + backward[index(mirrored)] >= n
                && is_inside(x, x - diagonal, n, m)
            {
                return (x as usize, (x - diagonal) as usize);
            }
        }
        for diagonal in (-steps..=steps).step_by(2) {
            let x = furthest(&backward, diagonal, steps, offset);
            let same =
                |x: isize, y: isize| x < n && y < m && old[(n - 1 - x) as usize].0 == new[(m - 1 - y) as usize].0;
            let x = slide(x, x - diagonal, same);
            backward[index(diagonal)] = x;
            let mirrored = delta - diagonal;
            let (from_start, below) = (n - x, m - (x - diagonal));
            if delta % 2 == 0
                && mirrored.abs() <= steps
                && x + forward[index(mirrored)] >= n
                && is_inside(from_start, below, n, m)
            {
                return (from_start as usize, below as usize);
            }
        }
    }
    best_so_far(&forward, n, m, most, offset)
}

fn is_inside(x: isize, y: isize, n: isize, m: isize) -> bool {
    (0..=n).contains(&x) && (0..=m).contains(&y)
}

/// Where a diagonal is entered: from the one beside it that leads further.
fn furthest(reached: &[isize], diagonal: isize, steps: isize, offset: isize) -> isize {
    let at = |diagonal: isize| reached[(diagonal + offset) as usize];
    if steps == 0 {
        0
    } else if diagonal == -steps || (diagonal != steps && at(diagonal - 1) < at(diagonal + 1)) {
        at(diagonal + 1)
    } else {
        at(diagonal - 1) + 1
    }
}

/// Along a diagonal for as long as lines are the same; gives x.
fn slide(mut x: isize, mut y: isize, same: impl Fn(isize, isize) -> bool) -> isize {
    while x >= 0 && y >= 0 && same(x, y) {
        (x, y) = (x + 1, y + 1);
    }
    x
}

/// After too many steps: the point that is furthest from the start.
fn best_so_far(forward: &[isize], n: isize, m: isize, most: isize, offset: isize) -> (usize, usize) {
    let points = (-most..=most).map(|diagonal| (forward[(diagonal + offset) as usize], diagonal));
    let inside = points.map(|(x, diagonal)| (x, x - diagonal)).filter(|(x, y)| is_inside(*x, *y, n, m));
    let best = inside.max_by_key(|(x, y)| x + y).filter(|(x, y)| x + y > 0);
    best.map_or((n as usize / 2, m as usize / 2), |(x, y)| (x as usize, y as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(text: &str) -> Vec<u32> {
        text.chars().map(u32::from).collect()
    }

    /// Applies the changes to the old sequence, which must give the new one; gives how many lines they have.
    fn check(old: &[u32], new: &[u32]) -> usize {
        let (mut made, mut at, mut cost) = (Vec::new(), 0, 0);
        for change in changes(old, new) {
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

    /// Cost of the shortest way, by the table that is quadratic.
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
