//! The run queue of an executor, and its wakers, which may be called from any thread.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::task::Wake;
use core::cell::{Cell, RefCell};
use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::{Context, RawWakerVTable, Waker};

use super::current;
use crate::raw::value as kernel;
use crate::sync::Mutex;

/// Key of the future passed to `block_on`.
pub(super) const MAIN_TASK: u64 = u64::MAX;

/// The runnable tasks of one executor, and the task being polled. Used by the executor's thread only.
pub(super) struct Ready {
    keys: RefCell<VecDeque<u64>>,
    running: Cell<Option<Running>>,
    pub(super) mail: Arc<Mail>,
}

/// A task that is being polled, and the parts of its waker.
#[derive(Clone, Copy)]
struct Running {
    key: u64,
    data: *const (),
    table: &'static RawWakerVTable,
}

/// The party to wake when an event occurs.
pub(super) enum Waiter {
    /// A task of this executor, woken without its waker, which saves the atomic operations.
    Task(u64),
    /// The owner of this waker.
    Other(Waker),
}

impl Ready {
    /// Creates an empty queue for the executor that waits on this set.
    pub(super) fn new(set: u64) -> Ready {
        let mail = Arc::new(Mail { keys: Mutex::new(VecDeque::new()), is_there: AtomicBool::new(false), set });
        Ready { keys: RefCell::default(), running: Cell::new(None), mail }
    }

    pub(super) fn push(&self, key: u64) {
        self.keys.borrow_mut().push_back(key);
    }

    pub(super) fn pop(&self) -> Option<u64> {
        let mut keys = self.keys.borrow_mut();
        if self.mail.is_there.load(Ordering::Acquire) {
            self.mail.take(&mut keys);
        }
        keys.pop_front()
    }

    /// Marks the task with this key and waker as being polled, until [`Ready::stops`].
    pub(super) fn runs(&self, key: u64, waker: &Waker) {
        self.running.set(Some(Running { key, data: waker.data(), table: waker.vtable() }));
    }

    /// Marks that no task is being polled.
    pub(super) fn stops(&self) {
        self.running.set(None);
    }

    /// Returns the waiter that this context's waker would wake.
    pub(super) fn waiter(&self, context: &Context<'_>) -> Waiter {
        let waker = context.waker();
        match self.running.get() {
            Some(running) if waker.data() == running.data && ptr::eq(waker.vtable(), running.table) => {
                Waiter::Task(running.key)
            }
            _ => Waiter::Other(waker.clone()),
        }
    }

    pub(super) fn wake(&self, waiter: Waiter) {
        match waiter {
            Waiter::Task(key) => self.push(key),
            Waiter::Other(waker) => waker.wake(),
        }
    }
}

/// Keys of tasks woken from outside the executor's own tasks.
pub(super) struct Mail {
    keys: Mutex<VecDeque<u64>>,
    is_there: AtomicBool,
    /// The executor's wait set, which is alerted when another thread has put a key in.
    set: u64,
}

impl Mail {
    fn put(&self, key: u64) {
        let mut keys = self.keys.lock();
        keys.push_back(key);
        self.is_there.store(true, Ordering::Release);
    }

    fn take(&self, to: &mut VecDeque<u64>) {
        let mut keys = self.keys.lock();
        self.is_there.store(false, Ordering::Relaxed);
        to.append(&mut keys);
    }
}

pub(super) struct TaskWaker {
    key: u64,
    thread: u64,
    mail: Arc<Mail>,
}

impl TaskWaker {
    pub(super) fn waker(key: u64, mail: &Arc<Mail>) -> Waker {
        let thread = crate::thread::current_number();
        Waker::from(Arc::new(TaskWaker { key, thread, mail: Arc::clone(mail) }))
    }
}

impl Wake for TaskWaker {
    fn wake(self: Arc<TaskWaker>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<TaskWaker>) {
        let is_own_thread = crate::thread::current_number() == self.thread;
        if is_own_thread
            && let Some(executor) = current::try_get()
            && Arc::ptr_eq(&executor.ready.mail, &self.mail)
        {
            executor.ready.push(self.key);
            return;
        }
        self.mail.put(self.key);
        // The executor's own thread checks its mail before it blocks.
        if !is_own_thread {
            // Fails if the executor has ended and closed the set; then there is nothing to wake.
            let _ = kernel::wait_set_alert(self.mail.set);
        }
    }
}
