//! The result of a spawned task.

use alloc::rc::Rc;
use core::cell::RefCell;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

struct Outcome<T> {
    value: Option<T>,
    waiting: Option<Waker>,
}

/// Handle to a spawned task; awaiting it returns the task's result. Dropping it detaches the task.
pub struct Task<T> {
    outcome: Rc<RefCell<Outcome<T>>>,
}

/// Returns a handle, and the future that completes it.
pub(super) fn pair<F: Future>(future: F) -> (Task<F::Output>, impl Future<Output = ()>) {
    let outcome = Rc::new(RefCell::new(Outcome { value: None, waiting: None }));
    let task = Task { outcome: Rc::clone(&outcome) };
    let body = async move {
        let value = future.await;
        let waiting = {
            let mut outcome = outcome.borrow_mut();
            outcome.value = Some(value);
            outcome.waiting.take()
        };
        if let Some(waker) = waiting {
            waker.wake();
        }
    };
    (task, body)
}

impl<T> Future for Task<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let mut outcome = self.outcome.borrow_mut();
        match outcome.value.take() {
            Some(value) => Poll::Ready(value),
            None => {
                outcome.waiting = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}
