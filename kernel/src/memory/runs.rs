//! Free runs of the arena's pages: a buddy system, short runs that were freed recently, and room behind long ones.
//!
//! Deliberately not here: clearing, accounts.

use alloc::collections::BTreeMap;

use buddy_system_allocator::FrameAllocator;

/// Runs of at least this many pages keep what is free behind them, so that they can grow in place: 1 MiB.
const GROWING_PAGES: usize = 256;
/// Runs of more than 1/`ROOMY_PART` of the arena are not placed for the sake of room behind them.
const ROOMY_PART: usize = 16;
const ORDERS: usize = 32;
/// Maximum length of runs cached unmerged when freed, in pages; and number of runs cached per length.
const RECENT_PAGES: usize = 4;
const RECENT_RUNS: usize = 32;

/// Free page runs.
pub(super) struct Runs {
    free: FrameAllocator<ORDERS>,
    /// Recently freed short runs, by their pages less one: the buddy system would merge each, and split it again for
    /// the next SIP.
    recent: [Recent; RECENT_PAGES],
    /// Free pages behind long runs, by their first: their number. They are for the growth of these runs, until memory
    /// is short.
    rooms: BTreeMap<usize, usize>,
    /// Number of all pages.
    pages: usize,
}

/// Free runs of one length.
#[derive(Default)]
struct Recent {
    first: [usize; RECENT_RUNS],
    count: usize,
}

impl Runs {
    /// All pages of the arena, free.
    pub(super) fn new(pages: usize) -> Runs {
        let mut free = FrameAllocator::new();
        free.add_frame(0, pages);
        Runs { free, recent: Default::default(), rooms: BTreeMap::new(), pages }
    }

    /// Allocates exactly this many pages.
    pub(super) fn take(&mut self, count: usize) -> Option<usize> {
        let recent = count.checked_sub(1).and_then(|index| self.recent.get_mut(index));
        if let Some(first) = recent.and_then(Recent::pop) {
            return Some(first);
        }
        if let Some(first) = self.take_new(count) {
            return Some(first);
        }
        while let Some((first, room)) = self.rooms.pop_first() {
            give_run(&mut self.free, first, room);
        }
        for (index, recent) in self.recent.iter_mut().enumerate() {
            while let Some(first) = recent.pop() {
                give_run(&mut self.free, first, index + 1);
            }
        }
        take_run(&mut self.free, count)
    }

    /// Takes a run from the buddy system; a long one, where it can double in place, if there is such a place.
    fn take_new(&mut self, count: usize) -> Option<usize> {
        if count < GROWING_PAGES {
            return take_run(&mut self.free, count);
        }
        let whole = count.checked_next_power_of_two()?;
        let is_roomy = whole <= self.pages / ROOMY_PART;
        let roomy = if is_roomy { self.free.alloc(whole * 2).map(|first| (first, whole * 2)) } else { None };
        let (first, all) = roomy.or_else(|| self.free.alloc(whole).map(|first| (first, whole)))?;
        self.keep_room(first + count, all - count);
        Some(first)
    }

    fn keep_room(&mut self, first: usize, count: usize) {
        if count > 0 {
            self.rooms.insert(first, count);
        }
    }

    /// Takes pages that begin at this one, behind a long run, if they are free.
    pub(super) fn extend(&mut self, end: usize, more: usize) -> bool {
        match self.rooms.get(&end) {
            Some(&room) if room >= more => {
                self.rooms.remove(&end);
                self.keep_room(end + more, room - more);
                true
            }
            _ => false,
        }
    }

    /// Frees a whole run, with the room behind it.
    pub(super) fn give(&mut self, first: usize, count: usize) {
        if count >= GROWING_PAGES
            && let Some(room) = self.rooms.remove(&(first + count))
        {
            give_run(&mut self.free, first + count, room);
        }
        let recent = count.checked_sub(1).and_then(|index| self.recent.get_mut(index));
        if !recent.is_some_and(|recent| recent.push(first)) {
            give_run(&mut self.free, first, count);
        }
    }
}

impl Recent {
    fn pop(&mut self) -> Option<usize> {
        self.count = self.count.checked_sub(1)?;
        self.first.get(self.count).copied()
    }

    /// Caches a run; returns false if there is no room.
    fn push(&mut self, first: usize) -> bool {
        let place = self.first.get_mut(self.count);
        self.count += usize::from(place.is_some());
        place.map(|place| *place = first).is_some()
    }
}

/// Takes a run of exactly this many pages. The rest of the buddy system's power of two goes back at once.
fn take_run(free: &mut FrameAllocator<ORDERS>, count: usize) -> Option<usize> {
    let whole = count.checked_next_power_of_two()?;
    let first = free.alloc(whole)?;
    give_run(free, first + count, whole - count);
    Some(first)
}

/// Frees pages in aligned pieces, each a power of two.
fn give_run(free: &mut FrameAllocator<ORDERS>, mut first: usize, mut count: usize) {
    while count > 0 {
        let aligned = if first == 0 { count } else { 1 << first.trailing_zeros() };
        let piece = aligned.min(1 << count.ilog2());
        free.dealloc(first, piece);
        first += piece;
        count -= piece;
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn short_runs_that_are_kept_are_there_for_a_long_one() {
        const PAGES: usize = 256;
        let mut runs = Runs::new(PAGES);
        for count in [1, 2, 3, 4, 5] {
            let taken: Vec<usize> = core::iter::from_fn(|| runs.take(count)).collect();
            assert!(taken.len() >= PAGES / 8, "{} runs of {count} pages", taken.len());
            let mut sorted = taken.clone();
            sorted.sort_unstable();
            assert!(sorted.windows(2).all(|pair| pair[1] - pair[0] >= count), "runs of {count} pages overlap");
            taken.iter().for_each(|&first| runs.give(first, count));
            let all = runs.take(PAGES).expect("all pages are free");
            runs.give(all, PAGES);
        }
        assert_eq!(runs.take(PAGES + 1), None);
        assert_eq!(runs.take(usize::MAX), None);
    }

    #[test]
    fn a_long_run_grows_in_place_until_its_room_is_used_up_or_wanted() {
        const PAGES: usize = 4 * GROWING_PAGES;
        let mut runs = Runs::new(PAGES);
        let first = runs.take(GROWING_PAGES + 1).expect("all are free");
        let end = first + GROWING_PAGES + 1;
        assert!(runs.extend(end, 16), "there is room");
        assert!(!runs.extend(end, 16), "these are taken");
        assert!(!runs.extend(end + 16, GROWING_PAGES), "this is more than the room");
        assert!(!runs.extend(first + 1, 1), "no run ends here");
        // Who wants all that is left gets it: the room is given up.
        let short: Vec<usize> = core::iter::from_fn(|| runs.take(1)).collect();
        assert_eq!(short.len(), PAGES - GROWING_PAGES - 17);
        assert!(!runs.extend(end + 16, 1), "the room is gone");
        runs.give(first, GROWING_PAGES + 17);
        short.into_iter().for_each(|page| runs.give(page, 1));
        let all = runs.take(PAGES).expect("all are free again");
        runs.give(all, PAGES);
        // A run that is freed takes its room with it.
        let first = runs.take(GROWING_PAGES + 1).expect("all are free");
        runs.give(first, GROWING_PAGES + 1);
        assert!(runs.rooms.is_empty() && runs.take(PAGES).is_some());
    }
}
