//! Deadlines: a queue with at most one entry per thread (see [`alarm`](crate::alarm)).

use alloc::collections::BTreeSet;
use core::sync::atomic::{AtomicU64, Ordering};

use abi::limits::NEVER;

use crate::alarm::{self, Words as _};
use crate::arch;
use crate::lock::SpinLock;
use crate::machine::machine;
use crate::preempt::PENDING_WAKE;
use crate::sched;
use crate::thread::THREADS;
use crate::wait::{Ticket, Woken};

/// Entries: expiry and thread.
static PLACES: SpinLock<BTreeSet<(u64, u32)>> = SpinLock::new(BTreeSet::new());
static NEXT: AtomicU64 = AtomicU64::new(NEVER);

/// Returns the first expiry, or NEVER.
pub fn next() -> u64 {
    NEXT.load(Ordering::Acquire)
}

/// Arms the wait's deadline. The waiting thread calls this, and [`disarm`] when it resumes.
#[inline(always)]
pub fn arm(deadline: u64, ticket: Ticket) {
    if alarm::set(&ticket.thread.alarm, deadline, ticket.state) {
        insert(deadline, ticket);
    }
}

/// Disarms the deadline after the wait.
#[inline(always)]
pub fn disarm(ticket: Ticket) {
    alarm::clear(&ticket.thread.alarm);
}

/// Inserts an earlier entry for a thread.
fn insert(deadline: u64, ticket: Ticket) {
    let (alarm, index) = (&ticket.thread.alarm, ticket.thread.index());
    let mut places = PLACES.lock();
    let before = alarm.place();
    // A concurrent call may have set an earlier one.
    if before <= deadline {
        return;
    }
    places.remove(&(before, index));
    places.insert((deadline, index));
    alarm.swap_place(deadline);
    let earlier = deadline < NEXT.load(Ordering::Relaxed);
    if earlier {
        NEXT.store(deadline, Ordering::Release);
    }
    drop(places);
    if earlier {
        // An idle processor sleeps until the expiry that was first when it went idle.
        sched::wake_idle_processor();
    }
}

/// Maximum threads woken at once; the rest are woken when the processor next leaves the kernel.
const AT_ONCE: usize = 64;

/// Wakes threads whose deadline has expired. On a processor, outside any wait of the current thread.
pub fn expire() {
    if NEXT.load(Ordering::Acquire) == NEVER {
        return;
    }
    let now = machine().monotonic_ns();
    for _ in 0..AT_ONCE {
        if NEXT.load(Ordering::Acquire) > now {
            return;
        }
        let mut places = PLACES.lock();
        let Some(&(time, index)) = places.first() else { return };
        if time > now {
            return;
        }
        places.pop_first();
        let thread = THREADS.slot(index);
        let (deadline, state) = thread.map_or((NEVER, 0), |thread| alarm::wanted(&thread.alarm));
        if let Some(thread) = thread
            && deadline > now
            && deadline != NEVER
        {
            // By now it waits for a later deadline.
            places.insert((deadline, index));
            thread.alarm.swap_place(deadline);
        }
        NEXT.store(places.first().map_or(NEVER, |&(time, _)| time), Ordering::Release);
        drop(places);
        if let Some(thread) = thread
            && deadline <= now
        {
            Ticket { thread, state }.wake(Woken::TimedOut);
        }
    }
    arch::cpu_set_pending(PENDING_WAKE);
}
