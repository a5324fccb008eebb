//! A few host threads that wait, so that no processor does.
//!
//! Key type: [`Pool`]. Threads start when the first job comes; a machine without disks has none. Deliberately not here:
//! what a job is.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

type Job = Box<dyn FnOnce() + Send>;

/// The kernel's completion entry runs on these threads, beside a system call.
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

/// Those that wait for disks.
pub(crate) static DISKS: Pool = Pool::new("disk", 4);
/// Those that wait for the files of folders.
pub(crate) static FOLDERS: Pool = Pool::new("folder", 8);

impl Pool {
    /// One without threads.
    pub(crate) const fn new(name: &'static str, max_threads: usize) -> Self {
        let state = State { jobs: VecDeque::new(), threads: 0, busy: 0, closed: false };
        Self { name, max_threads, state: Mutex::new(state), work: Condvar::new(), idle: Condvar::new() }
    }

    /// Queues a job. Answers `false`, and drops it, when the host gives no thread to run it.
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

    /// Starts no more jobs and waits until those under way are done, though no longer than the limit.
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
