//! Which thread of a process runs, if the run is recorded.

use abi::limits::NEVER;

use crate::cpu;
use crate::lock::SpinLock;
use crate::thread::ThreadRef;
use crate::wait::{self, Waiters, Woken};

/// A process's turn: at most one of its threads runs its code. It is held from a call's return to the next call.
#[derive(Default)]
pub struct Turn(SpinLock<Inner>);

#[derive(Default)]
struct Inner {
    holder: Option<ThreadRef>,
    waiters: Waiters,
}

impl Turn {
    /// No thread has it.
    pub fn reset(&self) {
        *self.0.lock() = Inner::default();
    }

    /// Waits until the calling thread has the turn; false if its process is being ended.
    pub fn take(&self) -> bool {
        loop {
            let mut inner = self.0.lock();
            if inner.holder.is_none_or(|holder| core::ptr::eq(holder, cpu::current())) {
                inner.holder = Some(cpu::current());
                return true;
            }
            let ticket = wait::begin();
            inner.waiters.add(ticket);
            drop(inner);
            if wait::block(ticket, NEVER) == Woken::Killed {
                return false;
            }
        }
    }

    /// Gives the calling thread's turn up.
    pub fn release(&self) {
        let mut inner = self.0.lock();
        if inner.holder.is_some_and(|holder| core::ptr::eq(holder, cpu::current())) {
            inner.holder = None;
            inner.waiters.wake_one();
        }
    }
}
