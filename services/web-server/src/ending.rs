//! Shutdown of the server: it begins when its names are deregistered, which closes its provider endpoint. Requests
//! already received are answered, each as the last of its connection, and logged; then the server exits.

use core::cell::Cell;
use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::Poll;

use sip::{Deadline, executor};
use task_sync::Notify;

/// Time for pending responses after shutdown began, in milliseconds; the manifest's `ending_ms` allows for it and for
/// the rest of the log.
const DRAIN_MS: u64 = 8000;

/// Time in which the network stack sends the last responses, or gives them back, in milliseconds.
const UNSENT_MS: u64 = 20;

/// Whether shutdown has begun, and what it waits for.
#[derive(Default)]
pub(crate) struct Ending {
    begun: Cell<bool>,
    changed: Notify,
    /// Requests whose responses are neither sent nor logged.
    pending: Cell<usize>,
}

/// A request from its head to the end of its response; shutdown waits until it is dropped.
pub(crate) struct Pending<'e>(&'e Ending);

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        self.0.pending.set(self.0.pending.get() - 1);
        if self.0.has_begun() {
            self.0.changed.notify_all();
        }
    }
}

impl Ending {
    pub(crate) fn begin(&self) {
        self.begun.set(true);
        self.changed.notify_all();
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.begun.get()
    }

    /// Counts a request as pending until the guard is dropped.
    pub(crate) fn enter(&self) -> Pending<'_> {
        self.pending.set(self.pending.get() + 1);
        Pending(self)
    }

    /// Waits until no request is pending, or at most [`DRAIN_MS`].
    pub(crate) async fn drained(&self) {
        let deadline = Deadline::after_ms(DRAIN_MS);
        self.until(|| self.pending.get() == 0, deadline).await;
        // A response that the stack gives back is pending again.
        executor::sleep_until(Deadline::after_ms(UNSENT_MS)).await;
        self.until(|| self.pending.get() == 0, deadline).await;
    }

    /// Waits until the deadline, or until shutdown begins.
    pub(crate) async fn or(&self, deadline: Deadline) {
        self.until(|| self.begun.get(), deadline).await;
    }

    async fn until(&self, condition: impl Fn() -> bool, deadline: Deadline) {
        let mut done = pin!(self.changed.until(condition));
        let mut sleep = pin!(executor::sleep_until(deadline));
        poll_fn(|context| {
            if done.as_mut().poll(context).is_ready() {
                return Poll::Ready(());
            }
            sleep.as_mut().poll(context)
        })
        .await;
    }
}
