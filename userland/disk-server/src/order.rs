//! Ordering of requests that overlap.
//!
//! A device may reorder requests in flight. A client waits for a completion before it sends a request that depends on
//! it, but a client may be killed with a write in flight, and its successor must not see that write
//! take effect after its own write, or after its own read. So a request waits here for all earlier requests that
//! conflict with it, of whatever client, and a flush for all earlier writes.

use alloc::collections::VecDeque;
use core::cell::{Cell, RefCell};
use core::future::poll_fn;
use core::ops::Range;
use core::task::{Poll, Waker};

/// A request and its range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Reads these bytes.
    Read(Range<u64>),
    /// Writes these bytes.
    Write(Range<u64>),
    /// Makes earlier writes durable.
    Flush,
}

impl Request {
    /// Returns whether this request has to wait for an earlier one.
    fn waits_for(&self, before: &Request) -> bool {
        let overlap = |one: &Range<u64>, other: &Range<u64>| one.start < other.end && other.start < one.end;
        match (before, self) {
            (Request::Flush, _) | (Request::Read(_), Request::Read(_) | Request::Flush) => false,
            (Request::Write(_), Request::Flush) => true,
            (Request::Read(before), Request::Write(range))
            | (Request::Write(before), Request::Read(range) | Request::Write(range)) => overlap(before, range),
        }
    }
}

struct Entry {
    number: u64,
    request: Request,
    waker: Option<Waker>,
}

/// The requests in flight or waiting, in the order of arrival.
#[derive(Default)]
pub struct Order {
    entries: RefCell<VecDeque<Entry>>,
    last: Cell<u64>,
}

/// A request's position in the order; dropping it completes the request.
pub struct Place<'a> {
    order: &'a Order,
    number: u64,
}

impl Order {
    /// Queues a request behind all earlier ones, and waits until it may begin.
    pub async fn acquire(&self, request: Request) -> Place<'_> {
        let number = self.last.get() + 1;
        self.last.set(number);
        self.entries.borrow_mut().push_back(Entry { number, request, waker: None });
        let place = Place { order: self, number };
        poll_fn(|context| {
            let mut entries = self.entries.borrow_mut();
            // The entry stays until its place is dropped.
            let Ok(index) = entries.binary_search_by_key(&number, |entry| entry.number) else {
                return Poll::Ready(());
            };
            let request = &entries[index].request;
            let must_wait = entries.range(..index).any(|before| request.waits_for(&before.request));
            if must_wait {
                entries[index].waker = Some(context.waker().clone());
                return Poll::Pending;
            }
            Poll::Ready(())
        })
        .await;
        place
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut entries = self.order.entries.borrow_mut();
        let Ok(index) = entries.binary_search_by_key(&self.number, |entry| entry.number) else { return };
        entries.remove(index);
        for behind in entries.range_mut(index..) {
            if let Some(waker) = behind.waker.take() {
                waker.wake();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use core::future::Future;
    use core::pin::pin;
    use core::task::Context;

    use super::*;

    fn is_ready(future: core::pin::Pin<&mut impl Future>) -> bool {
        future.poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn overlapping_requests_keep_their_order() {
        let (read, write) = (|range| Request::Read(range), |range| Request::Write(range));
        assert!(write(0..512).waits_for(&write(0..1024)));
        assert!(write(0..512).waits_for(&read(0..512)));
        assert!(read(512..1024).waits_for(&write(0..1024)));
        assert!(!read(0..512).waits_for(&read(0..512)));
        assert!(!write(0..512).waits_for(&write(512..1024)));
        assert!(Request::Flush.waits_for(&write(0..512)));
        assert!(!Request::Flush.waits_for(&read(0..512)));
        assert!(!write(0..512).waits_for(&Request::Flush));
    }

    #[test]
    fn a_request_waits_for_earlier_conflicting_ones() {
        let order = Order::default();
        let mut first = pin!(order.acquire(Request::Write(0..1024)));
        let Poll::Ready(first) = first.as_mut().poll(&mut Context::from_waker(Waker::noop())) else {
            panic!("nothing is before the first")
        };
        let mut second = pin!(order.acquire(Request::Write(512..1024)));
        assert!(!is_ready(second.as_mut()));
        let mut apart = pin!(order.acquire(Request::Write(1024..2048)));
        assert!(is_ready(apart.as_mut()));
        let mut flush = pin!(order.acquire(Request::Flush));
        assert!(!is_ready(flush.as_mut()));
        drop(first);
        assert!(is_ready(second.as_mut()), "its place is dropped here");
        assert!(is_ready(flush.as_mut()));
        assert_eq!(order.entries.borrow().len(), 0);
    }
}
