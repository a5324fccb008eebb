//! The server is asked to end: its names are taken out, which its provider endpoint sees as closed.

use core::cell::Cell;
use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::Poll;

use sip::{Deadline, executor};
use task_sync::Notify;

/// Whether the server ends, for the task that has something left to do then.
#[derive(Default)]
pub(crate) struct Ending {
    begun: Cell<bool>,
    changed: Notify,
}

impl Ending {
    pub(crate) fn begin(&self) {
        self.begun.set(true);
        self.changed.notify_all();
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.begun.get()
    }

    /// Waits until the deadline, or until the server is to end.
    pub(crate) async fn or(&self, deadline: Deadline) {
        let mut begun = pin!(self.changed.until(|| self.begun.get()));
        let mut sleep = pin!(executor::sleep_until(deadline));
        poll_fn(|context| {
            if begun.as_mut().poll(context).is_ready() {
                return Poll::Ready(());
            }
            sleep.as_mut().poll(context)
        })
        .await;
    }
}
