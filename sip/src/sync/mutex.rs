//! A mutex that makes ABI calls only under contention.

use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::Event;
use crate::raw::value as kernel;

const FREE: u32 = 0;
const HELD: u32 = 1;
/// Held, and there may be waiters at the event.
const CONTENDED: u32 = 2;
/// No event yet. No kernel handle has this value.
const NO_EVENT: u64 = 0;

/// A mutual exclusion lock. There is no poisoning: a panic ends the process.
pub struct Mutex<T> {
    state: AtomicU32,
    event: AtomicU64,
    value: UnsafeCell<T>,
}

// SAFETY: one thread at a time accesses the value, so it need not be Sync, only Send.
unsafe impl<T: Send> Sync for Mutex<T> {}

/// Exclusive access to a mutex's value, until it is dropped.
#[must_use = "the lock is released when this is dropped"]
pub struct MutexGuard<'a, T> {
    mutex: &'a Mutex<T>,
    // The thread that acquired the lock has to release it.
    thread: PhantomData<*mut ()>,
}

// SAFETY: a shared guard only hands out `&T`.
unsafe impl<T: Sync> Sync for MutexGuard<'_, T> {}

impl<T> Mutex<T> {
    /// Creates an unlocked mutex.
    pub const fn new(value: T) -> Mutex<T> {
        Mutex { state: AtomicU32::new(FREE), event: AtomicU64::new(NO_EVENT), value: UnsafeCell::new(value) }
    }

    /// Acquires the lock, blocking until it is free.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        if self.state.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_err() {
            self.lock_contended();
        }
        MutexGuard { mutex: self, thread: PhantomData }
    }

    /// Acquires the lock if it is free.
    #[inline]
    fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.state
            .compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed)
            .ok()
            .map(|_| MutexGuard { mutex: self, thread: PhantomData })
    }

    /// Returns the value without locking: `&mut self` excludes other users.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    /// Returns the value.
    pub fn into_inner(mut self) -> T
    where
        T: Default,
    {
        core::mem::take(self.get_mut())
    }

    #[cold]
    fn lock_contended(&self) {
        // The event exists before the state announces a waiter, so that the thread that unlocks sees
        // it. An auto-reset event remembers one set, so an unlock before the wait is not lost.
        let event = self.event_handle();
        while self.state.swap(CONTENDED, Ordering::AcqRel) != FREE {
            // Without an event (the handle quota is exhausted) yield and retry.
            let _ = match event {
                NO_EVENT => kernel::thread_yield(),
                handle => kernel::event_wait(handle, abi::limits::NEVER),
            };
        }
    }

    fn event_handle(&self) -> u64 {
        let present = self.event.load(Ordering::Acquire);
        if present != NO_EVENT {
            return present;
        }
        let Ok(created) = Event::auto() else {
            return NO_EVENT;
        };
        match self.event.compare_exchange(NO_EVENT, created.handle(), Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => created.into_handle(),
            // Another thread was first; `created` is closed.
            Err(first) => first,
        }
    }

    #[inline]
    fn unlock(&self) {
        if self.state.swap(FREE, Ordering::Release) == CONTENDED {
            self.wake_one();
        }
    }

    #[cold]
    fn wake_one(&self) {
        let event = self.event.load(Ordering::Acquire);
        if event != NO_EVENT {
            // The mutex owns the handle.
            let _ = kernel::event_set(event);
        }
    }
}

impl<T> Drop for Mutex<T> {
    fn drop(&mut self) {
        let event = *self.event.get_mut();
        if event != NO_EVENT {
            drop(Event::from_handle(event));
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.try_lock() {
            Some(value) => formatter.debug_tuple("Mutex").field(&*value).finish(),
            None => formatter.write_str("Mutex(held)"),
        }
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this guard is the only one, so no other thread accesses the value.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`; `&mut self` excludes other references from this guard.
        unsafe { &mut *self.mutex.value.get() }
    }
}

impl<T> Drop for MutexGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.mutex.unlock();
    }
}
