//! Waits on behalf of a client: until the event, its timeout, or the end of the client.

use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::Poll;

use contracts::FOR_EVER;
use sip::channel::TypedEndpoint;
use sip::executor::Member;
use sip::{Deadline, executor};

/// Outcome of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// The event occurred.
    Done,
    /// The deadline passed first.
    TimedOut,
    /// The client closed its channel.
    Gone,
}

/// Waits for `what`, the deadline, or the end of a client that may not send now.
pub async fn wait<E: TypedEndpoint>(client: &E, deadline: Deadline, what: impl Future<Output = ()>) -> Waited {
    wait_as_member(client, deadline, what).await.0
}

/// The same; also returns the client's place in the wait set, for [`executor::receive_as`].
pub async fn wait_as_member<E: TypedEndpoint>(
    client: &E,
    deadline: Deadline,
    what: impl Future<Output = ()>,
) -> (Waited, Option<Member>) {
    let mut what = pin!(what);
    let mut gone = executor::gone(client);
    let mut late = pin!(async {
        if deadline == Deadline::NEVER {
            core::future::pending::<()>().await;
        }
        executor::sleep_until(deadline).await;
    });
    let waited = poll_fn(|context| {
        if what.as_mut().poll(context).is_ready() {
            return Poll::Ready(Waited::Done);
        }
        if pin!(&mut gone).poll(context).is_ready() {
            return Poll::Ready(Waited::Gone);
        }
        if late.as_mut().poll(context).is_ready() {
            return Poll::Ready(Waited::TimedOut);
        }
        Poll::Pending
    })
    .await;
    (waited, gone.into_member())
}

/// Converts a timeout in milliseconds; [`FOR_EVER`] is no deadline.
pub fn until(timeout_ms: u32) -> Deadline {
    if timeout_ms == FOR_EVER { Deadline::NEVER } else { Deadline::coarse_after_ms(timeout_ms.into()) }
}

/// Converts a timeout in milliseconds; 0 and [`FOR_EVER`] are no deadline.
pub fn until_or_never(timeout_ms: u32) -> Deadline {
    if timeout_ms == 0 { Deadline::NEVER } else { until(timeout_ms) }
}
