//! Live values, and the choice of the next call.
//!
//! Everything is in cells that are borrowed only to insert or remove a value, never during a call of the runtime: the
//! hostile traits call back into the world from inside the runtime.

use alloc::rc::Rc;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::task::Waker;

use sip::channel::Outgoing;
use sip::debug::Sink;
use sip::process::Child;
use sip::select::{Key, WaitSet};
use sip::sync::{Event, Mutex};
use sip::thread::JoinHandle;

use crate::blocks::Block;
use crate::hostile::Hostile;
use crate::messages::{Channel, Held};
use crate::numbers::Numbers;
use crate::{ambient, blocks, messages, others, tasks, waiting};

/// Maximum live values of a kind; beyond it one of them is dropped.
const MAX_OF_A_KIND: usize = 12;
/// Maximum depth of reentrant runtime calls from the hostile traits.
const MAX_DEPTH: u32 = 3;

/// Blocks shared between threads.
pub(crate) type Pool = Arc<Mutex<Vec<Block>>>;

/// Live values of a thread.
pub(crate) struct World {
    pub(crate) numbers: Numbers,
    /// Addresses of the victim's canaries.
    pub(crate) addresses: [u64; 3],
    pub(crate) generations: Cell<u32>,
    pub(crate) pool: Pool,
    pub(crate) blocks: RefCell<Vec<Block>>,
    pub(crate) channels: RefCell<Vec<Channel>>,
    pub(crate) incoming: RefCell<Vec<Held>>,
    pub(crate) outgoing: RefCell<Vec<Outgoing>>,
    pub(crate) heap: RefCell<Vec<Vec<u64>>>,
    pub(crate) sets: RefCell<Vec<(WaitSet<Hostile>, Vec<Key>)>>,
    pub(crate) events: RefCell<Vec<Arc<Event>>>,
    pub(crate) sinks: RefCell<Vec<Arc<Sink>>>,
    pub(crate) threads: RefCell<Vec<JoinHandle<Vec<Block>>>>,
    pub(crate) children: RefCell<Vec<Child>>,
    pub(crate) wakers: RefCell<Vec<Waker>>,
    steps: Cell<u32>,
    depth: Cell<u32>,
}

impl World {
    pub(crate) fn new(seed: u64, addresses: [u64; 3], pool: Pool) -> Rc<World> {
        Rc::new(World {
            numbers: Numbers::new(seed),
            addresses,
            generations: Cell::new(0),
            pool,
            blocks: RefCell::default(),
            channels: RefCell::default(),
            incoming: RefCell::default(),
            outgoing: RefCell::default(),
            heap: RefCell::default(),
            sets: RefCell::default(),
            events: RefCell::default(),
            sinks: RefCell::default(),
            threads: RefCell::default(),
            children: RefCell::default(),
            wakers: RefCell::default(),
            steps: Cell::new(0),
            depth: Cell::new(0),
        })
    }

    /// Makes this many calls, including nested ones.
    pub(crate) fn run(self: &Rc<World>, steps: u32) {
        self.steps.set(steps);
        while self.steps.get() > 0 {
            self.step();
        }
    }

    /// Called from inside the runtime: occasionally makes another call there.
    pub(crate) fn callback(self: &Rc<World>) {
        if self.depth.get() < MAX_DEPTH && self.numbers.once_in(4) {
            self.depth.set(self.depth.get() + 1);
            self.step();
            self.depth.set(self.depth.get() - 1);
        }
    }

    /// Makes one call.
    pub(crate) fn step(self: &Rc<World>) {
        let Some(left) = self.steps.get().checked_sub(1) else { return };
        self.steps.set(left);
        match self.numbers.below(100) {
            0..22 => blocks::step(self),
            22..62 => messages::step(self),
            62..72 => waiting::step(self),
            72..78 => tasks::step(self),
            78..82 => others::step(self),
            _ => ambient::step(self),
        }
    }

    /// Adds a value to the others of its kind.
    pub(crate) fn add<T>(&self, values: &RefCell<Vec<T>>, value: T) {
        let dropped = {
            let mut values = values.borrow_mut();
            values.push(value);
            (values.len() > MAX_OF_A_KIND).then(|| values.swap_remove(self.numbers.below(MAX_OF_A_KIND)))
        };
        drop(dropped);
    }

    /// Removes one of them.
    pub(crate) fn take<T>(&self, values: &RefCell<Vec<T>>) -> Option<T> {
        let mut values = values.borrow_mut();
        if values.is_empty() {
            return None;
        }
        let index = self.numbers.below(values.len());
        Some(values.swap_remove(index))
    }

    pub(crate) fn add_block(&self, block: Block) {
        self.add(&self.blocks, block);
    }

    pub(crate) fn add_channel(&self, channel: Channel) {
        self.add(&self.channels, channel);
    }

    /// Checks that all of this thread's own values are unchanged.
    pub(crate) fn check_everything(self: &Rc<World>) {
        while let Some(thread) = self.take(&self.threads) {
            others::join(self, thread);
        }
        while let Some(child) = self.take(&self.children) {
            others::end(child);
        }
        for block in self.blocks.borrow_mut().iter_mut() {
            block.check();
        }
        ambient::check_heap(&self.heap.borrow());
    }
}

/// Ends the program: an invariant is violated.
pub(crate) fn finding(what: &str) -> ! {
    sip::log!("finding: {what}");
    sip::process::exit(1)
}
