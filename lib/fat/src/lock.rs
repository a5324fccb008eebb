//! A lock for the tasks of one thread, in the order in which they come.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::cell::{Cell, RefCell};
use core::future::poll_fn;
use core::task::{Poll, Waker};

/// What one task at a time may use, until one takes it out.
pub(crate) struct Lock<T> {
    /// Nothing while somebody holds it, and after it was taken out.
    value: Cell<Option<Box<T>>>,
    is_held: Cell<bool>,
    next_ticket: Cell<u64>,
    queue: RefCell<VecDeque<(u64, Waker)>>,
}

/// The right to use it, until dropped.
pub(crate) struct Held<'a, T> {
    lock: &'a Lock<T>,
    /// What is locked; nothing where somebody took it out.
    pub(crate) value: Option<Box<T>>,
}

impl<T> Lock<T> {
    pub(crate) fn new(value: T) -> Lock<T> {
        Lock {
            value: Cell::new(Some(Box::new(value))),
            is_held: Cell::new(false),
            next_ticket: Cell::new(0),
            queue: RefCell::new(VecDeque::new()),
        }
    }

    /// Waits until all who came before are done.
    pub(crate) async fn hold(&self) -> Held<'_, T> {
        let mut ticket = Ticket { lock: self, number: None };
        poll_fn(|context| {
            let mut queue = self.queue.borrow_mut();
            let is_first = match (queue.front(), ticket.number) {
                (None, _) => true,
                (Some((first, _)), number) => Some(*first) == number,
            };
            if is_first && !self.is_held.get() {
                return Poll::Ready(());
            }
            match ticket.number {
                Some(number) => {
                    if let Some(place) = queue.iter_mut().find(|(other, _)| *other == number) {
                        place.1 = context.waker().clone();
                    }
                }
                None => {
                    let number = self.next_ticket.get();
                    self.next_ticket.set(number + 1);
                    queue.push_back((number, context.waker().clone()));
                    ticket.number = Some(number);
                }
            }
            Poll::Pending
        })
        .await;
        self.is_held.set(true);
        drop(ticket);
        Held { lock: self, value: self.value.take() }
    }

    fn wake_first(&self) {
        let first = self.queue.borrow().front().map(|(_, waker)| waker.clone());
        if let Some(first) = first {
            first.wake();
        }
    }
}

impl<T> Drop for Held<'_, T> {
    fn drop(&mut self) {
        self.lock.value.set(self.value.take());
        self.lock.is_held.set(false);
        self.lock.wake_first();
    }
}

/// A place in the queue, given up when dropped.
struct Ticket<'a, T> {
    lock: &'a Lock<T>,
    number: Option<u64>,
}

impl<T> Drop for Ticket<'_, T> {
    fn drop(&mut self) {
        let Some(number) = self.number else { return };
        self.lock.queue.borrow_mut().retain(|(other, _)| *other != number);
        if !self.lock.is_held.get() {
            self.lock.wake_first();
        }
    }
}
