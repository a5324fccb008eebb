//! The result of a spawned task.

use alloc::boxed::Box;
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

/// A spawned future, which notes its output.
struct Body<F: Future> {
    /// Boxed by itself: in a block that awaits it, it would take its space twice.
    future: Pin<Box<F>>,
    outcome: Rc<RefCell<Outcome<F::Output>>>,
}

/// Returns a handle, and the future that completes it.
pub(super) fn pair<F: Future>(future: F) -> (Task<F::Output>, impl Future<Output = ()>) {
    let outcome = Rc::new(RefCell::new(Outcome { value: None, waiting: None }));
    let task = Task { outcome: Rc::clone(&outcome) };
    (task, Body { future: Box::pin(future), outcome })
}

impl<F: Future> Future for Body<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Poll::Ready(value) = self.future.as_mut().poll(context) else { return Poll::Pending };
        let waiting = {
            let mut outcome = self.outcome.borrow_mut();
            outcome.value = Some(value);
            outcome.waiting.take()
        };
        if let Some(waker) = waiting {
            waker.wake();
        }
        Poll::Ready(())
    }
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
