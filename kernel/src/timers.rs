//! Deadlines: a queue in which each thread has one place at most (see [`alarm`](crate::alarm)).

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

/// Places: their times, and the threads'.
static PLACES: SpinLock<BTreeSet<(u64, u32)>> = SpinLock::new(BTreeSet::new());
static NEXT: AtomicU64 = AtomicU64::new(NEVER);

/// The first expiry, or NEVER.
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

/// The wait has ended.
#[inline(always)]
pub fn disarm(ticket: Ticket) {
    alarm::clear(&ticket.thread.alarm);
}

/// Gives a thread an earlier place.
fn insert(deadline: u64, ticket: Ticket) {
    let (alarm, index) = (&ticket.thread.alarm, ticket.thread.index());
    let mut places = PLACES.lock();
    let before = alarm.place();
    // A concurrent call may have set one.
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
        // An idle processor sleeps until what was the first expiry when it went idle.
        sched::wake_idle_processor();
    }
}

/// Threads that are woken at once; of more, the rest when the processor leaves the kernel next.
const AT_ONCE: usize = 64;

/// Wakes those whose deadline has come. On a processor, outside any wait of the current thread.
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
            // It waits for something later by now.
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
