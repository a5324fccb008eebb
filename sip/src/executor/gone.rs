//! Detects that the peer of a channel has closed while this end is the next sender.

use alloc::rc::Rc;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use super::{Executor, current};
use crate::channel::TypedEndpoint;
use crate::raw::value as kernel;

/// Completes when the peer has closed. For an endpoint that sends next: it can receive nothing else then.
pub fn gone<E: TypedEndpoint>(endpoint: &E) -> Gone<'_, E> {
    Gone { endpoint, registered: None, announced: false }
}

/// Future returned by [`gone`].
#[must_use = "a future does nothing until it is awaited"]
pub struct Gone<'a, E: TypedEndpoint> {
    endpoint: &'a E,
    registered: Option<(Rc<Executor>, u64)>,
    announced: bool,
}

impl<E: TypedEndpoint> Future for Gone<'_, E> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.announced {
            return Poll::Ready(());
        }
        if let Some((executor, key)) = &self.registered {
            if let Some(waiter) = executor.waiting.borrow_mut().get_mut(*key) {
                *waiter = executor.ready.waiter(context);
                return Poll::Pending;
            }
            // The waiter has been removed: the endpoint was reported.
            self.announced = true;
            return Poll::Ready(());
        }
        let executor = current::get();
        let key = executor.waiting.borrow_mut().insert(executor.ready.waiter(context));
        if let Err(status) = kernel::wait_set_add(executor.set, self.endpoint.raw().handle(), key) {
            crate::channel::refused(status);
        }
        self.registered = Some((executor, key));
        Poll::Pending
    }
}

impl<E: TypedEndpoint> Drop for Gone<'_, E> {
    fn drop(&mut self) {
        if let Some((executor, key)) = self.registered.take()
            && executor.waiting.borrow_mut().remove(key).is_some()
        {
            // Fails for an endpoint reported meanwhile, which has left the set.
            let _ = kernel::wait_set_remove(executor.set, self.endpoint.raw().handle());
        }
    }
}
