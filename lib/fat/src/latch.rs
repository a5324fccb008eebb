//! The outcome of a disk request, for all tasks that wait for it.
//!
//! A [`Completion`] is owned by the task that drives the request; [`Latch`]es, in any number, by its waiters. A
//! completion dropped unused completes with [`DiskError::Gone`], so no waiter hangs when a task is dropped halfway.

use alloc::rc::Rc;
use core::cell::Cell;

use task_sync::Notify;

use crate::DiskError;

#[derive(Default)]
struct State {
    outcome: Cell<Option<Result<(), DiskError>>>,
    ended: Notify,
}

/// Waits for an outcome.
#[derive(Clone)]
pub(crate) struct Latch(Rc<State>);

/// Supplies the outcome, once.
pub(crate) struct Completion(Rc<State>);

/// Creates a latch and its completion.
pub(crate) fn latch() -> (Latch, Completion) {
    let state = Rc::new(State::default());
    (Latch(Rc::clone(&state)), Completion(state))
}

impl Latch {
    /// Waits for the outcome.
    pub(crate) async fn wait(&self) -> Result<(), DiskError> {
        self.0.ended.until(|| self.0.outcome.get().is_some()).await;
        self.0.outcome.get().unwrap_or(Err(DiskError::Gone))
    }

    /// Whether `completion` completes this latch.
    pub(crate) fn is_opened_by(&self, completion: &Completion) -> bool {
        Rc::ptr_eq(&self.0, &completion.0)
    }
}

impl Completion {
    /// Completes the latch.
    pub(crate) fn complete(self, outcome: Result<(), DiskError>) {
        self.0.outcome.set(Some(outcome));
    }
}

impl Drop for Completion {
    fn drop(&mut self) {
        if self.0.outcome.get().is_none() {
            self.0.outcome.set(Some(Err(DiskError::Gone)));
        }
        self.0.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use core::future::Future;
    use core::pin::pin;
    use core::task::{Context, Poll, Waker};

    use super::*;

    fn poll(latch: &Latch) -> Poll<Result<(), DiskError>> {
        pin!(latch.wait()).poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn every_waiter_gets_the_outcome() {
        let (first, completion) = latch();
        let second = first.clone();
        assert!(poll(&first).is_pending() && poll(&second).is_pending());
        completion.complete(Err(DiskError::Short));
        assert_eq!(poll(&first), Poll::Ready(Err(DiskError::Short)));
        assert_eq!(poll(&second), Poll::Ready(Err(DiskError::Short)));
    }

    #[test]
    fn a_dropped_completion_leaves_nobody_waiting() {
        let (waiting, completion) = latch();
        drop(completion);
        assert_eq!(poll(&waiting), Poll::Ready(Err(DiskError::Gone)));
    }
}
