//! A value used by one task at a time.

use core::cell::{RefCell, RefMut};
use core::fmt;
use core::ops::{Deref, DerefMut};

use crate::permits::Permits;

/// A value with a lock that is held across `await`.
pub struct Mutex<T> {
    permits: Permits,
    /// Borrowed by the guard only.
    value: RefCell<T>,
}

impl<T> Mutex<T> {
    /// Creates an unlocked mutex.
    pub const fn new(value: T) -> Mutex<T> {
        Mutex { permits: Permits::new(1), value: RefCell::new(value) }
    }

    /// Waits for the lock.
    pub async fn lock(&self) -> MutexGuard<'_, T> {
        self.permits.take(1).await;
        MutexGuard { value: self.value.borrow_mut(), _lock: Lock(&self.permits) }
    }

    /// Takes the lock if it is free and no task waits for it.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.permits.try_take(1).then(|| MutexGuard { value: self.value.borrow_mut(), _lock: Lock(&self.permits) })
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Mutex<T> {
        Mutex::new(T::default())
    }
}

impl<T: fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Mutex").field(&self.value).finish()
    }
}

struct Lock<'a>(&'a Permits);

impl Drop for Lock<'_> {
    fn drop(&mut self) {
        self.0.give(1);
    }
}

/// The lock of a [`Mutex`], until it is dropped.
#[must_use = "the lock is released when the guard is dropped"]
pub struct MutexGuard<'a, T> {
    /// Dropped before the lock, so that the woken task can borrow.
    value: RefMut<'a, T>,
    _lock: Lock<'a>,
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}
