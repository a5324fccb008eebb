//! Word with a thread's state, and the three steps of a wait on it.
//!
//! Generic over the atomic, so that a model checker can explore every interleaving (see
//! `tests/wait_word.rs`). The two low bits are the state; the rest counts waits, so that a claim on an
//! old wait fails.

use core::sync::atomic::{AtomicU32, Ordering};

/// On a processor.
pub const RUNNING: u32 = 0;
/// In a run queue.
pub const RUNNABLE: u32 = 1;
/// Waiting; the count in the upper bits identifies the wait.
pub const BLOCKED: u32 = 2;
/// It has ended.
pub const ENDED: u32 = 3;

/// An atomic word.
pub trait Word {
    /// Reads it, relaxed.
    fn read(&self) -> u32;
    /// Swaps it, as a full barrier.
    fn replace(&self, value: u32);
    /// Replaces `from` by `to`, acquiring and releasing; false if it was not `from`.
    fn exchange(&self, from: u32, to: u32) -> bool;
}

impl Word for AtomicU32 {
    #[inline(always)]
    fn read(&self) -> u32 {
        self.load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn replace(&self, value: u32) {
        self.swap(value, Ordering::SeqCst);
    }

    #[inline(always)]
    fn exchange(&self, from: u32, to: u32) -> bool {
        self.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

/// Returns the word with another state.
#[inline(always)]
pub const fn with_state(word: u32, state: u32) -> u32 {
    (word & !3) | state
}

/// Begins a wait of the running thread and returns the word that its tickets carry. The swap's barrier ensures that
/// either the thread sees that it must end, or its killer sees it wait.
#[inline(always)]
pub fn begin(word: &impl Word) -> u32 {
    let waiting = with_state(word.read(), BLOCKED).wrapping_add(4);
    word.replace(waiting);
    waiting
}

/// Ends the wait on behalf of a waker: true for exactly one claim of each wait.
#[inline(always)]
pub fn claim(word: &impl Word, waiting: u32) -> bool {
    word.exchange(waiting, with_state(waiting, RUNNABLE))
}

/// Cancels the wait from the thread itself; false if it has been claimed.
#[inline(always)]
pub fn cancel(word: &impl Word, waiting: u32) -> bool {
    word.exchange(waiting, with_state(waiting, RUNNING))
}
