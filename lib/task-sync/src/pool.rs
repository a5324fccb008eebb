//! Values that tasks take and put back.

use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::Poll;

use crate::permits::Permits;

/// Values each used by one task at a time, such as endpoints of one server. A task that does not return its value,
/// because it is no longer usable, shrinks the pool.
pub struct Pool<T> {
    /// One permit per value.
    permits: Permits,
    values: RefCell<Vec<T>>,
    is_closed: Cell<bool>,
}

impl<T> Pool<T> {
    /// Creates an empty pool; [`Pool::take`] waits.
    pub const fn new() -> Pool<T> {
        Pool { permits: Permits::new(0), values: RefCell::new(Vec::new()), is_closed: Cell::new(false) }
    }

    /// Creates a closed pool; [`Pool::take`] returns `None`.
    pub const fn closed() -> Pool<T> {
        Pool { permits: Permits::new(0), values: RefCell::new(Vec::new()), is_closed: Cell::new(true) }
    }

    /// Waits for a value; the one returned last comes first. Returns `None` once the pool is closed.
    pub async fn take(&self) -> Option<T> {
        let mut take = pin!(self.permits.take(1));
        poll_fn(|context| {
            if self.is_closed.get() {
                return Poll::Ready(None);
            }
            take.as_mut().poll(context).map(|()| self.values.borrow_mut().pop())
        })
        .await
    }

    /// Takes a value if there is one and no task waits for it.
    pub fn try_take(&self) -> Option<T> {
        if self.permits.try_take(1) { self.values.borrow_mut().pop() } else { None }
    }

    /// Adds or returns a value. Reopens a closed pool.
    pub fn put(&self, value: T) {
        self.is_closed.set(false);
        self.values.borrow_mut().push(value);
        self.permits.give(1);
    }

    /// Drops the values and makes all waiters return `None`, until a value is added.
    pub fn close(&self) {
        self.is_closed.set(true);
        self.permits.drain();
        let values = self.values.take();
        self.permits.wake_all();
        drop(values);
    }

    /// Returns whether the pool is closed.
    pub fn is_closed(&self) -> bool {
        self.is_closed.get()
    }
}

impl<T> Default for Pool<T> {
    fn default() -> Pool<T> {
        Pool::new()
    }
}
