//! Synchronization for asynchronous tasks of one thread.
//!
//! [`Mutex`] and [`RwLock`] guard state held across an `await`, [`Semaphore`] bounds the number of concurrent
//! operations, [`Pool`] hands out values such as the channels to a server, and [`Notify`] wakes tasks whose condition
//! may have changed. All of them are fair: they serve waiters in the order of their first poll, and a newcomer never
//! overtakes a waiter. A waiter may be dropped at any time; if it had been woken, the next one is woken instead.
//! Nothing allocates until a task has to wait. Wakers are called with no internal borrow held.
//!
//! Deliberately not here: multi-threaded primitives (`sip::sync`), and timeouts (`client::answer::within`). [Decision
//! 25](../../../docs/decisions/0025-waiting-of-tasks.md) explains why no external crate is used.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod mutex;
mod notify;
mod permits;
mod pool;
mod rwlock;
mod semaphore;

pub use mutex::{Mutex, MutexGuard};
pub use notify::{Notified, Notify};
pub use pool::Pool;
pub use rwlock::{Mode, RwLock, RwLockGuard};
pub use semaphore::{Permit, Semaphore};
