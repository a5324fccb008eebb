//! Operations under way, and who waits for each.

use alloc::collections::BTreeMap;
use core::future::poll_fn;
use core::task::{Poll, Waker};

use sip::sync::Mutex;

enum Slot<T> {
    Waiting(Option<Waker>),
    Done(T),
}

/// Operations under way, each under a key that no other one has meanwhile: a task waits for an operation,
/// any thread says that it is done.
pub struct Pending<T> {
    slots: Mutex<BTreeMap<usize, Slot<T>>>,
}

impl<T> Pending<T> {
    /// None yet.
    pub const fn new() -> Pending<T> {
        Pending { slots: Mutex::new(BTreeMap::new()) }
    }

    /// An operation is about to be handed to the device.
    pub fn begin(&self, key: usize) {
        self.slots.lock().insert(key, Slot::Waiting(None));
    }

    /// The device did not take it.
    pub fn cancel(&self, key: usize) {
        self.slots.lock().remove(&key);
    }

    /// Waits for what came of an operation that has begun, while other tasks go on.
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

    /// An operation is done. One that nobody has begun, or whose task is gone, is let go.
    pub fn finish(&self, key: usize, outcome: T) {
        let mut slots = self.slots.lock();
        let Some(slot) = slots.get_mut(&key) else { return };
        let before = core::mem::replace(slot, Slot::Done(outcome));
        drop(slots);
        if let Slot::Waiting(Some(waker)) = before {
            waker.wake();
        }
    }

    /// Whether an operation has begun and is not done.
    pub fn is_any_under_way(&self) -> bool {
        self.slots.lock().values().any(|slot| matches!(slot, Slot::Waiting(_)))
    }
}

impl<T> Default for Pending<T> {
    fn default() -> Pending<T> {
        Pending::new()
    }
}
