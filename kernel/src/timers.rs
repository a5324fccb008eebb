//! Deadlines.

use alloc::collections::BTreeMap;
use core::sync::atomic::{AtomicU64, Ordering};

use abi::limits::NEVER;

use crate::lock::SpinLock;
use crate::machine::machine;
use crate::sched;
use crate::thread::THREADS;
use crate::wait::{Ticket, Woken};

/// Keyed by deadline, then thread; the value is the state word of the wait.
static TIMERS: SpinLock<BTreeMap<(u64, u32), u32>> = SpinLock::new(BTreeMap::new());
static NEXT: AtomicU64 = AtomicU64::new(NEVER);

/// The earliest deadline, or NEVER.
pub fn next() -> u64 {
    NEXT.load(Ordering::Acquire)
}

/// Adds the deadline of a wait.
pub fn insert(deadline: u64, ticket: Ticket) {
    let mut timers = TIMERS.lock();
    timers.insert((deadline, ticket.thread.index()), ticket.state);
    let earlier = deadline < NEXT.load(Ordering::Relaxed);
    if earlier {
        NEXT.store(deadline, Ordering::Release);
    }
    drop(timers);
    if earlier {
        // An idle processor sleeps until the deadline that was the earliest when it went idle.
        sched::wake_idle_processor();
    }
}

/// Removes what [`insert`] added, if it is there.
pub fn remove(deadline: u64, ticket: Ticket) {
    let mut timers = TIMERS.lock();
    if timers.remove(&(deadline, ticket.thread.index())).is_some() && deadline == NEXT.load(Ordering::Relaxed) {
        update_next(&timers);
    }
}

/// Wakes those whose deadline has come. On a processor, outside any wait of the current thread.
pub fn expire() {
    if NEXT.load(Ordering::Acquire) == NEVER {
        return;
    }
    let now = machine().monotonic_ns();
    while NEXT.load(Ordering::Acquire) <= now {
        let mut timers = TIMERS.lock();
        let Some((&(deadline, index), &state)) = timers.first_key_value() else { return };
        if deadline > now {
            return;
        }
        timers.remove(&(deadline, index));
        update_next(&timers);
        drop(timers);
        if let Some(thread) = THREADS.slot(index) {
            Ticket { thread, state }.wake(Woken::TimedOut);
        }
    }
}

fn update_next(timers: &BTreeMap<(u64, u32), u32>) {
    NEXT.store(timers.first_key_value().map_or(NEVER, |(&(deadline, _), _)| deadline), Ordering::Release);
}
