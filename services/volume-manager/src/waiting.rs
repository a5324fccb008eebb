//! Bounded waits for futures.

use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::Poll;

use sip::{Deadline, executor};

/// Returns the future's output, or `None` at the deadline, which drops the future.
pub(crate) async fn before<F: Future>(deadline: Deadline, future: F) -> Option<F::Output> {
    unless(executor::sleep_until(deadline), future).await
}

/// Returns the future's output, or `None` if `other` completes first, which drops the future.
pub(crate) async fn unless<F: Future>(other: impl Future<Output = ()>, future: F) -> Option<F::Output> {
    let (mut future, mut other) = (pin!(future), pin!(other));
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => other.as_mut().poll(context).map(|()| None),
    })
    .await
}
