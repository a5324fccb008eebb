//! Timeouts of requests.
//!
//! A server that ends closes its channels, and its clients notice at once. One that keeps running but does not answer,
//! because its device or a server below it does not, would block its clients for ever. So each request has a limit by
//! the kind of server and of work. When it passes, the client closes the endpoint and gets [`AccessError::NoAnswer`]: a
//! late answer has no endpoint to arrive at, so it is never taken for the answer to another request, and blocks that
//! were lent with the request are freed when the server returns them or ends.
//!
//! The limits grow from the device up, so that the error comes from the server nearest to the hang. Waits for user
//! input, a peer or an event (a key, a pipe, `accept`, `notify`) have no limit and do not go through here.

use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::Poll;
use core::time::Duration;

use contracts::FOR_EVER;
use sip::channel::{Contract, Receiver, TypedEndpoint, receive_async, receive_by};
use sip::{Deadline, executor};

use crate::access::AccessError;

/// Limit for drivers of network interfaces, clocks and random sources, which answer from memory or one device
/// register.
pub const DEVICE_LIMIT: Duration = Duration::from_secs(10);
/// Limit for disk drivers: the timeout that Linux gives a command of a SCSI or ATA disk.
pub const DISK_LIMIT: Duration = Duration::from_secs(30);
/// Limit for connecting to a provider, which requires no work from it.
pub const CONNECT_LIMIT: Duration = Duration::from_secs(30);
/// Limit for servers that may have to wait for several requests to a disk or to other servers.
pub const REQUEST_LIMIT: Duration = Duration::from_secs(120);
/// Limit for work proportional to the content of one file or cache: sync, truncate, remove, unmount, install.
pub const BULK_LIMIT: Duration = Duration::from_secs(30 * 60);
/// Limit for work proportional to a whole volume: format and check.
pub const VOLUME_LIMIT: Duration = Duration::from_secs(24 * 60 * 60);

/// Blocks until the answer to a request arrives. A limit of [`Duration::MAX`] never passes.
///
/// # Errors
/// [`AccessError::NoAnswer`] if the limit passes first; the endpoint is closed then.
pub fn wait<R: Receiver>(asked: R, limit: Duration) -> Result<R::Event, AccessError> {
    receive_by(asked, deadline(limit)).map_err(|_endpoint| no_answer::<R>(limit))
}

/// Waits for the answer to a request while other tasks of the thread's executor run.
///
/// # Errors
/// As [`wait`].
pub async fn wait_async<R: Receiver>(asked: R, limit: Duration) -> Result<R::Event, AccessError> {
    within(limit, receive_async(asked)).await.ok_or_else(|| no_answer::<R>(limit))
}

/// Returns the output of the future, or `None` if the limit passes first; then it is dropped.
pub async fn within<F: Future>(limit: Duration, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut passed = pin!(executor::sleep_until(deadline(limit)));
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => passed.as_mut().poll(context).map(|()| None),
    })
    .await
}

/// Returns the limit of a request whose timeout the server enforces: that timeout plus [`REQUEST_LIMIT`]. [`FOR_EVER`]
/// has no limit.
pub fn limit_beyond(timeout_ms: u32) -> Duration {
    match timeout_ms {
        FOR_EVER => Duration::MAX,
        timeout_ms => REQUEST_LIMIT + Duration::from_millis(timeout_ms.into()),
    }
}

fn deadline(limit: Duration) -> Deadline {
    match u64::try_from(limit.as_nanos()) {
        Ok(limit_ns) => Deadline::after_ns(limit_ns),
        Err(_) => Deadline::NEVER,
    }
}

fn no_answer<R: Receiver>(limit: Duration) -> AccessError {
    AccessError::NoAnswer { contract: <R as TypedEndpoint>::Contract::NAME, limit_s: limit.as_secs() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_servers_timeout_exceeds_those_of_its_own_requests() {
        let limits = [DEVICE_LIMIT, DISK_LIMIT, REQUEST_LIMIT, BULK_LIMIT, VOLUME_LIMIT];
        assert!(limits.is_sorted());
        assert!(CONNECT_LIMIT < REQUEST_LIMIT, "the directory answers before its client gives it up");
    }

    #[test]
    fn a_request_with_a_timeout_is_waited_for_longer_than_that() {
        assert!(limit_beyond(5_000) > Duration::from_secs(5));
        assert!(limit_beyond(FOR_EVER - 1) < Duration::MAX);
        assert_eq!(limit_beyond(FOR_EVER), Duration::MAX);
        assert_eq!(deadline(Duration::MAX), Deadline::NEVER);
    }
}
