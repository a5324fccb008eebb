//! Limits the number of readers served between two packet exchanges.
//!
//! A reader that takes a request causes work, and packets to be sent queue behind that work. If all readers were
//! served at once, a long response would wait for its next ACK behind every request that arrived meanwhile, again and
//! again. So each turn serves a few readers in FIFO order, and pending responses proceed in between.
//!
//! Key types: [`Gate`], [`Place`] (a reader's position). The task that exchanges packets opens the gate on each of its
//! turns. Deliberately not here: the data read.

use alloc::collections::VecDeque;
use core::cell::{Cell, RefCell};
use core::task::Waker;

/// Readers served per turn.
const READERS: u64 = 8;

/// Admits a few readers per turn.
#[derive(Default)]
pub struct Gate {
    /// Ticket of the next reader to arrive.
    next: Cell<u64>,
    /// Readers with smaller tickets may enter.
    open_to: Cell<u64>,
    /// Wakers of queued readers from there on, in ticket order.
    waiting: RefCell<VecDeque<Waker>>,
    /// No turns are taken at present.
    is_unattended: Cell<bool>,
}

/// A reader's ticket, once it has one.
#[derive(Default)]
pub struct Place(Option<u64>);

impl Gate {
    /// Begins a turn.
    pub fn open(&self) {
        self.is_unattended.set(false);
        self.open_to.set(self.open_to.get().min(self.next.get()) + READERS);
        self.call(READERS as usize);
    }

    /// Admits all readers until the next turn, which will not be soon.
    pub fn leave_open(&self) {
        self.is_unattended.set(true);
        self.call(usize::MAX);
    }

    /// Whether readers are queued for the next turn.
    pub fn has_waiting(&self) -> bool {
        !self.waiting.borrow().is_empty()
    }

    /// Asks for admission.
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

/// Answer to a reader that asks for admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The reader may read.
    Open,
    /// The reader is queued and will be woken.
    Waits,
    /// The reader is queued, and is the first.
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
    fn each_turn_admits_a_few_in_order() {
        let gate = Gate::default();
        gate.open();
        let mut places: Vec<Place> = (0..20).map(|_| Place::default()).collect();
        let entries: Vec<Entry> = places.iter_mut().map(|place| enter(&gate, place)).collect();
        assert!(entries[..8].iter().all(|entry| *entry == Entry::Open));
        assert_eq!(entries[8], Entry::WaitsFirst);
        assert!(entries[9..].iter().all(|entry| *entry == Entry::Waits) && gate.has_waiting());
        gate.open();
        // A new arrival does not overtake queued readers.
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
    fn unused_turns_do_not_accumulate() {
        let gate = Gate::default();
        (0..10).for_each(|_| gate.open());
        let through = (0..20).filter(|_| enter(&gate, &mut Place::default()) == Entry::Open).count();
        assert_eq!(through, 8);
    }

    #[test]
    fn without_turns_all_readers_are_admitted() {
        let gate = Gate::default();
        let mut place = Place::default();
        assert_eq!(enter(&gate, &mut place), Entry::WaitsFirst);
        gate.leave_open();
        assert_eq!((enter(&gate, &mut place), enter(&gate, &mut Place::default())), (Entry::Open, Entry::Open));
        assert!(!gate.has_waiting());
    }
}
