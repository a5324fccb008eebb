//! Words by which a thread and the timer queue agree on the time of the thread's wake-up.
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

/// Atomic words of one thread.
pub trait Words {
    /// Deadline of the wait, acquiring.
    fn deadline(&self) -> u64;
    /// Sets the deadline, releasing.
    fn set_deadline(&self, deadline: u64);
    /// Sets the deadline, as a full barrier.
    fn swap_deadline(&self, deadline: u64);
    /// State word of the wait to which the deadline belongs, acquiring.
    fn wait(&self) -> u32;
    /// Sets the state word, releasing.
    fn set_wait(&self, wait: u32);
    /// Expiry of the thread's entry in the queue, [`NEVER`] if it has none; ordered after a full barrier.
    fn place(&self) -> u64;
    /// Sets the expiry, as a full barrier. With the queue's lock held.
    fn swap_place(&self, place: u64);
}

/// The words embedded in a thread.
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

/// Arms the wait's deadline. Returns whether the thread's queue entry expires too late, so that the queue must be
/// changed.
#[inline(always)]
pub fn set(words: &impl Words, deadline: u64, wait: u32) -> bool {
    // A reader that pairs the wait below with the old deadline finds that deadline gone.
    words.set_deadline(NEVER);
    words.set_wait(wait);
    // A barrier: either the queue sees this deadline when the thread's entry expires, or this sees the expiry.
    words.swap_deadline(deadline);
    words.place() > deadline
}

/// Ends the thread's wait. Earlier tickets in queues become stale, because the wait's number is used up.
#[inline(always)]
pub fn clear(words: &impl Words) {
    words.set_deadline(NEVER);
}

/// Consumes the thread's expired entry. Returns the deadline and the wait to wake it from. With the queue's lock held.
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
