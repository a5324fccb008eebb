//! The way to one provider: one client at a time is handed over, the others wait in order of arrival.
//!
//! Deliberately not here: which name leads to which provider (the tree).

use alloc::collections::VecDeque;
use alloc::rc::Rc;
use core::cell::{Cell, RefCell};
use core::future::poll_fn;
use core::task::{Poll, Waker};

use contracts::service_provider;

type Endpoint = service_provider::Imp<service_provider::states::Ready>;

enum State {
    Idle(Endpoint),
    Busy,
    Gone,
}

struct Inner {
    state: State,
    /// Who waits for the endpoint, in order; each is here until it has it or gives up.
    waiting: VecDeque<(u64, Waker)>,
    /// Counts those who asked.
    asked: Cell<u64>,
}

/// What reaches a provider. Clones reach the same one.
#[derive(Clone)]
pub struct ProviderLink {
    inner: Rc<RefCell<Inner>>,
}

impl ProviderLink {
    /// The way through an endpoint that was registered.
    pub fn new(endpoint: Endpoint) -> ProviderLink {
        let inner = Inner { state: State::Idle(endpoint), waiting: VecDeque::new(), asked: Cell::new(0) };
        ProviderLink { inner: Rc::new(RefCell::new(inner)) }
    }

    /// Whether the provider is known to have ended.
    pub fn is_gone(&self) -> bool {
        matches!(self.inner.borrow().state, State::Gone)
    }

    /// The endpoint, when it is this caller's turn; `None` if the provider has ended. Whoever gets it
    /// calls [`release`](ProviderLink::release) or [`gone`](ProviderLink::gone). May be dropped before it is done.
    pub async fn acquire(&self) -> Option<Endpoint> {
        let place = Place::new(self);
        poll_fn(|context| {
            let mut inner = self.inner.borrow_mut();
            match core::mem::replace(&mut inner.state, State::Busy) {
                State::Idle(endpoint) => Poll::Ready(Some(endpoint)),
                State::Gone => {
                    inner.state = State::Gone;
                    Poll::Ready(None)
                }
                State::Busy => {
                    match inner.waiting.iter_mut().find(|(number, _)| *number == place.number) {
                        Some((_, own)) => own.clone_from(context.waker()),
                        None => inner.waiting.push_back((place.number, context.waker().clone())),
                    }
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// The provider has answered and can be given the next client.
    pub fn release(&self, endpoint: Endpoint) {
        self.inner.borrow_mut().state = State::Idle(endpoint);
        self.wake_next();
    }

    fn wake_next(&self) {
        let next = self.inner.borrow().waiting.front().map(|(_, waker)| waker.clone());
        if let Some(next) = next {
            next.wake();
        }
    }

    /// The provider has ended: all who wait are told.
    pub fn gone(&self) {
        let waiting = {
            let mut inner = self.inner.borrow_mut();
            inner.state = State::Gone;
            core::mem::take(&mut inner.waiting)
        };
        for (_, waker) in waiting {
            waker.wake();
        }
    }
}

/// A place among those who wait. Whoever leaves without the endpoint wakes the next if it is free: it may have been
/// woken for it.
struct Place<'a> {
    link: &'a ProviderLink,
    number: u64,
}

impl<'a> Place<'a> {
    fn new(link: &'a ProviderLink) -> Place<'a> {
        let inner = link.inner.borrow();
        let number = inner.asked.get();
        inner.asked.set(number + 1);
        Place { link, number }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let is_free = {
            let mut inner = self.link.inner.borrow_mut();
            inner.waiting.retain(|(number, _)| *number != self.number);
            matches!(inner.state, State::Idle(_))
        };
        if is_free {
            self.link.wake_next();
        }
    }
}
