//! State shared by all conversations: the stack, access checks, and a notification for the packet task.

use core::cell::{Cell, RefCell, RefMut};

use net_stack::{Buffer, Configuration, Limits, Stack};
use network_guard::Guard;
use sip::exheap::ExVec;
use task_sync::Notify;

use crate::gate::Gate;
use crate::interface::Interface;

/// A packet buffer in the form that the driver takes.
pub struct Block(pub ExVec<u8>);

impl Buffer for Block {
    fn bytes(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

/// State shared by all conversations.
pub struct Shared {
    stack: RefCell<Stack<Block>>,
    /// Notified when the packet task has work.
    pub work: Notify,
    /// Admission of readers.
    pub gate: Gate,
    /// Access checks.
    pub guard: Guard,
    /// The interface as last described by its driver.
    pub link: Cell<Link>,
}

/// Properties of an interface.
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

    /// Borrows the stack with its clock set. Never hold it across an await.
    pub fn stack(&self) -> RefMut<'_, Stack<Block>> {
        let mut stack = self.stack.borrow_mut();
        stack.set_time(sip::time::monotonic());
        stack
    }
}
