//! Relations between holders as bit matrices.
//!
//! Key types: [`Set`] (a set of holders), [`Grid`] (pairs of holders, with the round of the search in which each was
//! found). Deliberately not here: the meaning of a pair.

use alloc::vec;
use alloc::vec::Vec;

const WORD_BITS: usize = u64::BITS as usize;

/// A set of holders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Set {
    words: Vec<u64>,
}

impl Set {
    /// The empty set over `count` holders.
    pub fn empty(count: usize) -> Set {
        Set { words: vec![0; count.div_ceil(WORD_BITS)] }
    }

    /// Returns whether the holder is a member.
    pub fn has(&self, holder: usize) -> bool {
        bit(&self.words, holder)
    }

    /// Adds a holder.
    pub fn insert(&mut self, holder: usize) {
        if let Some(word) = self.words.get_mut(holder / WORD_BITS) {
            *word |= 1 << (holder % WORD_BITS);
        }
    }

    /// Adds another set; returns whether any member was new.
    pub fn add(&mut self, other: &Set) -> bool {
        merge(&mut self.words, &other.words)
    }

    /// The holders, in order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        ones(&self.words)
    }
}

/// Pairs of holders, each with the round in which it was found.
#[derive(Clone, Debug, Default)]
pub struct Grid {
    count: usize,
    rows: Vec<Set>,
    /// By pair; allocated with the first pair.
    found_in: Vec<u16>,
}

impl Grid {
    /// The empty relation over `count` holders.
    pub fn empty(count: usize) -> Grid {
        Grid { count, rows: vec![Set::empty(count); count], found_in: Vec::new() }
    }

    /// Returns whether the pair is present.
    pub fn has(&self, from: usize, to: usize) -> bool {
        self.rows.get(from).is_some_and(|row| row.has(to))
    }

    /// Returns the holders paired with `from`.
    pub fn row(&self, from: usize) -> &Set {
        &self.rows[from]
    }

    /// Returns the holders that `to` is paired with.
    pub fn column(&self, to: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.count).filter(move |&from| self.has(from, to))
    }

    /// Returns the round in which the pair was found; `None` if it is absent.
    pub fn found_in(&self, from: usize, to: usize) -> Option<u16> {
        let is_there = self.has(from, to);
        is_there.then(|| self.found_in.get(from * self.count + to).copied().unwrap_or(0))
    }

    /// Adds a pair; returns whether it was new.
    pub fn insert(&mut self, from: usize, to: usize, round: u16) -> bool {
        if self.has(from, to) {
            return false;
        }
        if self.found_in.is_empty() {
            self.found_in = vec![0; self.count * self.count];
        }
        self.rows[from].insert(to);
        self.found_in[from * self.count + to] = round;
        true
    }

    /// Adds pairs of a holder with each member of a set; returns whether any pair was new.
    pub fn insert_all(&mut self, from: usize, to: &Set, round: u16) -> bool {
        let mut is_new = false;
        for at in 0..to.words.len() {
            let mut fresh = to.words[at] & !self.rows[from].words[at];
            while fresh != 0 {
                is_new |= self.insert(from, at * WORD_BITS + fresh.trailing_zeros() as usize, round);
                fresh &= fresh - 1;
            }
        }
        is_new
    }

    /// Returns whether there are no pairs.
    pub fn is_empty(&self) -> bool {
        self.found_in.is_empty()
    }

    /// Returns the reflexive transitive closure of the pairs, together with those of another relation.
    pub fn closed_with(&self, other: Option<&[Set]>) -> Vec<Set> {
        let mut reach = self.rows.clone();
        for (holder, row) in reach.iter_mut().enumerate() {
            row.insert(holder);
            if let Some(more) = other.and_then(|other| other.get(holder)) {
                row.add(more);
            }
        }
        // The identity, as for most contracts.
        if self.is_empty() && other.is_none() {
            return reach;
        }
        for middle in 0..self.count {
            let through = reach[middle].clone();
            for row in reach.iter_mut().filter(|row| row.has(middle)) {
                row.add(&through);
            }
        }
        reach
    }
}

fn bit(words: &[u64], holder: usize) -> bool {
    words.get(holder / WORD_BITS).is_some_and(|word| word >> (holder % WORD_BITS) & 1 != 0)
}

fn merge(into: &mut [u64], from: &[u64]) -> bool {
    let mut grew = false;
    for (into, from) in into.iter_mut().zip(from) {
        grew |= *from & !*into != 0;
        *into |= from;
    }
    grew
}

fn ones(words: &[u64]) -> impl Iterator<Item = usize> + '_ {
    words.iter().enumerate().flat_map(|(at, &word)| {
        let mut rest = word;
        core::iter::from_fn(move || {
            let next = (rest != 0).then(|| at * WORD_BITS + rest.trailing_zeros() as usize)?;
            rest &= rest - 1;
            Some(next)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_grid_has_each_chain_and_each_holder_itself() {
        let mut grid = Grid::empty(130);
        let mut other = Grid::empty(130);
        assert!(grid.insert(0, 64, 3) && other.insert(64, 129, 4) && grid.insert(129, 1, 5));
        assert!(!grid.insert(0, 64, 9));
        assert_eq!((grid.found_in(0, 64), grid.found_in(64, 0)), (Some(3), None));
        let closed = grid.closed_with(Some(&other.rows));
        assert_eq!(closed[0].iter().collect::<Vec<_>>(), [0, 1, 64, 129]);
        assert_eq!(closed[1].iter().collect::<Vec<_>>(), [1]);
        assert_eq!(grid.closed_with(None)[0].iter().collect::<Vec<_>>(), [0, 64]);
        let mut all = Set::empty(130);
        assert_eq!(all.iter().count(), 0);
        all.insert(64);
        all.insert(128);
        assert!(grid.insert_all(0, &all, 6) && !grid.insert_all(0, &all, 7));
        assert_eq!((grid.found_in(0, 64), grid.found_in(0, 128)), (Some(3), Some(6)));
        assert_eq!(grid.column(64).collect::<Vec<_>>(), [0]);
    }
}
