//! A kernel event.

use crate::raw::value as kernel;
use crate::{Deadline, Status};

/// An event object, auto-reset or manual-reset. Dropping it closes it.
#[derive(Debug)]
pub struct Event {
    handle: u64,
}

impl Event {
    /// Creates an auto-reset event: setting it releases one waiter.
    pub fn auto() -> Result<Event, Status> {
        kernel::event_create_auto().map(|handle| Event { handle })
    }

    /// Creates a manual-reset event, which stays set until it is reset.
    pub fn manual() -> Result<Event, Status> {
        kernel::event_create_manual().map(|handle| Event { handle })
    }

    /// Sets it.
    pub fn set(&self) {
        // This value owns the handle, so the kernel cannot refuse it.
        let _ = kernel::event_set(self.handle);
    }

    /// Resets it.
    pub fn reset(&self) {
        // As in `set`.
        let _ = kernel::event_reset(self.handle);
    }

    /// Waits until it is set.
    pub fn wait(&self) {
        // As in `set`; without a deadline it does not time out.
        let _ = kernel::event_wait(self.handle, Deadline::NEVER.as_ns());
    }

    /// Waits until it is set; returns false at the deadline.
    #[must_use]
    pub fn wait_until(&self, deadline: Deadline) -> bool {
        kernel::event_wait(self.handle, deadline.as_ns()).is_ok()
    }

    pub(crate) fn handle(&self) -> u64 {
        self.handle
    }

    /// Gives up the handle, without closing it, to an owner that keeps it as a number.
    pub(super) fn into_handle(self) -> u64 {
        core::mem::ManuallyDrop::new(self).handle
    }

    pub(super) fn from_handle(handle: u64) -> Event {
        Event { handle }
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // There is no waiter: it would borrow the event.
        let _ = kernel::event_close(self.handle);
    }
}
