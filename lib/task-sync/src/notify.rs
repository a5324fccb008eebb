//! Waking tasks whose condition may have changed.

use alloc::collections::VecDeque;
use core::cell::RefCell;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

/// Notifies one waiting task, or all.
///
/// `notify_one` stores a permit if no task waits. `notify_all` reaches every [`Notified`] created before, polled or
/// not; so a task that creates one, finds its condition false and awaits it misses nothing.
#[derive(Default)]
pub struct Notify(RefCell<State>);

#[derive(Default)]
struct State {
    /// A stored permit of `notify_one`.
    is_kept: bool,
    /// Number of `notify_all` calls.
    rounds: u64,
    next_ticket: u64,
    /// Sorted by ticket.
    queue: VecDeque<Waiter>,
}

struct Waiter {
    ticket: u64,
    /// Absent after a `notify_one`.
    waker: Option<Waker>,
}

impl State {
    fn position(&self, ticket: u64) -> Option<usize> {
        self.queue.binary_search_by_key(&ticket, |waiter| waiter.ticket).ok()
    }
}

impl Notify {
    /// Creates one without a stored permit.
    pub const fn new() -> Notify {
        Notify(RefCell::new(State { is_kept: false, rounds: 0, next_ticket: 0, queue: VecDeque::new() }))
    }

    /// Notifies the longest-waiting task, or else the next one that waits.
    pub fn notify_one(&self) {
        let waker = {
            let mut state = self.0.borrow_mut();
            let waker = state.queue.iter_mut().find_map(|waiter| waiter.waker.take());
            state.is_kept |= waker.is_none();
            waker
        };
        waker.into_iter().for_each(Waker::wake);
    }

    /// Notifies all waiting tasks.
    pub fn notify_all(&self) {
        let end = {
            let mut state = self.0.borrow_mut();
            state.rounds += 1;
            state.next_ticket
        };
        loop {
            // Looked up anew each time, because a waker may drop waiters or add some.
            let waiter = {
                let mut state = self.0.borrow_mut();
                // Waiters notified by `notify_one` still hold the permit, to consume or pass on.
                let position = state.queue.iter().position(|waiter| waiter.waker.is_some());
                let position = position.filter(|&position| state.queue[position].ticket < end);
                position.and_then(|position| state.queue.remove(position))
            };
            match waiter {
                Some(waiter) => waiter.waker.into_iter().for_each(Waker::wake),
                None => return,
            }
        }
    }

    /// Waits for a notification.
    pub fn notified(&self) -> Notified<'_> {
        Notified { notify: self, rounds: self.0.borrow().rounds, ticket: None }
    }

    /// Waits until the condition holds. It is evaluated first and after each notification.
    pub async fn until(&self, mut condition: impl FnMut() -> bool) {
        loop {
            let notified = self.notified();
            if condition() {
                return;
            }
            notified.await;
        }
    }
}

/// Future of [`Notify::notified`]. If it is dropped while holding the permit of `notify_one`, the next waiter gets it.
#[must_use = "a future does nothing until it is awaited"]
pub struct Notified<'a> {
    notify: &'a Notify,
    /// Number of `notify_all` calls before this one was created.
    rounds: u64,
    ticket: Option<u64>,
}

impl Future for Notified<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.notify.0.borrow_mut();
        let Some(ticket) = self.ticket else {
            if state.rounds != self.rounds || core::mem::take(&mut state.is_kept) {
                return Poll::Ready(());
            }
            let ticket = state.next_ticket;
            state.next_ticket += 1;
            state.queue.push_back(Waiter { ticket, waker: Some(context.waker().clone()) });
            drop(state);
            self.ticket = Some(ticket);
            return Poll::Pending;
        };
        let position = state.position(ticket);
        match position.and_then(|position| state.queue.get_mut(position)) {
            Some(Waiter { waker: Some(waker), .. }) => {
                if !waker.will_wake(context.waker()) {
                    let former = core::mem::replace(waker, context.waker().clone());
                    drop(state);
                    drop(former);
                }
                Poll::Pending
            }
            Some(Waiter { waker: None, .. }) => {
                position.and_then(|position| state.queue.remove(position));
                drop(state);
                self.ticket = None;
                Poll::Ready(())
            }
            // Removed by a `notify_all`.
            None => Poll::Ready(()),
        }
    }
}

impl Drop for Notified<'_> {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket else { return };
        let left = {
            let mut state = self.notify.0.borrow_mut();
            state.position(ticket).and_then(|position| state.queue.remove(position))
        };
        if left.is_some_and(|waiter| waiter.waker.is_none()) {
            self.notify.notify_one();
        }
    }
}
