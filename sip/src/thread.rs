//! Threads of the process.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;

use abi::Status;

use crate::raw::{self, value as kernel};
use crate::sync::Mutex;
use crate::{Deadline, allocator, thread_block, time};

/// The argument of a new thread.
struct Start {
    shared: u64,
    body: Box<dyn FnOnce() + Send>,
}

/// Handle to a spawned thread. Dropping it detaches the thread.
#[must_use = "dropping it gives up waiting for the thread's result"]
pub struct JoinHandle<T> {
    thread: Option<u64>,
    result: Arc<Mutex<Option<T>>>,
}

/// Runs a function on a new thread, with a stack of its own.
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
    // SAFETY: `run` has the signature of a thread's entry, and only the new thread takes `start`.
    match unsafe { raw::thread_create(entry as usize as u64, argument) }.into_result() {
        Ok(thread) => Ok(JoinHandle { thread: Some(thread), result }),
        Err(status) => {
            // SAFETY: no thread was created, so this function still owns `start`.
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
        // free memory to which pinned references remain, so programs cannot call this.
        let _ = kernel::thread_exit();
    }
}

impl<T> JoinHandle<T> {
    /// Waits for the thread to end and returns its result.
    pub fn join(mut self) -> Result<T, Status> {
        if let Some(thread) = self.thread.take() {
            // Consumes the handle, too.
            kernel::thread_join(thread, Deadline::NEVER.as_ns())?;
        }
        // A thread that has ended has stored its result.
        self.result.lock().take().ok_or(Status::WrongState)
    }
}

impl<T> Drop for JoinHandle<T> {
    fn drop(&mut self) {
        if let Some(thread) = self.thread {
            // This value owns the handle, so the kernel cannot refuse it.
            let _ = kernel::thread_release(thread);
        }
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("JoinHandle").field(&self.thread).finish()
    }
}

/// Yields the processor to other runnable threads.
pub fn yield_now() {
    // Cannot fail.
    let _ = kernel::thread_yield();
}

/// Blocks the calling thread until the deadline.
pub fn sleep(deadline: Deadline) {
    time::sleep_until(deadline);
}

/// Returns a number that distinguishes the calling thread from the others of its process.
pub(crate) fn current_number() -> u64 {
    thread_block::own_thread()
}

/// Returns the number of processors of the machine.
pub fn processor_count() -> usize {
    kernel::processor_count().map_or(1, |count| count as usize)
}

/// Returns the bytes left on the calling thread's stack.
pub fn stack_left() -> usize {
    kernel::stack_left().map_or(0, |bytes| bytes as usize)
}
