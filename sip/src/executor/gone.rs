//! Noticing that the other end of a channel is gone while it is this end's turn to send.

use alloc::rc::Rc;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use super::{Executor, current};
use crate::channel::TypedEndpoint;
use crate::raw::value as kernel;

/// Waits until the other end of a channel has closed. For an endpoint that sends next: nothing else can come then.
pub fn gone<E: TypedEndpoint>(endpoint: &E) -> Gone<'_, E> {
    Gone { endpoint, registered: None, announced: false }
}

/// See [`gone`].
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
            // It was there and is no more: it was announced.
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
            // One that has been announced meanwhile is in no set any more.
            let _ = kernel::wait_set_remove(executor.set, self.endpoint.raw().handle());
        }
    }
}
