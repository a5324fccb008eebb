//! The server is asked to end: its names are taken out, which its provider endpoint sees as closed.

use core::cell::{Cell, RefCell};
use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::{Poll, Waker};

use sip::{Deadline, executor};

/// Whether the server ends, for the one task that has something left to do then.
#[derive(Default)]
pub(crate) struct Ending {
    begun: Cell<bool>,
    waiting: RefCell<Option<Waker>>,
}

impl Ending {
    pub(crate) fn begin(&self) {
        self.begun.set(true);
        if let Some(waker) = self.waiting.take() {
            waker.wake();
        }
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.begun.get()
    }

    /// Waits until the deadline, or until the server is to end.
    pub(crate) async fn or(&self, deadline: Deadline) {
        let mut sleep = pin!(executor::sleep_until(deadline));
        poll_fn(|context| {
            if self.begun.get() {
                return Poll::Ready(());
            }
            self.waiting.replace(Some(context.waker().clone()));
            sleep.as_mut().poll(context).map(drop)
        })
        .await;
    }
}
