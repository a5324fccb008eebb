//! Operations in flight, and the tasks that wait for them.

use alloc::collections::BTreeMap;
use core::future::poll_fn;
use core::task::{Poll, Waker};

use sip::sync::Mutex;

enum Slot<T> {
    Waiting(Option<Waker>),
    Done(T),
}

/// Operations in flight, each under a key that is unique meanwhile: a task waits for the operation,
/// any thread completes it.
pub struct Pending<T> {
    slots: Mutex<BTreeMap<usize, Slot<T>>>,
}

impl<T> Pending<T> {
    /// Creates an empty set.
    pub const fn new() -> Pending<T> {
        Pending { slots: Mutex::new(BTreeMap::new()) }
    }

    /// Registers an operation, before it is submitted to the device.
    pub fn begin(&self, key: usize) {
        self.slots.lock().insert(key, Slot::Waiting(None));
    }

    /// Removes an operation that the device did not accept.
    pub fn cancel(&self, key: usize) {
        self.slots.lock().remove(&key);
    }

    /// Awaits the result of a registered operation.
    pub async fn wait(&self, key: usize) -> T {
        poll_fn(|context| {
            let mut slots = self.slots.lock();
            match slots.remove(&key) {
                Some(Slot::Done(outcome)) => Poll::Ready(outcome),
                _ => {
                    slots.insert(key, Slot::Waiting(Some(context.waker().clone())));
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// Completes an operation. Without a registered one the result is dropped; if its task is gone, it is kept until
    /// the key is registered again.
    pub fn finish(&self, key: usize, outcome: T) {
        let mut slots = self.slots.lock();
        let Some(slot) = slots.get_mut(&key) else { return };
        let before = core::mem::replace(slot, Slot::Done(outcome));
        drop(slots);
        if let Slot::Waiting(Some(waker)) = before {
            waker.wake();
        }
    }

    /// Returns whether a registered operation is not completed yet.
    pub fn has_pending(&self) -> bool {
        self.slots.lock().values().any(|slot| matches!(slot, Slot::Waiting(_)))
    }
}

impl<T> Default for Pending<T> {
    fn default() -> Pending<T> {
        Pending::new()
    }
}
