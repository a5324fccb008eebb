//! Detects that the peer of a channel has closed while this end is the next sender.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use super::{Member, current};
use crate::channel::TypedEndpoint;
use crate::raw::value as kernel;

/// Completes when the peer has closed. For an endpoint that sends next: it can receive nothing else then.
pub fn gone<E: TypedEndpoint>(endpoint: &E) -> Gone<'_, E> {
    Gone { endpoint, member: None, announced: false }
}

/// Future returned by [`gone`].
#[must_use = "a future does nothing until it is awaited"]
pub struct Gone<'a, E: TypedEndpoint> {
    endpoint: &'a E,
    member: Option<Member>,
    announced: bool,
}

impl<E: TypedEndpoint> Gone<'_, E> {
    /// Ends the wait, but keeps the endpoint's place in the wait set for [`receive_as`](super::receive_as).
    pub fn into_member(self) -> Option<Member> {
        self.member
    }
}

impl<E: TypedEndpoint> Future for Gone<'_, E> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.announced {
            return Poll::Ready(());
        }
        let executor = current::get();
        let waiter = executor.ready.waiter(context);
        if let Some(member) = &self.member {
            if member.wakes(waiter) {
                return Poll::Pending;
            }
            self.announced = true;
            return Poll::Ready(());
        }
        let endpoint = self.endpoint.raw().handle();
        let key = executor.waiting.borrow_mut().insert(waiter);
        if let Err(status) = kernel::wait_set_add(executor.set, endpoint, key) {
            crate::channel::refused(status);
        }
        self.member = Some(Member::new(executor, key, endpoint));
        Poll::Pending
    }
}
