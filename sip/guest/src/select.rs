//! Waiting for the first of several endpoints.

use alloc::vec::Vec;

use crate::channel::{RawEndpoint, Receiver};
use crate::{Deadline, imports};

/// Most endpoints that one wait is for.
pub const MAX_THINGS: usize = 32;

/// What can be waited for: endpoints that receive next.
pub trait Waitable {
    /// The endpoint.
    #[doc(hidden)]
    fn endpoint(&self) -> &RawEndpoint;
}

impl<E: Receiver> Waitable for E {
    fn endpoint(&self) -> &RawEndpoint {
        self.raw()
    }
}

/// Waits until one of these has a message or is closed, and returns its index; `None` at the deadline.
///
/// # Panics
///
/// If there are more than [`MAX_THINGS`].
pub fn wait_any(things: &[&dyn Waitable], deadline: Deadline) -> Option<usize> {
    assert!(things.len() <= MAX_THINGS, "at most {MAX_THINGS} endpoints can be waited for at once");
    let handles: Vec<u64> = things.iter().map(|thing| thing.endpoint().handle()).collect();
    imports::wait(&handles, deadline.as_ns())
}
