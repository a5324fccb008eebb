//! Processes of domains that have ended, kept for others: making one takes the host longer than all that a small
//! program does.
//!
//! Key type: [`Kept`]. A process is given to another domain only if nothing is left in it of the programs that it had.
//! Memory is easy: the mapper unmaps all but [pages of images](super::image_pages) when a domain closes. What a hostile
//! program leaves in its *thread* is not, since what comes out of a domain is a claim. So a thread is taken to be at
//! the stub's own instruction only because the host says so: it counts those who sleep until the turn of the first
//! runner changes, and the runner's filter lets no other instruction wait for that. Then the kernel clears what the
//! thread could write and wakes it, and it resets all its registers, its signal stack and its mask of signals before it
//! sleeps there again, which is known in the same way: nothing is mapped that it could write but its own window, and a
//! signal in between ends the process. A process whose thread does not sleep in time is ended. Deliberately not here:
//! domains with more than one runner, whose processes end with them.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use super::Domain;

/// Maximum processes that are kept.
pub(super) const MAX_KEPT: usize = 32;
/// Time between two looks at the processes that are not ready.
const BETWEEN_LOOKS: Duration = Duration::from_millis(1);
/// Looks after which a process that is not ready ends. Each step takes a well-behaved thread some microseconds.
const MAX_LOOKS: u32 = 100;

/// The processes of ended domains.
#[derive(Debug, Default)]
pub(super) struct Kept(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    list: Mutex<List>,
    /// There is one more, or the machine has no domains any more.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct List {
    /// In the order of their ends.
    entries: VecDeque<Entry>,
    /// Whether a thread looks after them.
    is_watched: bool,
    is_over: bool,
}

#[derive(Debug)]
struct Entry {
    domain: Arc<Domain>,
    looks: u32,
}

impl Kept {
    /// Keeps the process of a closed domain; the oldest one ends if there are too many.
    pub(super) fn keep(&self, domain: Arc<Domain>) {
        let mut list = self.0.lock();
        // The first time, and not at the start, when the machine is not confined yet.
        list.is_watched = list.is_watched || self.start();
        list.entries.push_back(Entry { domain, looks: 0 });
        let maximum = if list.is_watched { MAX_KEPT } else { 0 };
        let oldest = if list.entries.len() > maximum { list.entries.pop_front() } else { None };
        drop(list);
        self.0.changed.notify_one();
        end(oldest);
    }

    /// Takes a process that has nothing for a new domain.
    pub(super) fn take(&self) -> Option<Arc<Domain>> {
        let mut list = self.0.lock();
        let mut entries = list.entries.iter();
        let place = match entries.position(|entry| entry.domain.is_clean()) {
            Some(place) => place,
            None => list.get_on()?,
        };
        let domain = list.entries.remove(place)?.domain;
        drop(list);
        domain.open();
        Some(domain)
    }

    /// Starts the thread that looks after the processes; false if the host refuses it.
    fn start(&self) -> bool {
        let shared = Arc::clone(&self.0);
        let watch = move || while shared.look_after() {};
        thread::Builder::new().name("kept domains".into()).spawn(watch).is_ok()
    }
}

impl List {
    /// Gets all processes on their way; returns the place of the first that is ready.
    fn get_on(&self) -> Option<usize> {
        let ready = self.entries.iter().enumerate().filter(|(_, entry)| entry.domain.renew());
        ready.map(|(place, _)| place).reduce(|first, _| first)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.0.lock().is_over = true;
        self.0.changed.notify_one();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, List> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for processes that are not ready, and looks once whether they are; false if the machine has no domains any
    /// more.
    fn look_after(&self) -> bool {
        let is_idle = |list: &mut List| !list.is_over && list.entries.iter().all(|entry| entry.domain.renew());
        drop(self.changed.wait_while(self.lock(), is_idle));
        thread::sleep(BETWEEN_LOOKS);
        let mut list = self.lock();
        let looked_at = list.entries.drain(..).map(Entry::looked_at);
        let (late, others) = looked_at.partition(|entry| entry.looks > MAX_LOOKS);
        list.entries = others;
        let is_over = list.is_over;
        drop(list);
        end::<VecDeque<_>>(late);
        !is_over
    }
}

impl Entry {
    fn looked_at(mut self) -> Self {
        self.looks = if self.domain.renew() { 0 } else { self.looks + 1 };
        self
    }
}

/// Ends processes; without the lock, because it takes a while.
fn end<T: IntoIterator<Item = Entry>>(entries: T) {
    entries.into_iter().for_each(|entry| entry.domain.end());
}
