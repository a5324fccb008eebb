//! Which tasks have something to do. Wakers may be called from any thread.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::task::Wake;
use core::task::Waker;

use crate::raw::value as kernel;
use crate::sync::Mutex;

/// The key of the future that `block_on` was given.
pub(super) const MAIN_TASK: u64 = u64::MAX;

pub(super) struct ReadyQueue {
    keys: Mutex<VecDeque<u64>>,
    /// The executor's wait set, which is told when another thread has put something in.
    set: u64,
}

impl ReadyQueue {
    pub(super) fn new(set: u64) -> ReadyQueue {
        ReadyQueue { keys: Mutex::new(VecDeque::new()), set }
    }

    pub(super) fn push(&self, key: u64) {
        self.keys.lock().push_back(key);
    }

    pub(super) fn pop(&self) -> Option<u64> {
        self.keys.lock().pop_front()
    }
}

pub(super) struct TaskWaker {
    key: u64,
    thread: u64,
    ready: Arc<ReadyQueue>,
}

impl TaskWaker {
    pub(super) fn waker(key: u64, ready: &Arc<ReadyQueue>) -> Waker {
        let thread = crate::thread::current_number();
        Waker::from(Arc::new(TaskWaker { key, thread, ready: Arc::clone(ready) }))
    }
}

impl Wake for TaskWaker {
    fn wake(self: Arc<TaskWaker>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<TaskWaker>) {
        self.ready.push(self.key);
        // The executor's own thread looks at the queue before it waits.
        if crate::thread::current_number() != self.thread {
            // If it is closed, the executor has ended, and nobody waits.
            let _ = kernel::wait_set_alert(self.ready.set);
        }
    }
}
