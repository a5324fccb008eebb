//! Lines of the data cache: aligned pieces of the disk in buffers of the disk's side, with bits for each block of a
//! line.
//!
//! This is bookkeeping alone; [`transfer`](super::transfer) does the disk I/O. A line is in one of three states: clean,
//! in an LRU list from whose end lines are evicted; dirty, in a list ordered by the time of becoming dirty; or in
//! neither list, while the disk reads or writes it.

use alloc::rc::Rc;
use alloc::vec::Vec;
use core::ops::DerefMut;

use task_sync::Notify;

use crate::cache::CacheCounts;

/// Maximum blocks of a line: the bits of a [`Mask`].
pub(super) const MAX_BLOCKS: usize = 64;
/// A bit for each block of a line.
pub(super) type Mask = u64;
/// No line.
const NONE: u32 = u32::MAX;

/// Returns the mask of `count` blocks from `first` on.
pub(super) fn bits(first: usize, count: usize) -> Mask {
    if count >= MAX_BLOCKS { Mask::MAX << first } else { ((1 << count) - 1) << first }
}

/// Returns the first run of set bits, as its start and length.
pub(super) fn first_run(mask: Mask) -> Option<(usize, usize)> {
    let first = mask.trailing_zeros() as usize;
    (mask != 0).then(|| (first, (mask >> first).trailing_ones() as usize))
}

/// State of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Clean,
    Dirty,
    Nowhere,
}

/// An aligned piece of the disk.
pub(super) struct Line<B> {
    /// Index of the piece.
    pub(super) index: u64,
    /// Its bytes; `None` while lent to the disk.
    pub(super) buffer: Option<B>,
    /// Blocks that are up to date.
    pub(super) valid: Mask,
    /// Valid blocks that are not on the disk yet.
    pub(super) dirty: Mask,
    /// Blocks being read or written whose result must be discarded.
    pub(super) spoiled: Mask,
    /// Whether the disk is reading or writing it.
    pub(super) is_busy: bool,
    place: Place,
    newer: u32,
    older: u32,
    chain: u32,
    /// Notified at the end of the disk I/O; present while a task waits.
    idle: Option<Rc<Notify>>,
}

/// Ends of a linked list of lines.
#[derive(Clone, Copy)]
struct List {
    newest: u32,
    oldest: u32,
    count: usize,
}

const EMPTY: List = List { newest: NONE, oldest: NONE, count: 0 };

/// All lines.
pub(super) struct Lines<B> {
    lines: Vec<Option<Line<B>>>,
    free: Vec<u32>,
    /// Heads of the hash chains; their number is a power of two.
    buckets: Vec<u32>,
    clean: List,
    dirty: List,
    count: usize,
    /// Lines being written, or in the dirty list.
    pub(super) unwritten: usize,
    /// Maximum lines.
    pub(super) capacity: usize,
    pub(super) hits: u64,
    pub(super) misses: u64,
}

impl<B: DerefMut<Target = [u8]>> Lines<B> {
    pub(super) fn new(capacity: usize) -> Lines<B> {
        let buckets = (capacity * 2).clamp(16, 1 << 20).next_power_of_two();
        Lines {
            lines: Vec::new(),
            free: Vec::new(),
            buckets: alloc::vec![NONE; buckets],
            clean: EMPTY,
            dirty: EMPTY,
            count: 0,
            unwritten: 0,
            capacity,
            hits: 0,
            misses: 0,
        }
    }

    fn bucket(&self, index: u64) -> usize {
        // Multiplicative hash that spreads sequences and strides over the buckets.
        (index.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & (self.buckets.len() - 1)
    }

    /// Returns the slot of a piece, if it is cached.
    pub(super) fn find(&self, index: u64) -> Option<u32> {
        let mut slot = self.buckets[self.bucket(index)];
        while let Some(line) = self.lines.get(slot as usize).and_then(Option::as_ref) {
            if line.index == index {
                return Some(slot);
            }
            slot = line.chain;
        }
        None
    }

    pub(super) fn get(&self, slot: u32) -> Option<&Line<B>> {
        self.lines.get(slot as usize).and_then(Option::as_ref)
    }

    pub(super) fn get_mut(&mut self, slot: u32) -> Option<&mut Line<B>> {
        self.lines.get_mut(slot as usize).and_then(Option::as_mut)
    }

    /// Returns the line of a piece.
    pub(super) fn line_mut(&mut self, index: u64) -> Option<&mut Line<B>> {
        self.find(index).and_then(|slot| self.get_mut(slot))
    }

    /// Marks a line as recently used.
    pub(super) fn touch(&mut self, slot: u32) {
        if self.clean.newest != slot && self.get(slot).is_some_and(|line| line.place == Place::Clean) {
            self.move_to(slot, Place::Clean);
        }
    }

    /// Inserts an absent piece, in no list and with no valid blocks.
    pub(super) fn insert(&mut self, index: u64, buffer: Option<B>) -> u32 {
        let bucket = self.bucket(index);
        let line = Line {
            index,
            buffer,
            valid: 0,
            dirty: 0,
            spoiled: 0,
            is_busy: false,
            place: Place::Nowhere,
            newer: NONE,
            older: NONE,
            chain: self.buckets[bucket],
            idle: None,
        };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.lines[slot as usize] = Some(line);
                slot
            }
            None => {
                self.lines.push(Some(line));
                (self.lines.len() - 1) as u32
            }
        };
        self.buckets[bucket] = slot;
        self.count += 1;
        slot
    }

    /// Removes a line, with its buffer.
    pub(super) fn remove(&mut self, slot: u32) -> Option<B> {
        self.move_to(slot, Place::Nowhere);
        let line = self.lines.get_mut(slot as usize)?.take()?;
        let bucket = self.bucket(line.index);
        if self.buckets[bucket] == slot {
            self.buckets[bucket] = line.chain;
        } else {
            let mut before = self.buckets[bucket];
            while let Some(other) = self.get_mut(before) {
                if other.chain == slot {
                    other.chain = line.chain;
                    break;
                }
                before = other.chain;
            }
        }
        self.free.push(slot);
        self.count -= 1;
        notify(line.idle);
        line.buffer
    }

    /// Evicts the least recently used clean line, for its buffer.
    pub(super) fn evict(&mut self) -> Option<B> {
        let slot = self.clean.oldest;
        self.get(slot)?;
        self.remove(slot)
    }

    pub(super) fn is_full(&self) -> bool {
        self.count >= self.capacity
    }

    /// Moves an idle line to the list of its state.
    pub(super) fn settle(&mut self, slot: u32) {
        let Some(line) = self.get(slot) else { return };
        let place = match line {
            Line { is_busy: true, .. } => Place::Nowhere,
            Line { dirty: 0, .. } => Place::Clean,
            _ => Place::Dirty,
        };
        if self.get(slot).is_some_and(|line| line.place != place) {
            self.move_to(slot, place);
        }
    }

    /// Starts the disk I/O of a line; `writes` is whether it is written.
    pub(super) fn begin_flight(&mut self, slot: u32, writes: bool) {
        self.move_to(slot, Place::Nowhere);
        self.unwritten += usize::from(writes);
        if let Some(line) = self.get_mut(slot) {
            line.is_busy = true;
            line.spoiled = 0;
        }
    }

    /// Ends the disk I/O of a line, and wakes its waiters.
    pub(super) fn end_flight(&mut self, slot: u32, wrote: bool) {
        self.unwritten -= usize::from(wrote);
        let Some(line) = self.get_mut(slot) else { return };
        line.is_busy = false;
        let idle = line.idle.take();
        self.settle(slot);
        notify(idle);
    }

    /// Returns the notification for the end of the line's disk I/O, or `None` if there is none.
    pub(super) fn until_idle(&mut self, slot: u32) -> Option<Rc<Notify>> {
        let line = self.get_mut(slot).filter(|line| line.is_busy)?;
        Some(Rc::clone(line.idle.get_or_insert_default()))
    }

    /// Invalidates blocks of a line whose content is no longer needed.
    pub(super) fn forget(&mut self, index: u64, mask: Mask) {
        let Some(slot) = self.find(index) else { return };
        let Some(line) = self.get_mut(slot) else { return };
        line.valid &= !mask;
        line.dirty &= !mask;
        line.spoiled |= mask;
        self.settle(slot);
    }

    /// Returns the line that has been dirty longest.
    pub(super) fn oldest_dirty(&self) -> Option<u64> {
        self.get(self.dirty.oldest).map(|line| line.index)
    }

    /// Returns the pieces that are dirty or being written, in disk order.
    pub(super) fn unwritten_indices(&self) -> Vec<u64> {
        let lines = self.lines.iter().flatten();
        let mut indices: Vec<u64> =
            lines.filter(|line| line.dirty != 0 || line.is_busy).map(|line| line.index).collect();
        indices.sort_unstable();
        indices
    }

    /// Returns the number of dirty blocks.
    pub(super) fn dirty_blocks(&self) -> u64 {
        let mut slot = self.dirty.oldest;
        let mut blocks = 0;
        while let Some(line) = self.get(slot) {
            blocks += u64::from(line.dirty.count_ones());
            slot = line.newer;
        }
        blocks
    }

    pub(super) fn counts(&self, line_bytes: usize) -> CacheCounts {
        CacheCounts { hits: self.hits, misses: self.misses, bytes: self.count * line_bytes, entries: self.count }
    }

    /// Removes every line.
    pub(super) fn clear(&mut self) {
        for slot in 0..self.lines.len() as u32 {
            self.remove(slot);
        }
    }

    fn list(&mut self, place: Place) -> Option<&mut List> {
        match place {
            Place::Clean => Some(&mut self.clean),
            Place::Dirty => Some(&mut self.dirty),
            Place::Nowhere => None,
        }
    }

    /// Moves a line from its list to the newest end of another.
    fn move_to(&mut self, slot: u32, place: Place) {
        let Some(line) = self.get_mut(slot) else { return };
        let (former, newer, older) = (line.place, line.newer, line.older);
        (line.place, line.newer, line.older) = (place, NONE, NONE);
        if former == Place::Dirty {
            self.unwritten -= 1;
        }
        if let Some(list) = self.list(former) {
            list.count -= 1;
            if list.newest == slot {
                list.newest = older;
            }
            if list.oldest == slot {
                list.oldest = newer;
            }
            if let Some(line) = self.get_mut(newer) {
                line.older = older;
            }
            if let Some(line) = self.get_mut(older) {
                line.newer = newer;
            }
        }
        if place == Place::Dirty {
            self.unwritten += 1;
        }
        if let Some(list) = self.list(place) {
            let newest = core::mem::replace(&mut list.newest, slot);
            list.count += 1;
            if newest == NONE {
                list.oldest = slot;
            }
            if let Some(line) = self.get_mut(newest) {
                line.newer = slot;
            }
            if let Some(line) = self.get_mut(slot) {
                line.older = newest;
            }
        }
    }
}

fn notify(idle: Option<Rc<Notify>>) {
    idle.into_iter().for_each(|idle| idle.notify_all());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines() -> Lines<Vec<u8>> {
        Lines::new(4)
    }

    #[test]
    fn runs_of_bits() {
        assert_eq!(bits(0, 64), u64::MAX);
        assert_eq!(bits(3, 2), 0b11000);
        assert_eq!(first_run(0), None);
        assert_eq!(first_run(0b0110_0100), Some((2, 1)));
        assert_eq!(first_run(u64::MAX), Some((0, 64)));
    }

    #[test]
    fn the_clean_line_used_longest_ago_goes_first() {
        let mut lines = lines();
        for index in 0..4 {
            let slot = lines.insert(index, Some(alloc::vec![index as u8]));
            lines.settle(slot);
        }
        lines.touch(lines.find(0).unwrap());
        let dirty = lines.find(1).unwrap();
        lines.get_mut(dirty).unwrap().dirty = 1;
        lines.settle(dirty);
        assert_eq!(lines.evict(), Some(alloc::vec![2]));
        assert_eq!(lines.evict(), Some(alloc::vec![3]));
        assert_eq!(lines.evict(), Some(alloc::vec![0]));
        assert_eq!(lines.evict(), None);
        assert_eq!((lines.unwritten, lines.oldest_dirty(), lines.dirty_blocks()), (1, Some(1), 1));
        lines.forget(1, 1);
        assert_eq!((lines.unwritten, lines.evict()), (0, Some(alloc::vec![1])));
    }

    #[test]
    fn slots_and_chains_hold_as_many_as_there_are() {
        let mut lines = lines();
        for index in 0..1000 {
            let slot = lines.insert(index, None);
            lines.settle(slot);
        }
        for index in (0..1000).step_by(3) {
            lines.remove(lines.find(index).unwrap());
        }
        for index in 0..1000 {
            assert_eq!(lines.find(index).is_some(), index % 3 != 0);
        }
        assert_eq!(lines.clean.count, 666);
        lines.begin_flight(lines.find(1).unwrap(), true);
        assert_eq!((lines.clean.count, lines.unwritten), (665, 1));
        lines.end_flight(lines.find(1).unwrap(), true);
        assert_eq!((lines.clean.count, lines.unwritten), (666, 0));
    }
}
