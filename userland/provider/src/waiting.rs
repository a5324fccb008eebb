//! How a service waits on behalf of a client: for what was asked, for the time it has, or until the client is gone.

use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::Poll;

use contracts::FOR_EVER;
use sip::channel::TypedEndpoint;
use sip::{Deadline, executor};

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// What was waited for has come.
    Done,
    /// The time came first.
    TimedOut,
    /// The client has gone.
    Gone,
}

/// Waits for something on behalf of a client whose turn it is not.
pub async fn wait<E: TypedEndpoint>(client: &E, deadline: Deadline, what: impl Future<Output = ()>) -> Waited {
    let mut what = pin!(what);
    let mut gone = pin!(executor::gone(client));
    let mut late = pin!(async {
        if deadline == Deadline::NEVER {
            core::future::pending::<()>().await;
        }
        executor::sleep_until(deadline).await;
    });
    poll_fn(|context| {
        if what.as_mut().poll(context).is_ready() {
            return Poll::Ready(Waited::Done);
        }
        if gone.as_mut().poll(context).is_ready() {
            return Poll::Ready(Waited::Gone);
        }
        if late.as_mut().poll(context).is_ready() {
            return Poll::Ready(Waited::TimedOut);
        }
        Poll::Pending
    })
    .await
}

/// The end of a wait of so many milliseconds, where the greatest number is for ever.
pub fn until(timeout_ms: u32) -> Deadline {
    if timeout_ms == FOR_EVER { Deadline::NEVER } else { Deadline::after_ms(timeout_ms.into()) }
}

/// The same, where 0 is for ever.
pub fn until_or_never(timeout_ms: u32) -> Deadline {
    if timeout_ms == 0 { Deadline::NEVER } else { until(timeout_ms) }
}
