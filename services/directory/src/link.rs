//! The way to one provider: one client at a time is handed over, the others wait in order of arrival.
//!
//! Deliberately not here: which name leads to which provider (the tree).

use alloc::collections::VecDeque;
use alloc::rc::Rc;
use core::cell::RefCell;
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
    waiting: VecDeque<Waker>,
}

/// What reaches a provider. Clones reach the same one.
#[derive(Clone)]
pub struct ProviderLink {
    inner: Rc<RefCell<Inner>>,
}

impl ProviderLink {
    /// The way through an endpoint that was registered.
    pub fn new(endpoint: Endpoint) -> ProviderLink {
        ProviderLink { inner: Rc::new(RefCell::new(Inner { state: State::Idle(endpoint), waiting: VecDeque::new() })) }
    }

    /// Whether the provider is known to have ended.
    pub fn is_gone(&self) -> bool {
        matches!(self.inner.borrow().state, State::Gone)
    }

    /// The endpoint, when it is this caller's turn; `None` if the provider has ended. Whoever gets it
    /// calls [`release`](ProviderLink::release) or [`gone`](ProviderLink::gone).
    pub async fn acquire(&self) -> Option<Endpoint> {
        poll_fn(|context| {
            let mut inner = self.inner.borrow_mut();
            match core::mem::replace(&mut inner.state, State::Busy) {
                State::Idle(endpoint) => Poll::Ready(Some(endpoint)),
                State::Gone => {
                    inner.state = State::Gone;
                    Poll::Ready(None)
                }
                State::Busy => {
                    inner.waiting.push_back(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// The provider has answered and can be given the next client.
    pub fn release(&self, endpoint: Endpoint) {
        let next = {
            let mut inner = self.inner.borrow_mut();
            inner.state = State::Idle(endpoint);
            inner.waiting.pop_front()
        };
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
        for waker in waiting {
            waker.wake();
        }
    }
}
