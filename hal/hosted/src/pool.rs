//! A few host threads that wait for disks, so that no processor does.
//!
//! Threads start when the first job comes; a machine without disks has none. Deliberately not here:
//! what a job is.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

type Job = Box<dyn FnOnce() + Send>;

const MOST_THREADS: usize = 4;
/// The kernel's completion entry runs on these threads, beside a system call.
const THREAD_STACK_BYTES: usize = 256 * 1024;

struct State {
    jobs: VecDeque<Job>,
    threads: usize,
    busy: usize,
    closed: bool,
}

static STATE: Mutex<State> = Mutex::new(State { jobs: VecDeque::new(), threads: 0, busy: 0, closed: false });
static WORK: Condvar = Condvar::new();
static IDLE: Condvar = Condvar::new();

/// Queues a job. Answers `false`, and drops it, when the host gives no thread to run it.
#[must_use]
pub(crate) fn submit(job: Job) -> bool {
    let mut state = lock();
    let waiting_threads = state.threads - state.busy;
    if state.jobs.len() >= waiting_threads && state.threads < MOST_THREADS {
        let started = thread::Builder::new().name("disk".into()).stack_size(THREAD_STACK_BYTES).spawn(work);
        match started {
            Ok(_) => state.threads += 1,
            Err(_) if state.threads == 0 => return false,
            Err(_) => {}
        }
    }
    state.jobs.push_back(job);
    drop(state);
    WORK.notify_one();
    true
}

/// Starts no more jobs and waits until those under way are done, though no longer than the limit.
pub(crate) fn close(limit: Duration) {
    let mut state = lock();
    state.closed = true;
    drop(IDLE.wait_timeout_while(state, limit, |state| state.busy > 0));
}

fn work() {
    let mut state = lock();
    loop {
        while state.closed || state.jobs.is_empty() {
            state = WORK.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let Some(job) = state.jobs.pop_front() else { continue };
        state.busy += 1;
        drop(state);
        job();
        state = lock();
        state.busy -= 1;
        IDLE.notify_all();
    }
}

fn lock() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}
