//! An endpoint's place in the executor's wait set.

use alloc::rc::Rc;

use super::{Executor, Waiter};
use crate::raw::value as kernel;

/// The place of an endpoint in the wait set of an executor. It outlives the wait for which it was made, so that the next wait
/// for the same endpoint needs no call of the kernel. Dropping it removes the endpoint from the set.
pub struct Member {
    executor: Rc<Executor>,
    key: u64,
    endpoint: u64,
}

impl Member {
    /// The place of the endpoint with this handle, which has been added to the set with this key.
    pub(super) fn new(executor: Rc<Executor>, key: u64, endpoint: u64) -> Member {
        Member { executor, key, endpoint }
    }

    /// Makes this the one to wake; false if the endpoint has been reported, and so has left the set.
    pub(super) fn wakes(&self, waiter: Waiter) -> bool {
        match self.executor.waiting.borrow_mut().get_mut(self.key) {
            Some(place) => {
                *place = waiter;
                true
            }
            None => false,
        }
    }

    /// Whether it is a place of this endpoint in this executor's set.
    pub(super) fn is_of(&self, executor: &Rc<Executor>, endpoint: u64) -> bool {
        self.endpoint == endpoint && Rc::ptr_eq(&self.executor, executor)
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        if self.executor.waiting.borrow_mut().remove(self.key).is_some() {
            // Fails for an endpoint reported meanwhile, which has left the set, and for one that is closed or has moved.
            let _ = kernel::wait_set_remove(self.executor.set, self.endpoint);
        }
    }
}
