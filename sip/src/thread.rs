//! Threads of the process.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;

use abi::Status;

use crate::raw::{self, value as kernel};
use crate::sync::Mutex;
use crate::{Deadline, allocator, thread_block, time};

/// What a new thread finds behind its argument.
struct Start {
    shared: u64,
    body: Box<dyn FnOnce() + Send>,
}

/// A thread that was spawned. Dropping it lets the thread go on.
#[must_use = "dropping it gives up waiting for the thread's result"]
pub struct JoinHandle<T> {
    thread: Option<u64>,
    result: Arc<Mutex<Option<T>>>,
}

/// Runs a function on a new thread, whose stack is a slot of its own.
pub fn spawn<T, F>(body: F) -> Result<JoinHandle<T>, Status>
where
    T: Send + 'static,
    F: FnOnce() -> T + Send + 'static,
{
    let result = Arc::new(Mutex::new(None));
    let answer = Arc::clone(&result);
    let body = Box::new(move || {
        let value = body();
        *answer.lock() = Some(value);
    });
    let start = Box::into_raw(Box::new(Start { shared: allocator::shared_word(), body }));
    let entry = run as extern "C" fn(u64) -> !;
    let argument = start.expose_provenance() as u64;
    // SAFETY: `run` has the signature of a thread's entry, and the new thread alone takes `start`.
    match unsafe { raw::thread_create(entry as usize as u64, argument) }.into_result() {
        Ok(thread) => Ok(JoinHandle { thread: Some(thread), result }),
        Err(status) => {
            // SAFETY: no thread was made, so `start` is still this function's own.
            drop(unsafe { Box::from_raw(start) });
            Err(status)
        }
    }
}

extern "C" fn run(argument: u64) -> ! {
    let start: *mut Start = core::ptr::with_exposed_provenance_mut(argument as usize);
    // SAFETY: `spawn` leaked this box for this thread. The word in it is read and adopted before
    // anything uses the heap.
    let body = unsafe {
        allocator::adopt((*start).shared);
        Box::from_raw(start).body
    };
    body();
    loop {
        // Does not return. Nothing is left on the stack: a thread that ended with values on it would
        // take memory from under what is pinned there, so programs cannot call this.
        let _ = kernel::thread_exit();
    }
}

impl<T> JoinHandle<T> {
    /// Waits for the thread's end: its result.
    pub fn join(mut self) -> Result<T, Status> {
        if let Some(thread) = self.thread.take() {
            // Gives the handle up, too.
            kernel::thread_join(thread, Deadline::NEVER.as_ns())?;
        }
        // A thread that ends has left its result.
        self.result.lock().take().ok_or(Status::WrongState)
    }
}

impl<T> Drop for JoinHandle<T> {
    fn drop(&mut self) {
        if let Some(thread) = self.thread {
            // The handle is this value's own, so it cannot be refused.
            let _ = kernel::thread_release(thread);
        }
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("JoinHandle").field(&self.thread).finish()
    }
}

/// Lets the other runnable threads go first.
pub fn yield_now() {
    // Cannot fail.
    let _ = kernel::thread_yield();
}

/// Stops the calling thread until the deadline.
pub fn sleep(deadline: Deadline) {
    time::sleep_until(deadline);
}

/// A number that tells the calling thread from the others of its process.
pub(crate) fn current_number() -> u64 {
    thread_block::own_thread()
}

/// How many processors the machine has.
pub fn processor_count() -> usize {
    kernel::processor_count().map_or(1, |count| count as usize)
}

/// Bytes left on the calling thread's stack.
pub fn stack_left() -> usize {
    kernel::stack_left().map_or(0, |bytes| bytes as usize)
}
