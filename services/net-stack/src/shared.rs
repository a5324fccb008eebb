//! What all conversations share: the stack, who may do what, and a notification for the task that moves packets.

use core::cell::{Cell, RefCell, RefMut};

use net_stack::{Buffer, Configuration, Limits, Stack};
use network_guard::Guard;
use sip::exheap::ExVec;
use task_sync::Notify;

use crate::gate::Gate;
use crate::interface::Interface;

/// A buffer that the interface's driver takes.
pub struct Block(pub ExVec<u8>);

impl Buffer for Block {
    fn bytes(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

/// What all conversations share.
pub struct Shared {
    stack: RefCell<Stack<Block>>,
    /// Notified when the task that moves packets has something to do.
    pub work: Notify,
    /// Who may read, and when.
    pub gate: Gate,
    /// Who may do what.
    pub guard: Guard,
    /// The interface as its driver described it last.
    pub link: Cell<Link>,
}

/// What a driver says of its interface.
#[derive(Clone, Copy)]
pub struct Link {
    pub hardware: [u8; 6],
    pub mtu: u32,
    pub bits_per_s: u64,
}

impl Shared {
    pub fn new(interface: &Interface, limits: Limits, seed: [u8; 32], guard: Guard) -> Shared {
        let configuration = Configuration {
            hardware: interface.hardware,
            mtu: interface.mtu,
            features: interface.features,
            limits,
            seed,
        };
        Shared {
            stack: RefCell::new(Stack::new(configuration)),
            work: Notify::new(),
            gate: Gate::default(),
            guard,
            link: Cell::new(interface.link),
        }
    }

    /// The stack, which is told the time. Not to be held while something is awaited.
    pub fn stack(&self) -> RefMut<'_, Stack<Block>> {
        let mut stack = self.stack.borrow_mut();
        stack.set_time(sip::time::monotonic());
        stack
    }
}
