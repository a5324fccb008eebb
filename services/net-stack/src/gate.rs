//! How many readers get what has come between two exchanges of packets.
//!
//! Whoever reads a request makes work for others, and what is sent waits behind that work. Where all readers were
//! answered at once, a long answer would wait for its next acknowledgement behind all requests that came meanwhile, each
//! time anew. So a few are answered in each turn, in the order in which they had something to read, and the packets of
//! answers that were begun go on in between.
//!
//! Key types: [`Gate`], [`Place`] (of one reader). The task that moves packets opens the gate for each of its turns.
//! Deliberately not here: what is read.

use alloc::collections::VecDeque;
use core::cell::{Cell, RefCell};
use core::task::Waker;

/// Readers that are answered in a turn.
const READERS: u64 = 8;

/// Lets a few readers through in each turn.
#[derive(Default)]
pub struct Gate {
    /// The number of the next reader that comes.
    next: Cell<u64>,
    /// Readers with a smaller number may go through.
    open_to: Cell<u64>,
    /// Those from there on, in their order.
    waiting: RefCell<VecDeque<Waker>>,
    /// Nobody takes turns at present.
    is_unattended: Cell<bool>,
}

/// A reader's place in the order, once it has one.
#[derive(Default)]
pub struct Place(Option<u64>);

impl Gate {
    /// Begins a turn.
    pub fn open(&self) {
        self.is_unattended.set(false);
        self.open_to.set(self.open_to.get().min(self.next.get()) + READERS);
        self.call(READERS as usize);
    }

    /// Lets everybody through until the next turn begins: there is none for a while.
    pub fn leave_open(&self) {
        self.is_unattended.set(true);
        self.call(usize::MAX);
    }

    /// Whether readers wait for the next turn.
    pub fn has_waiting(&self) -> bool {
        !self.waiting.borrow().is_empty()
    }

    /// Whether the reader may go through.
    pub fn enter(&self, place: &mut Place, waker: &Waker) -> Entry {
        if self.is_unattended.get() || place.0.is_some_and(|number| number < self.open_to.get()) {
            return Entry::Open;
        }
        if place.0.is_some() {
            return Entry::Waits;
        }
        let number = self.next.get();
        self.next.set(number + 1);
        place.0 = Some(number);
        if number < self.open_to.get() {
            return Entry::Open;
        }
        let mut waiting = self.waiting.borrow_mut();
        waiting.push_back(waker.clone());
        if waiting.len() == 1 { Entry::WaitsFirst } else { Entry::Waits }
    }

    fn call(&self, most: usize) {
        let called: VecDeque<Waker> = {
            let mut waiting = self.waiting.borrow_mut();
            let count = waiting.len().min(most);
            waiting.drain(..count).collect()
        };
        called.into_iter().for_each(Waker::wake);
    }
}

/// What a reader is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// It may read.
    Open,
    /// It is called when it may.
    Waits,
    /// So it is, and nobody waited before.
    WaitsFirst,
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn enter(gate: &Gate, place: &mut Place) -> Entry {
        gate.enter(place, Waker::noop())
    }

    #[test]
    fn a_few_go_through_in_each_turn_in_their_order() {
        let gate = Gate::default();
        gate.open();
        let mut places: Vec<Place> = (0..20).map(|_| Place::default()).collect();
        let entries: Vec<Entry> = places.iter_mut().map(|place| enter(&gate, place)).collect();
        assert!(entries[..8].iter().all(|entry| *entry == Entry::Open));
        assert_eq!(entries[8], Entry::WaitsFirst);
        assert!(entries[9..].iter().all(|entry| *entry == Entry::Waits) && gate.has_waiting());
        gate.open();
        // Who comes now does not overtake those that wait.
        assert_eq!(enter(&gate, &mut Place::default()), Entry::Waits);
        let through =
            places[8..].iter_mut().map(|place| enter(&gate, place)).filter(|entry| *entry == Entry::Open).count();
        assert_eq!(through, 8);
        gate.open();
        assert!(places.iter_mut().all(|place| enter(&gate, place) == Entry::Open));
        assert!(!gate.has_waiting());
        assert_eq!(enter(&gate, &mut Place::default()), Entry::Open, "there are places left");
    }

    #[test]
    fn turns_that_nobody_used_are_not_saved_up() {
        let gate = Gate::default();
        (0..10).for_each(|_| gate.open());
        let through = (0..20).filter(|_| enter(&gate, &mut Place::default()) == Entry::Open).count();
        assert_eq!(through, 8);
    }

    #[test]
    fn without_turns_everybody_goes_through() {
        let gate = Gate::default();
        let mut place = Place::default();
        assert_eq!(enter(&gate, &mut place), Entry::WaitsFirst);
        gate.leave_open();
        assert_eq!((enter(&gate, &mut place), enter(&gate, &mut Place::default())), (Entry::Open, Entry::Open));
        assert!(!gate.has_waiting());
    }
}
