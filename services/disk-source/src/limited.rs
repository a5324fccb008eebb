//! How long a disk is waited for.
//!
//! A driver that is killed or ends closes its channels, which is noticed at once. One that goes on and answers
//! nothing, because its device does not, would hold up everything above it for ever.

use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::Poll;

use sip::{Deadline, executor};

/// How long a request may be at the driver. It is what Linux gives a disk's command.
pub(crate) const ANSWER_LIMIT_S: u64 = 30;

/// What becomes of the future, or nothing if the limit passes before it ends; then it is dropped.
pub(crate) async fn within_limit<F: Future>(future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut limit = pin!(executor::sleep_until(Deadline::after_ms(ANSWER_LIMIT_S * 1000)));
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => limit.as_mut().poll(context).map(|()| None),
    })
    .await
}
