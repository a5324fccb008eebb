//! Shutdown of the server: it begins when its names are deregistered, which closes its provider endpoint.

use core::cell::Cell;
use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::Poll;

use sip::{Deadline, executor};
use task_sync::Notify;

/// Whether shutdown has begun.
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

    /// Waits until the deadline, or until shutdown begins.
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
