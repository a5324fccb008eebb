//! Waiting, beside the other tasks of the one thread: for a change, for one's turn, for a deadline.

use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::{Poll, Waker};

use sip::{Deadline, executor};

/// What many tasks wait for at once: that something has changed.
#[derive(Default)]
pub(crate) struct Notice {
    changes: Cell<u64>,
    waiting: RefCell<Vec<Waker>>,
}

impl Notice {
    /// Wakes all who wait.
    pub(crate) fn tell(&self) {
        self.changes.set(self.changes.get().wrapping_add(1));
        let waiting = core::mem::take(&mut *self.waiting.borrow_mut());
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Waits until `done` says that it is so, looking again after each change.
    pub(crate) async fn until(&self, mut done: impl FnMut() -> bool) {
        while !done() {
            let seen = self.changes.get();
            poll_fn(|context| {
                if self.changes.get() != seen {
                    return Poll::Ready(());
                }
                self.waiting.borrow_mut().push(context.waker().clone());
                Poll::Pending
            })
            .await;
        }
    }
}

/// The one endpoint of a kind, for whose turn it is.
pub(crate) struct Turn<E> {
    state: RefCell<Held<E>>,
    freed: Notice,
}

enum Held<E> {
    Idle(E),
    Busy,
    Gone,
}

impl<E> Turn<E> {
    /// Without an endpoint yet.
    pub(crate) fn new() -> Turn<E> {
        Turn { state: RefCell::new(Held::Gone), freed: Notice::default() }
    }

    /// Gives an endpoint in, or back.
    pub(crate) fn put(&self, endpoint: E) {
        *self.state.borrow_mut() = Held::Idle(endpoint);
        self.freed.tell();
    }

    /// There is no endpoint any more.
    pub(crate) fn clear(&self) {
        *self.state.borrow_mut() = Held::Gone;
        self.freed.tell();
    }

    /// The endpoint, when nobody else has it; `None` if there is none. Whoever gets it gives it back or clears.
    pub(crate) async fn take(&self) -> Option<E> {
        self.freed.until(|| !matches!(&*self.state.borrow(), Held::Busy)).await;
        // Nothing can come between: there is one thread.
        let mut state = self.state.borrow_mut();
        match core::mem::replace(&mut *state, Held::Busy) {
            Held::Idle(endpoint) => Some(endpoint),
            Held::Busy => None,
            Held::Gone => {
                *state = Held::Gone;
                None
            }
        }
    }
}

/// What the future gives, or `None` when the deadline comes first; then it is given up.
pub(crate) async fn before<F: Future>(deadline: Deadline, future: F) -> Option<F::Output> {
    unless(executor::sleep_until(deadline), future).await
}

/// What the future gives, or `None` when the other one is done first; then it is given up.
pub(crate) async fn unless<F: Future>(other: impl Future<Output = ()>, future: F) -> Option<F::Output> {
    let (mut future, mut other) = (pin!(future), pin!(other));
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => other.as_mut().poll(context).map(|()| None),
    })
    .await
}
