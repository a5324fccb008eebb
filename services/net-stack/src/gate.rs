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
