//! A spin lock and a cell for references to kernel objects.
//!
//! Lock order, outermost first: `Process::life`, `Channel`, `Sync`, the table of hardware, `Device`, then the owner
//! lists of a process, then `Own::compound` of a principal, the graveyard, the cores, slabs, memory, a thread's end, deferred
//! wake-ups, the run queues and the timer queue. Three are taken when none of these is held: the list of contracts,
//! `CHANGE` of the installed programs and the audit ring, which have nothing inside. The reader of the trace stream is
//! taken with none held, and only the events of a processor inside; those are taken inside any other lock. No lock is held over a switch,
//! and no two of the same kind are held at once.

use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

/// Mutual exclusion between processors. A holder is never preempted: interrupts within the kernel only set a flag.
pub struct SpinLock<T> {
    taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the lock gives one processor at a time access to the value, so moving the value between
// processors (Send) is all that is needed.
unsafe impl<T: Send> Sync for SpinLock<T> {}

impl<T> SpinLock<T> {
    /// Creates an unlocked lock.
    pub const fn new(value: T) -> SpinLock<T> {
        SpinLock { taken: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// Spins until the lock is acquired.
    #[inline(always)]
    pub fn lock(&self) -> SpinGuard<'_, T> {
        while self.taken.swap(true, Ordering::Acquire) {
            self.wait();
        }
        SpinGuard { lock: self }
    }

    #[cold]
    #[inline(never)]
    fn wait(&self) {
        let mut spins = 0;
        while self.taken.load(Ordering::Relaxed) {
            spins += 1;
            crate::machine::machine().relax(spins);
        }
    }
}

impl<T: Default> Default for SpinLock<T> {
    fn default() -> Self {
        SpinLock::new(T::default())
    }
}

/// Guard of a held lock.
pub struct SpinGuard<'a, T> {
    lock: &'a SpinLock<T>,
}

impl<T> Deref for SpinGuard<'_, T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: this guard holds the lock.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for SpinGuard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this guard holds the lock, and is borrowed uniquely.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for SpinGuard<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.lock.taken.store(false, Ordering::Release);
    }
}

/// An atomic, optional reference to an object that lives for ever (such as a slab slot).
pub struct AtomicRef<T: 'static> {
    pointer: AtomicPtr<T>,
}

impl<T: Sync + 'static> AtomicRef<T> {
    /// An empty reference.
    pub const fn none() -> AtomicRef<T> {
        AtomicRef { pointer: AtomicPtr::new(null_mut()) }
    }

    /// Loads the reference.
    #[inline(always)]
    pub fn get(&self) -> Option<&'static T> {
        // SAFETY: only `set` stores here, and what it stores is null or a `&'static T`.
        unsafe { self.pointer.load(Ordering::Acquire).as_ref() }
    }

    /// Stores a reference.
    #[inline(always)]
    pub fn set(&self, value: Option<&'static T>) {
        let pointer = value.map_or(null_mut(), |reference| core::ptr::from_ref(reference).cast_mut());
        self.pointer.store(pointer, Ordering::Release);
    }

    /// Takes the reference, leaving none.
    pub fn take(&self) -> Option<&'static T> {
        let value = self.get();
        self.set(None);
        value
    }
}

impl<T: Sync + 'static> Default for AtomicRef<T> {
    fn default() -> Self {
        AtomicRef::none()
    }
}
