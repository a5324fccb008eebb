//! The words by which a thread and the queue of timers agree on when the thread is to be woken.
//!
//! A thread that waits in a loop, each time with a deadline, is usually woken before it. So its queue entry is left
//! alone: an entry no later than the deadline serves, because the queue rereads the deadline when the entry expires
//! and inserts a later one if the thread still waits. The queue changes only when a deadline is earlier than the
//! thread's entry.
//!
//! Generic over the atomics, so that a model checker can explore every interleaving (see `tests/alarm.rs`). Not
//! here: the queue, whose lock [`Words::place`] is changed with.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use abi::limits::NEVER;

/// The words of one thread.
pub trait Words {
    /// When the wait ends at the latest, acquiring.
    fn deadline(&self) -> u64;
    /// Sets that, releasing.
    fn set_deadline(&self, deadline: u64);
    /// Sets that, as a full barrier.
    fn swap_deadline(&self, deadline: u64);
    /// The state word of the wait that the deadline is of, acquiring.
    fn wait(&self) -> u32;
    /// Sets that, releasing.
    fn set_wait(&self, wait: u32);
    /// The time of the thread's place in the queue, [`NEVER`] if it has none; ordered after a full barrier.
    fn place(&self) -> u64;
    /// Sets that, as a full barrier. With the queue's lock held.
    fn swap_place(&self, place: u64);
}

/// The words as a thread has them.
pub struct Alarm {
    deadline: AtomicU64,
    place: AtomicU64,
    wait: AtomicU32,
}

impl Default for Alarm {
    fn default() -> Alarm {
        Alarm { deadline: AtomicU64::new(NEVER), place: AtomicU64::new(NEVER), wait: AtomicU32::new(0) }
    }
}

impl Words for Alarm {
    #[inline(always)]
    fn deadline(&self) -> u64 {
        self.deadline.load(Ordering::Acquire)
    }

    #[inline(always)]
    fn set_deadline(&self, deadline: u64) {
        self.deadline.store(deadline, Ordering::Release);
    }

    #[inline(always)]
    fn swap_deadline(&self, deadline: u64) {
        self.deadline.swap(deadline, Ordering::SeqCst);
    }

    #[inline(always)]
    fn wait(&self) -> u32 {
        self.wait.load(Ordering::Acquire)
    }

    #[inline(always)]
    fn set_wait(&self, wait: u32) {
        self.wait.store(wait, Ordering::Release);
    }

    #[inline(always)]
    fn place(&self) -> u64 {
        self.place.load(Ordering::SeqCst)
    }

    #[inline(always)]
    fn swap_place(&self, place: u64) {
        self.place.swap(place, Ordering::SeqCst);
    }
}

/// The thread is to be woken from this wait at the deadline. True if its place in the queue comes too late for that:
/// then the queue has to be changed.
#[inline(always)]
pub fn set(words: &impl Words, deadline: u64, wait: u32) -> bool {
    // A reader that pairs the wait below with the old deadline finds that deadline gone.
    words.set_deadline(NEVER);
    words.set_wait(wait);
    // A barrier: either the queue sees this deadline when the thread's place is used up, or this sees that it is.
    words.swap_deadline(deadline);
    words.place() > deadline
}

/// Ends the thread's wait. Earlier tickets in queues are stale, as the wait's number is used up.
#[inline(always)]
pub fn clear(words: &impl Words) {
    words.set_deadline(NEVER);
}

/// The thread's place is used up. Gives when it is to be woken, and from which wait. With the queue's lock held.
pub fn wanted(words: &impl Words) -> (u64, u32) {
    words.swap_place(NEVER);
    loop {
        let deadline = words.deadline();
        let wait = words.wait();
        if words.deadline() == deadline {
            return (deadline, wait);
        }
    }
}
