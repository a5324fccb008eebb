//! Waiting for one's turn: a lock with readers and writers for tasks of one thread.
//!
//! Turns come in the order of asking, so that a stream of readers cannot keep a writer away. A task that is
//! dropped while it waits gives up its turn. Who holds several takes them in the order that `volume` states.

use alloc::collections::VecDeque;
use alloc::rc::Rc;
use core::cell::RefCell;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

/// How a lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hold {
    /// Beside others that do.
    Shared,
    /// Alone.
    Exclusive,
}

/// A lock; clones are the same one.
#[derive(Clone, Default)]
pub(crate) struct Lock(Rc<RefCell<State>>);

#[derive(Default)]
struct State {
    readers: usize,
    is_written: bool,
    /// How often it was held alone.
    turns_alone: u64,
    next_ticket: u64,
    waiting: VecDeque<Waiting>,
}

struct Waiting {
    ticket: u64,
    hold: Hold,
    waker: Waker,
}

impl Lock {
    /// Waits until the lock is held.
    pub(crate) fn acquire(&self, hold: Hold) -> Acquire {
        Acquire { lock: self.clone(), hold, ticket: None }
    }

    /// Holds the lock if nobody has to wait for that, neither the caller nor who waits already.
    pub(crate) fn try_acquire(&self, hold: Hold) -> Option<Guard> {
        let mut state = self.0.borrow_mut();
        if !state.waiting.is_empty() || !state.is_free_for(hold) {
            return None;
        }
        state.take(hold);
        Some(Guard { lock: self.clone(), hold })
    }

    /// How often it was held alone: what was learned while it was held holds as long as this is the same.
    pub(crate) fn turns_alone(&self) -> u64 {
        self.0.borrow().turns_alone
    }
}

impl State {
    fn is_free_for(&self, hold: Hold) -> bool {
        match hold {
            Hold::Shared => !self.is_written,
            Hold::Exclusive => !self.is_written && self.readers == 0,
        }
    }

    fn take(&mut self, hold: Hold) {
        match hold {
            Hold::Shared => self.readers += 1,
            Hold::Exclusive => {
                self.is_written = true;
                self.turns_alone += 1;
            }
        }
    }

    /// Wakes whose turn it is; who comes after wakes the next.
    fn wake_first(&self) {
        if let Some(first) = self.waiting.front()
            && self.is_free_for(first.hold)
        {
            first.waker.wake_by_ref();
        }
    }
}

/// Waits for a lock.
pub(crate) struct Acquire {
    lock: Lock,
    hold: Hold,
    ticket: Option<u64>,
}

impl Future for Acquire {
    type Output = Guard;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Guard> {
        let lock = self.lock.clone();
        let mut state = lock.0.borrow_mut();
        let place = self.ticket.and_then(|ticket| state.waiting.iter().position(|one| one.ticket == ticket));
        let is_first = match place {
            Some(place) => place == 0,
            None => state.waiting.is_empty(),
        };
        if is_first && state.is_free_for(self.hold) {
            if place.is_some() {
                state.waiting.pop_front();
            }
            self.ticket = None;
            state.take(self.hold);
            state.wake_first();
            return Poll::Ready(Guard { lock: lock.clone(), hold: self.hold });
        }
        match place.and_then(|place| state.waiting.get_mut(place)) {
            Some(waiting) => waiting.waker.clone_from(context.waker()),
            None => {
                let ticket = state.next_ticket;
                state.next_ticket += 1;
                state.waiting.push_back(Waiting { ticket, hold: self.hold, waker: context.waker().clone() });
                self.ticket = Some(ticket);
            }
        }
        Poll::Pending
    }
}

impl Drop for Acquire {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            let mut state = self.lock.0.borrow_mut();
            state.waiting.retain(|one| one.ticket != ticket);
            state.wake_first();
        }
    }
}

/// The lock is held until this is dropped.
#[must_use]
pub(crate) struct Guard {
    lock: Lock,
    hold: Hold,
}

impl Drop for Guard {
    fn drop(&mut self) {
        let mut state = self.lock.0.borrow_mut();
        match self.hold {
            Hold::Shared => state.readers -= 1,
            Hold::Exclusive => state.is_written = false,
        }
        state.wake_first();
    }
}

#[cfg(test)]
mod tests {
    use core::pin::pin;

    use super::*;

    fn poll(future: Pin<&mut Acquire>) -> Option<Guard> {
        match future.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(guard) => Some(guard),
            Poll::Pending => None,
        }
    }

    #[test]
    fn turns_come_in_order() {
        let lock = Lock::default();
        let first = poll(pin!(lock.acquire(Hold::Shared))).unwrap();
        let second = poll(pin!(lock.acquire(Hold::Shared))).unwrap();
        let mut writer = pin!(lock.acquire(Hold::Exclusive));
        assert!(poll(writer.as_mut()).is_none());
        let mut late = pin!(lock.acquire(Hold::Shared));
        assert!(poll(late.as_mut()).is_none());
        drop((first, second));
        assert!(poll(late.as_mut()).is_none());
        let written = poll(writer.as_mut()).unwrap();
        assert!(poll(late.as_mut()).is_none());
        assert_eq!(lock.turns_alone(), 1);
        drop(written);
        assert!(poll(late.as_mut()).is_some());
        assert_eq!(lock.turns_alone(), 1, "readers change nothing");
    }

    #[test]
    fn who_will_not_wait_keeps_nobody_waiting() {
        let lock = Lock::default();
        let reader = lock.try_acquire(Hold::Shared).unwrap();
        assert!(lock.try_acquire(Hold::Shared).is_some());
        assert!(lock.try_acquire(Hold::Exclusive).is_none());
        let mut writer = pin!(lock.acquire(Hold::Exclusive));
        assert!(poll(writer.as_mut()).is_none());
        assert!(lock.try_acquire(Hold::Shared).is_none());
        drop(reader);
        assert!(poll(writer.as_mut()).is_some());
    }

    #[test]
    fn who_goes_gives_up_the_turn() {
        let lock = Lock::default();
        let reader = poll(pin!(lock.acquire(Hold::Shared))).unwrap();
        let mut late = pin!(lock.acquire(Hold::Shared));
        {
            let mut writer = pin!(lock.acquire(Hold::Exclusive));
            assert!(poll(writer.as_mut()).is_none());
            assert!(poll(late.as_mut()).is_none());
        }
        assert!(poll(late.as_mut()).is_some());
        drop(reader);
        assert!(poll(pin!(lock.acquire(Hold::Exclusive))).is_some());
    }
}
