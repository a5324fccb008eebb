//! A thing that one task uses at a time.

use alloc::collections::VecDeque;
use core::cell::{RefCell, RefMut};
use core::future::poll_fn;
use core::task::{Poll, Waker};

/// A value that the tasks of one thread take turns with.
pub struct Turns<T> {
    value: RefCell<T>,
    waiting: RefCell<VecDeque<Waker>>,
}

impl<T> Turns<T> {
    /// A value that nobody uses.
    pub fn new(value: T) -> Turns<T> {
        Turns { value: RefCell::new(value), waiting: RefCell::default() }
    }

    /// Waits for a turn.
    pub async fn take(&self) -> Turn<'_, T> {
        poll_fn(|context| match self.value.try_borrow_mut() {
            Ok(value) => Poll::Ready(Turn { value: Some(value), waiting: &self.waiting }),
            Err(_) => {
                self.waiting.borrow_mut().push_back(context.waker().clone());
                Poll::Pending
            }
        })
        .await
    }
}

/// A turn with the value, until it is dropped.
pub struct Turn<'a, T> {
    /// There until the turn is dropped.
    value: Option<RefMut<'a, T>>,
    waiting: &'a RefCell<VecDeque<Waker>>,
}

impl<T> Turn<'_, T> {
    /// The value.
    pub fn value(&mut self) -> Option<&mut T> {
        self.value.as_deref_mut()
    }
}

impl<T> Drop for Turn<'_, T> {
    fn drop(&mut self) {
        self.value = None;
        let next = self.waiting.borrow_mut().pop_front();
        if let Some(next) = next {
            next.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use core::future::Future;
    use core::pin::pin;
    use core::task::Context;

    use super::*;

    #[test]
    fn one_after_the_other_has_it() {
        let turns = Turns::new(1);
        let mut context = Context::from_waker(Waker::noop());
        let Poll::Ready(mut first) = pin!(turns.take()).poll(&mut context) else { panic!("nobody has it") };
        let mut second = pin!(turns.take());
        assert!(second.as_mut().poll(&mut context).is_pending());
        assert_eq!(first.value(), Some(&mut 1));
        drop(first);
        assert!(second.as_mut().poll(&mut context).is_ready());
        assert!(turns.waiting.borrow().is_empty());
    }
}
