//! A reader-writer lock.

use alloc::rc::Rc;
use core::cell::Cell;

use crate::permits::Permits;

/// Readers hold one permit each, a writer all of them.
const ALL: usize = usize::MAX;

/// Lock mode of an [`RwLock`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Shared with other readers.
    Shared,
    /// Exclusive.
    Exclusive,
}

impl Mode {
    fn permits(self) -> usize {
        match self {
            Mode::Shared => 1,
            Mode::Exclusive => ALL,
        }
    }
}

/// A lock without a value: the protected data is elsewhere, such as on a disk. Clones share the lock. A waiting writer
/// blocks later readers, so that a stream of readers cannot starve it.
#[derive(Clone)]
pub struct RwLock(Rc<Inner>);

struct Inner {
    permits: Permits,
    exclusive_holds: Cell<u64>,
}

impl RwLock {
    /// Creates an unlocked lock.
    pub fn new() -> RwLock {
        RwLock(Rc::new(Inner { permits: Permits::new(ALL), exclusive_holds: Cell::new(0) }))
    }

    /// Waits for the lock.
    pub async fn acquire(&self, mode: Mode) -> RwLockGuard {
        self.0.permits.take(mode.permits()).await;
        self.guard(mode)
    }

    /// Takes the lock unless that would wait or overtake a waiter.
    pub fn try_acquire(&self, mode: Mode) -> Option<RwLockGuard> {
        self.0.permits.try_take(mode.permits()).then(|| self.guard(mode))
    }

    /// Returns the number of exclusive holds so far. State observed under the lock is still valid while this is
    /// unchanged.
    pub fn exclusive_holds(&self) -> u64 {
        self.0.exclusive_holds.get()
    }

    fn guard(&self, mode: Mode) -> RwLockGuard {
        if mode == Mode::Exclusive {
            self.0.exclusive_holds.set(self.0.exclusive_holds.get() + 1);
        }
        RwLockGuard { lock: Rc::clone(&self.0), mode }
    }
}

impl Default for RwLock {
    fn default() -> RwLock {
        RwLock::new()
    }
}

/// An [`RwLock`] that is held, until it is dropped.
#[must_use = "the lock is released when the guard is dropped"]
pub struct RwLockGuard {
    lock: Rc<Inner>,
    mode: Mode,
}

impl Drop for RwLockGuard {
    fn drop(&mut self) {
        self.lock.permits.give(self.mode.permits());
    }
}
