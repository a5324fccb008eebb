//! Wakers that reenter the primitive, as an executor that polls inline would.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex as Shared};
use std::task::{Context, Wake, Waker};
use std::thread::{self, ThreadId};

use task_sync::{Mode, Mutex, Notify, Pool, RwLock};

type Work = Box<dyn FnOnce()>;

thread_local! {
    static WORK: RefCell<Vec<Work>> = RefCell::default();
}

/// Runs the operations in `WORK` inside the waker call.
struct Inline(ThreadId, Shared<u32>);

impl Wake for Inline {
    fn wake(self: Arc<Inline>) {
        assert_eq!(self.0, thread::current().id());
        *self.1.lock().unwrap() += 1;
        let work = WORK.with_borrow_mut(Vec::pop);
        if let Some(work) = work {
            work();
        }
    }
}

type Pending = Pin<Box<dyn Future<Output = ()>>>;

/// Polls a future once, and drops or repolls it as soon as it is woken. Returns the number of wake-ups.
fn woken_inline(is_dropped: bool, wait: impl Future<Output = ()> + 'static, wake: impl FnOnce()) -> u32 {
    let inline = Arc::new(Inline(thread::current().id(), Shared::new(0)));
    let waker = Waker::from(Arc::clone(&inline));
    let future: Rc<RefCell<Option<Pending>>> = Rc::new(RefCell::new(Some(Box::pin(wait))));
    let poll = {
        let (future, waker) = (Rc::clone(&future), waker.clone());
        move || {
            let taken = future.borrow_mut().take();
            let mut taken = taken.expect("it has not ended");
            if taken.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
                *future.borrow_mut() = Some(taken);
            }
        }
    };
    poll();
    assert!(future.borrow().is_some(), "it has to wait");
    let again: Work = if is_dropped { Box::new(move || drop(future.borrow_mut().take())) } else { Box::new(poll) };
    WORK.with_borrow_mut(|work| work.push(again));
    wake();
    *inline.1.lock().unwrap()
}

#[test]
fn wakers_may_use_what_wakes_them() {
    for is_dropped in [false, true] {
        let lock = Rc::new(Mutex::new(0));
        let guard = lock.try_lock().expect("the lock is free");
        let wait = {
            let lock = Rc::clone(&lock);
            async move { *lock.lock().await += 1 }
        };
        assert_eq!(woken_inline(is_dropped, wait, || drop(guard)), 1);
        assert_eq!(*lock.try_lock().expect("all have left"), i32::from(!is_dropped));

        let lock = RwLock::new();
        let guard = lock.try_acquire(Mode::Shared).expect("the lock is free");
        let wait = {
            let lock = lock.clone();
            async move { drop(lock.acquire(Mode::Exclusive).await) }
        };
        assert_eq!(woken_inline(is_dropped, wait, || drop(guard)), 1);
        assert_eq!(lock.exclusive_holds(), u64::from(!is_dropped));

        for close in [false, true] {
            let pool = Rc::new(Pool::new());
            let wait = {
                let pool = Rc::clone(&pool);
                async move { assert_eq!(pool.take().await.is_none(), close) }
            };
            let wake = || if close { pool.close() } else { pool.put(1) };
            assert_eq!(woken_inline(is_dropped, wait, wake), 1);
        }

        for all in [false, true] {
            let notify = Rc::new(Notify::new());
            let wait = {
                let notify = Rc::clone(&notify);
                async move { notify.notified().await }
            };
            let wake = || if all { notify.notify_all() } else { notify.notify_one() };
            assert_eq!(woken_inline(is_dropped, wait, wake), 1);
        }
    }
}

/// A waker may own the last reference to a task, which is dropped with it and may use the same lock in doing so.
#[test]
fn a_waker_may_use_the_lock_when_it_is_dropped() {
    thread_local! {
        static LOCK: Mutex<()> = const { Mutex::new(()) };
    }
    struct Owner(ThreadId);
    impl Wake for Owner {
        fn wake(self: Arc<Owner>) {}
    }
    impl Drop for Owner {
        fn drop(&mut self) {
            assert_eq!(self.0, thread::current().id());
            LOCK.with(|lock| {
                let mut wait = Box::pin(lock.lock());
                drop(wait.as_mut().poll(&mut Context::from_waker(Waker::noop())));
            });
        }
    }
    fn poll<F: Future>(wait: Pin<&mut F>) {
        let waker = Waker::from(Arc::new(Owner(thread::current().id())));
        drop(wait.poll(&mut Context::from_waker(&waker)));
    }
    LOCK.with(|lock| {
        let guard = lock.try_lock().expect("the lock is free");
        let mut first = Box::pin(lock.lock());
        poll(first.as_mut());
        // The second waker replaces the first.
        poll(first.as_mut());
        drop(first);
        let mut second = Box::pin(lock.lock());
        poll(second.as_mut());
        drop(guard);
        poll(second.as_mut());
        assert!(lock.try_lock().is_some());
    });
}
