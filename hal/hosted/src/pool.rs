//! A pool of host threads for blocking calls, so that processors do not block.
//!
//! Key type: [`Pool`]. Threads start on demand; a machine without disks has none. Deliberately not here:
//! the jobs.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

type Job = Box<dyn FnOnce() + Send>;

/// The kernel's completion entry runs on these threads, after a system call.
const THREAD_STACK_BYTES: usize = 256 * 1024;

struct State {
    jobs: VecDeque<Job>,
    threads: usize,
    busy: usize,
    closed: bool,
}

/// Threads for one kind of job.
pub(crate) struct Pool {
    name: &'static str,
    max_threads: usize,
    state: Mutex<State>,
    work: Condvar,
    idle: Condvar,
}

/// For disk I/O.
pub(crate) static DISKS: Pool = Pool::new("disk", 4);
/// For the files of host folders.
pub(crate) static FOLDERS: Pool = Pool::new("folder", 8);

impl Pool {
    /// Creates a pool without threads.
    pub(crate) const fn new(name: &'static str, max_threads: usize) -> Self {
        let state = State { jobs: VecDeque::new(), threads: 0, busy: 0, closed: false };
        Self { name, max_threads, state: Mutex::new(state), work: Condvar::new(), idle: Condvar::new() }
    }

    /// Queues a job. Returns `false`, and drops it, if the host cannot create a thread to run it.
    #[must_use]
    pub(crate) fn submit(&'static self, job: Job) -> bool {
        let mut state = self.lock();
        let waiting_threads = state.threads - state.busy;
        if state.jobs.len() >= waiting_threads && state.threads < self.max_threads {
            let thread = thread::Builder::new().name(self.name.into()).stack_size(THREAD_STACK_BYTES);
            match thread.spawn(|| self.work()) {
                Ok(_) => state.threads += 1,
                Err(_) if state.threads == 0 => return false,
                Err(_) => {}
            }
        }
        state.jobs.push_back(job);
        drop(state);
        self.work.notify_one();
        true
    }

    /// Starts no more jobs, and waits until the running ones are done, at most for the limit.
    pub(crate) fn close(&self, limit: Duration) {
        let mut state = self.lock();
        state.closed = true;
        drop(self.idle.wait_timeout_while(state, limit, |state| state.busy > 0));
    }

    fn work(&self) {
        let mut state = self.lock();
        loop {
            while state.closed || state.jobs.is_empty() {
                state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            let Some(job) = state.jobs.pop_front() else { continue };
            state.busy += 1;
            drop(state);
            job();
            state = self.lock();
            state.busy -= 1;
            self.idle.notify_all();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
