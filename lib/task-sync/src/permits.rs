//! Permits and their FIFO waiter queue: the basis of the other types.
//!
//! A waiter keeps its place until it has its permits or is dropped, so it stays first after it was woken, and permits
//! are taken by the waiter's own poll. The invariant that rules out lost wake-ups: whenever there are enough permits
//! for the first waiter, its waker has been called since it was last polled.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

pub(crate) struct Permits(RefCell<State>);

struct State {
    free: usize,
    next_ticket: u64,
    /// Sorted by ticket.
    queue: VecDeque<Waiter>,
}

struct Waiter {
    ticket: u64,
    wanted: usize,
    /// Absent after it was called, until the next poll.
    waker: Option<Waker>,
}

impl State {
    fn position(&self, ticket: u64) -> Option<usize> {
        self.queue.binary_search_by_key(&ticket, |waiter| waiter.ticket).ok()
    }

    /// Returns the waker of the first waiter, if there are enough permits for it and it has not been called.
    fn first_to_wake(&mut self) -> Option<Waker> {
        let free = self.free;
        self.queue.front_mut().filter(|first| first.wanted <= free).and_then(|first| first.waker.take())
    }
}

impl Permits {
    pub(crate) const fn new(free: usize) -> Permits {
        Permits(RefCell::new(State { free, next_ticket: 0, queue: VecDeque::new() }))
    }

    /// Takes permits unless that would wait or overtake a waiter.
    pub(crate) fn try_take(&self, wanted: usize) -> bool {
        let mut state = self.0.borrow_mut();
        let is_free = state.queue.is_empty() && state.free >= wanted;
        if is_free {
            state.free -= wanted;
        }
        is_free
    }

    /// Waits for permits, which [`Permits::give`] returns.
    pub(crate) fn take(&self, wanted: usize) -> Take<'_> {
        Take { permits: self, wanted, ticket: None }
    }

    pub(crate) fn give(&self, count: usize) {
        let first = {
            let mut state = self.0.borrow_mut();
            state.free += count;
            state.first_to_wake()
        };
        first.into_iter().for_each(Waker::wake);
    }

    /// Takes all free permits, bypassing the queue.
    pub(crate) fn drain(&self) {
        self.0.borrow_mut().free = 0;
    }

    /// Wakes every waiter to recheck a condition other than permits. All keep their places.
    pub(crate) fn wake_all(&self) {
        let wakers: Vec<Waker> =
            self.0.borrow_mut().queue.iter_mut().filter_map(|waiter| waiter.waker.take()).collect();
        wakers.into_iter().for_each(Waker::wake);
    }

    fn poll_take(&self, ticket: &mut Option<u64>, wanted: usize, waker: &Waker) -> Poll<()> {
        let mut state = self.0.borrow_mut();
        let position = ticket.and_then(|ticket| state.position(ticket));
        let is_first = position.map_or(state.queue.is_empty(), |position| position == 0);
        if is_first && state.free >= wanted {
            // Wakers are dropped and called without the borrow.
            let left = position.and_then(|_| state.queue.pop_front());
            state.free -= wanted;
            let next = state.first_to_wake();
            drop(state);
            *ticket = None;
            drop(left);
            next.into_iter().for_each(Waker::wake);
            return Poll::Ready(());
        }
        match position.and_then(|position| state.queue.get_mut(position)) {
            Some(waiter) if waiter.waker.as_ref().is_some_and(|own| own.will_wake(waker)) => {}
            Some(waiter) => {
                let former = waiter.waker.replace(waker.clone());
                drop(state);
                drop(former);
            }
            None => {
                let number = state.next_ticket;
                state.next_ticket += 1;
                state.queue.push_back(Waiter { ticket: number, wanted, waker: Some(waker.clone()) });
                *ticket = Some(number);
            }
        }
        Poll::Pending
    }

    fn leave(&self, ticket: u64) {
        let (left, next) = {
            let mut state = self.0.borrow_mut();
            let left = state.position(ticket).and_then(|position| state.queue.remove(position));
            (left, state.first_to_wake())
        };
        drop(left);
        next.into_iter().for_each(Waker::wake);
    }
}

/// Future that acquires permits. Dropping it gives up the place in the queue.
#[must_use = "a future does nothing until it is awaited"]
pub(crate) struct Take<'a> {
    permits: &'a Permits,
    wanted: usize,
    ticket: Option<u64>,
}

impl Future for Take<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Take { permits, wanted, ticket } = &mut *self;
        permits.poll_take(ticket, *wanted, context.waker())
    }
}

impl Drop for Take<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            self.permits.leave(ticket);
        }
    }
}
