//! Which thread of a process runs, if the run is recorded.

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use abi::limits::NEVER;

use crate::cpu;
use crate::lock::SpinLock;
use crate::thread::ThreadRef;
use crate::wait::{self, Waiters, Woken};

/// A process's turn: at most one of its threads runs its code. It is held from a call's return to the next call.
#[derive(Default)]
pub struct Turn {
    inner: SpinLock<Inner>,
    /// Address of the thread that has it, or 0: what `inner` says, for a thread that asks whether it is itself.
    holder: AtomicUsize,
    /// Whether more enters the process than its calls return, so that no replay can go on with it.
    is_opaque: AtomicBool,
}

#[derive(Default)]
struct Inner {
    holder: Option<ThreadRef>,
    waiters: Waiters,
}

impl Turn {
    /// No thread has it.
    pub fn reset(&self) {
        *self.inner.lock() = Inner::default();
        if cfg!(feature = "recording") {
            self.holder.store(0, Ordering::Relaxed);
            self.is_opaque.store(false, Ordering::Relaxed);
        }
    }

    /// Notes that the process shares memory with a device, or with its own past, in a way that the ABI does not see.
    pub fn make_opaque(&self) {
        self.is_opaque.store(true, Ordering::Relaxed);
    }

    /// Whether it does.
    pub fn is_opaque(&self) -> bool {
        self.is_opaque.load(Ordering::Relaxed)
    }

    /// Waits until the calling thread has the turn; false if its process is being ended.
    #[inline]
    pub fn take(&self) -> bool {
        self.is_mine() || self.wait()
    }

    /// Whether the calling thread has it.
    #[inline(always)]
    pub fn is_mine(&self) -> bool {
        self.holder.load(Ordering::Relaxed) == address_of(cpu::current())
    }

    fn wait(&self) -> bool {
        loop {
            let mut inner = self.inner.lock();
            if inner.holder.is_none_or(|holder| core::ptr::eq(holder, cpu::current())) {
                inner.holder = Some(cpu::current());
                self.holder.store(address_of(cpu::current()), Ordering::Relaxed);
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
        let mut inner = self.inner.lock();
        if inner.holder.is_some_and(|holder| core::ptr::eq(holder, cpu::current())) {
            inner.holder = None;
            self.holder.store(0, Ordering::Relaxed);
            inner.waiters.wake_one();
        }
    }
}

fn address_of(thread: ThreadRef) -> usize {
    core::ptr::from_ref(thread).addr()
}
