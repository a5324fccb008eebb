//! Turns at something that serves one at a time, such as an endpoint.
//!
//! Tasks of one thread take [`Turn`]s in the order in which they asked. Deliberately not here: threads.

use alloc::collections::VecDeque;
use core::cell::{Cell, RefCell};
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

/// Who may use something next.
#[derive(Default)]
pub(crate) struct Turns {
    taken: Cell<bool>,
    waiting: RefCell<VecDeque<(u64, Waker)>>,
    next_number: Cell<u64>,
}

/// The right to use it; the next one in the queue has it when this is dropped.
pub(crate) struct Turn<'a> {
    turns: &'a Turns,
}

impl Turns {
    /// Waits for a turn.
    pub(crate) fn take(&self) -> Wait<'_> {
        Wait { turns: self, number: None }
    }

    fn wake_next(&self) {
        let next = self.waiting.borrow_mut().pop_front();
        if let Some((_, waker)) = next {
            waker.wake();
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.turns.taken.set(false);
        self.turns.wake_next();
    }
}

/// The wait for a turn.
pub(crate) struct Wait<'a> {
    turns: &'a Turns,
    number: Option<u64>,
}

impl<'a> Future for Wait<'a> {
    type Output = Turn<'a>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Turn<'a>> {
        let turns = self.turns;
        let mut waiting = turns.waiting.borrow_mut();
        let queued = self.number.and_then(|number| waiting.iter_mut().find(|(other, _)| *other == number));
        if let Some((_, waker)) = queued {
            waker.clone_from(context.waker());
            return Poll::Pending;
        }
        if !turns.taken.get() {
            turns.taken.set(true);
            self.number = None;
            return Poll::Ready(Turn { turns });
        }
        let number = turns.next_number.get();
        turns.next_number.set(number + 1);
        waiting.push_back((number, context.waker().clone()));
        drop(waiting);
        self.number = Some(number);
        Poll::Pending
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        let Some(number) = self.number else { return };
        let before = self.turns.waiting.borrow().len();
        self.turns.waiting.borrow_mut().retain(|(other, _)| *other != number);
        // It was called up and goes away without having come: the next one has its turn.
        if self.turns.waiting.borrow().len() == before && !self.turns.taken.get() {
            self.turns.wake_next();
        }
    }
}

/// Says to one task that there is something to do.
#[derive(Default)]
pub(crate) struct Signal {
    is_set: Cell<bool>,
    waiting: RefCell<Option<Waker>>,
}

impl Signal {
    /// Lets the wait that is or comes next end.
    pub(crate) fn set(&self) {
        self.is_set.set(true);
        if let Some(waker) = self.waiting.borrow_mut().take() {
            waker.wake();
        }
    }

    /// Waits until it is set.
    pub(crate) async fn wait(&self) {
        core::future::poll_fn(|context| {
            if self.is_set.replace(false) {
                return Poll::Ready(());
            }
            *self.waiting.borrow_mut() = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }
}
