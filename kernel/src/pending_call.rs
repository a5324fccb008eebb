//! The call that a thread is in, as it is recorded when it returns.
//!
//! Written by the thread itself alone. `recorder` reads those of other threads at the end of a recording, when nobody
//! takes one back any more. Deliberately not here: arguments, and words that a call reads; a replay makes them again.

use core::sync::atomic::{AtomicU64, Ordering};

use recording::Digest;

/// The call, or none.
#[derive(Default)]
pub struct PendingCall {
    /// One more than the number of the event that comes next, when the call began; 0: there is none.
    number: AtomicU64,
    process: AtomicU64,
    thread: AtomicU64,
    function: AtomicU64,
    /// Of all calls of the thread, with this one.
    digest: AtomicU64,
}

/// What is known of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Number of the event that came next.
    pub number: u64,
    /// Id of its process.
    pub process: u64,
    /// Handle of its thread.
    pub thread: u64,
    /// Number of the function.
    pub function: u8,
    /// [`Digest::check`].
    pub check: u8,
}

impl PendingCall {
    /// A thread starts, in no call.
    pub fn begin(&self, process: u64, thread: u64) {
        self.clear();
        self.process.store(process, Ordering::Relaxed);
        self.thread.store(thread, Ordering::Relaxed);
        self.digest.store(Digest::default().0, Ordering::Relaxed);
    }

    /// Keeps a call.
    #[inline(always)]
    pub fn put(&self, number: u64, function: usize, arguments: &[u64], read: &[u64]) {
        let digest = Digest(self.digest.load(Ordering::Relaxed)).with(function, arguments, read);
        self.digest.store(digest.0, Ordering::Relaxed);
        self.function.store(function as u64, Ordering::Relaxed);
        self.number.store(number + 1, Ordering::Release);
    }

    /// The call, if there is one.
    #[inline(always)]
    pub fn get(&self) -> Option<Call> {
        let number = self.number.load(Ordering::Acquire).checked_sub(1)?;
        let [process, thread, function, digest] =
            [&self.process, &self.thread, &self.function, &self.digest].map(|at| at.load(Ordering::Relaxed));
        Some(Call { number, process, thread, function: function as u8, check: Digest(digest).check() })
    }

    /// Forgets it.
    #[inline(always)]
    pub fn clear(&self) {
        self.number.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_kept_until_it_is_cleared() {
        let pending = PendingCall::default();
        pending.begin(3, 5);
        assert_eq!(pending.get(), None);
        pending.put(0, 200, &[1, 2], &[3, 4, 5]);
        let check = Digest::default().with(200, &[1, 2], &[3, 4, 5]).check();
        assert_eq!(pending.get(), Some(Call { number: 0, process: 3, thread: 5, function: 200, check }));
        pending.clear();
        assert_eq!(pending.get(), None);
    }

    #[test]
    fn the_digest_is_of_all_calls_of_a_thread() {
        let pending = PendingCall::default();
        pending.begin(3, 5);
        pending.put(0, 1, &[7], &[]);
        pending.put(1, 2, &[], &[8]);
        let both = Digest::default().with(1, &[7], &[]).with(2, &[], &[8]);
        assert_eq!(pending.get().map(|call| call.check), Some(both.check()));
        pending.begin(3, 6);
        pending.put(2, 2, &[], &[8]);
        assert_eq!(pending.get().map(|call| call.check), Some(Digest::default().with(2, &[], &[8]).check()));
    }
}
