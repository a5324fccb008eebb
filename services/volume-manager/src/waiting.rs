//! Waiting for a future no longer than something else takes.

use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::Poll;

use sip::{Deadline, executor};

/// The output of the future, or `None` if the deadline comes first; then it is dropped.
pub(crate) async fn before<F: Future>(deadline: Deadline, future: F) -> Option<F::Output> {
    unless(executor::sleep_until(deadline), future).await
}

/// The output of the future, or `None` if the other one is ready first; then it is dropped.
pub(crate) async fn unless<F: Future>(other: impl Future<Output = ()>, future: F) -> Option<F::Output> {
    let (mut future, mut other) = (pin!(future), pin!(other));
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => other.as_mut().poll(context).map(|()| None),
    })
    .await
}
