//! Pages of the data cache: aligned pieces of the disk in buffers of the disk's side, with bits for each block of a
//! page.
//!
//! This is bookkeeping alone; [`transfer`](super::transfer) does the disk I/O. A page is in one of three states: clean,
//! in an LRU list from whose end pages are evicted; dirty, in a list ordered by the time of becoming dirty; or in
//! neither list, while the disk reads or writes it.

use alloc::rc::Rc;
use alloc::vec::Vec;
use core::ops::DerefMut;

use task_sync::Notify;

use crate::cache::CacheCounts;

/// Maximum blocks of a page: the bits of a [`Mask`].
pub(super) const MAX_BLOCKS: usize = 64;
/// A bit for each block of a page.
pub(super) type Mask = u64;
/// No page.
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

/// State of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Clean,
    Dirty,
    Nowhere,
}

/// An aligned piece of the disk.
pub(super) struct Page<B> {
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

/// Ends of a linked list of pages.
#[derive(Clone, Copy)]
struct List {
    newest: u32,
    oldest: u32,
    count: usize,
}

const EMPTY: List = List { newest: NONE, oldest: NONE, count: 0 };

/// All pages.
pub(super) struct Pages<B> {
    pages: Vec<Option<Page<B>>>,
    free: Vec<u32>,
    /// Heads of the hash chains; their number is a power of two.
    buckets: Vec<u32>,
    clean: List,
    dirty: List,
    count: usize,
    /// Pages being written, or in the dirty list.
    pub(super) unwritten: usize,
    /// Maximum pages.
    pub(super) capacity: usize,
    pub(super) hits: u64,
    pub(super) misses: u64,
}

impl<B: DerefMut<Target = [u8]>> Pages<B> {
    pub(super) fn new(capacity: usize) -> Pages<B> {
        let buckets = (capacity * 2).clamp(16, 1 << 20).next_power_of_two();
        Pages {
            pages: Vec::new(),
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
        while let Some(page) = self.pages.get(slot as usize).and_then(Option::as_ref) {
            if page.index == index {
                return Some(slot);
            }
            slot = page.chain;
        }
        None
    }

    pub(super) fn get(&self, slot: u32) -> Option<&Page<B>> {
        self.pages.get(slot as usize).and_then(Option::as_ref)
    }

    pub(super) fn get_mut(&mut self, slot: u32) -> Option<&mut Page<B>> {
        self.pages.get_mut(slot as usize).and_then(Option::as_mut)
    }

    /// Returns the page of a piece.
    pub(super) fn page_mut(&mut self, index: u64) -> Option<&mut Page<B>> {
        self.find(index).and_then(|slot| self.get_mut(slot))
    }

    /// Marks a page as recently used.
    pub(super) fn touch(&mut self, slot: u32) {
        if self.clean.newest != slot && self.get(slot).is_some_and(|page| page.place == Place::Clean) {
            self.move_to(slot, Place::Clean);
        }
    }

    /// Inserts an absent piece, in no list and with no valid blocks.
    pub(super) fn insert(&mut self, index: u64, buffer: Option<B>) -> u32 {
        let bucket = self.bucket(index);
        let page = Page {
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
                self.pages[slot as usize] = Some(page);
                slot
            }
            None => {
                self.pages.push(Some(page));
                (self.pages.len() - 1) as u32
            }
        };
        self.buckets[bucket] = slot;
        self.count += 1;
        slot
    }

    /// Removes a page, with its buffer.
    pub(super) fn remove(&mut self, slot: u32) -> Option<B> {
        self.move_to(slot, Place::Nowhere);
        let page = self.pages.get_mut(slot as usize)?.take()?;
        let bucket = self.bucket(page.index);
        if self.buckets[bucket] == slot {
            self.buckets[bucket] = page.chain;
        } else {
            let mut before = self.buckets[bucket];
            while let Some(other) = self.get_mut(before) {
                if other.chain == slot {
                    other.chain = page.chain;
                    break;
                }
                before = other.chain;
            }
        }
        self.free.push(slot);
        self.count -= 1;
        notify(page.idle);
        page.buffer
    }

    /// Evicts the least recently used clean page, for its buffer.
    pub(super) fn evict(&mut self) -> Option<B> {
        let slot = self.clean.oldest;
        self.get(slot)?;
        self.remove(slot)
    }

    pub(super) fn is_full(&self) -> bool {
        self.count >= self.capacity
    }

    /// Moves an idle page to the list of its state.
    pub(super) fn settle(&mut self, slot: u32) {
        let Some(page) = self.get(slot) else { return };
        let place = match page {
            Page { is_busy: true, .. } => Place::Nowhere,
            Page { dirty: 0, .. } => Place::Clean,
            _ => Place::Dirty,
        };
        if self.get(slot).is_some_and(|page| page.place != place) {
            self.move_to(slot, place);
        }
    }

    /// Starts the disk I/O of a page; `writes` is whether it is written.
    pub(super) fn begin_flight(&mut self, slot: u32, writes: bool) {
        self.move_to(slot, Place::Nowhere);
        self.unwritten += usize::from(writes);
        if let Some(page) = self.get_mut(slot) {
            page.is_busy = true;
            page.spoiled = 0;
        }
    }

    /// Ends the disk I/O of a page, and wakes its waiters.
    pub(super) fn end_flight(&mut self, slot: u32, wrote: bool) {
        self.unwritten -= usize::from(wrote);
        let Some(page) = self.get_mut(slot) else { return };
        page.is_busy = false;
        let idle = page.idle.take();
        self.settle(slot);
        notify(idle);
    }

    /// Returns the notification for the end of the page's disk I/O, or `None` if there is none.
    pub(super) fn until_idle(&mut self, slot: u32) -> Option<Rc<Notify>> {
        let page = self.get_mut(slot).filter(|page| page.is_busy)?;
        Some(Rc::clone(page.idle.get_or_insert_default()))
    }

    /// Invalidates blocks of a page whose content is no longer needed.
    pub(super) fn forget(&mut self, index: u64, mask: Mask) {
        let Some(slot) = self.find(index) else { return };
        let Some(page) = self.get_mut(slot) else { return };
        page.valid &= !mask;
        page.dirty &= !mask;
        page.spoiled |= mask;
        self.settle(slot);
    }

    /// Returns the page that has been dirty longest.
    pub(super) fn oldest_dirty(&self) -> Option<u64> {
        self.get(self.dirty.oldest).map(|page| page.index)
    }

    /// Returns the pieces that are dirty or being written, in disk order.
    pub(super) fn unwritten_indices(&self) -> Vec<u64> {
        let pages = self.pages.iter().flatten();
        let mut indices: Vec<u64> =
            pages.filter(|page| page.dirty != 0 || page.is_busy).map(|page| page.index).collect();
        indices.sort_unstable();
        indices
    }

    /// Returns the number of dirty blocks.
    pub(super) fn dirty_blocks(&self) -> u64 {
        let mut slot = self.dirty.oldest;
        let mut blocks = 0;
        while let Some(page) = self.get(slot) {
            blocks += u64::from(page.dirty.count_ones());
            slot = page.newer;
        }
        blocks
    }

    pub(super) fn counts(&self, page_bytes: usize) -> CacheCounts {
        CacheCounts { hits: self.hits, misses: self.misses, bytes: self.count * page_bytes, entries: self.count }
    }

    /// Removes every page.
    pub(super) fn clear(&mut self) {
        for slot in 0..self.pages.len() as u32 {
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

    /// Moves a page from its list to the newest end of another.
    fn move_to(&mut self, slot: u32, place: Place) {
        let Some(page) = self.get_mut(slot) else { return };
        let (former, newer, older) = (page.place, page.newer, page.older);
        (page.place, page.newer, page.older) = (place, NONE, NONE);
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
            if let Some(page) = self.get_mut(newer) {
                page.older = older;
            }
            if let Some(page) = self.get_mut(older) {
                page.newer = newer;
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
            if let Some(page) = self.get_mut(newest) {
                page.newer = slot;
            }
            if let Some(page) = self.get_mut(slot) {
                page.older = newest;
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

    fn pages() -> Pages<Vec<u8>> {
        Pages::new(4)
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
        let mut pages = pages();
        for index in 0..4 {
            let slot = pages.insert(index, Some(alloc::vec![index as u8]));
            pages.settle(slot);
        }
        pages.touch(pages.find(0).unwrap());
        let dirty = pages.find(1).unwrap();
        pages.get_mut(dirty).unwrap().dirty = 1;
        pages.settle(dirty);
        assert_eq!(pages.evict(), Some(alloc::vec![2]));
        assert_eq!(pages.evict(), Some(alloc::vec![3]));
        assert_eq!(pages.evict(), Some(alloc::vec![0]));
        assert_eq!(pages.evict(), None);
        assert_eq!((pages.unwritten, pages.oldest_dirty(), pages.dirty_blocks()), (1, Some(1), 1));
        pages.forget(1, 1);
        assert_eq!((pages.unwritten, pages.evict()), (0, Some(alloc::vec![1])));
    }

    #[test]
    fn slots_and_chains_hold_as_many_as_there_are() {
        let mut pages = pages();
        for index in 0..1000 {
            let slot = pages.insert(index, None);
            pages.settle(slot);
        }
        for index in (0..1000).step_by(3) {
            pages.remove(pages.find(index).unwrap());
        }
        for index in 0..1000 {
            assert_eq!(pages.find(index).is_some(), index % 3 != 0);
        }
        assert_eq!(pages.clean.count, 666);
        pages.begin_flight(pages.find(1).unwrap(), true);
        assert_eq!((pages.clean.count, pages.unwritten), (665, 1));
        pages.end_flight(pages.find(1).unwrap(), true);
        assert_eq!((pages.clean.count, pages.unwritten), (666, 0));
    }
}
