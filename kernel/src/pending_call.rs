//! The call that a thread is in, as it is recorded when it returns.
//!
//! Written by the thread itself alone. `recorder` reads those of other threads at the end of a recording, when nobody
//! takes one back any more. Deliberately not here: arguments, and words that a call reads; a replay makes them again.

use core::sync::atomic::{AtomicU64, Ordering};

use recording::{Digest, Unreturned};

/// The call, or none, and the number of plain calls before it.
#[derive(Default)]
pub struct PendingCall {
    /// Below [`PLAIN`], one more than the number of the event that comes next, when the call began; 0: there is none.
    /// From there on, the number of plain calls. In one word, so that no other processor sees a call counted and pending.
    state: AtomicU64,
    process: AtomicU64,
    thread: AtomicU64,
    function: AtomicU64,
    /// Of all calls of the thread, with this one.
    digest: AtomicU64,
}

/// Shift of the number of plain calls.
const PLAIN: u32 = 48;
/// Maximum number of them: a byte.
const MAX_PLAIN: u64 = 255;

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
        let plain = self.state.load(Ordering::Relaxed) >> PLAIN << PLAIN;
        self.state.store(plain | (number + 1), Ordering::Release);
    }

    /// The call that the thread is in, if it is in one, and the plain calls before it.
    #[inline(always)]
    pub fn get(&self) -> Unreturned {
        let state = self.state.load(Ordering::Acquire);
        let number = state & ((1 << PLAIN) - 1);
        let [process, thread, function, digest] =
            [&self.process, &self.thread, &self.function, &self.digest].map(|at| at.load(Ordering::Relaxed));
        let call = (number > 0).then_some((function as u8, Digest(digest).check()));
        Unreturned { number: number.wrapping_sub(1), process, thread, call, plain: (state >> PLAIN) as u8 }
    }

    /// Counts the call as a plain one: it has returned at once, without value or words. False if there is none, or no
    /// more are counted.
    #[inline(always)]
    pub fn count(&self) -> bool {
        let state = self.state.load(Ordering::Relaxed);
        let plain = state >> PLAIN;
        let counts = state != plain << PLAIN && plain < MAX_PLAIN;
        if counts {
            self.state.store((plain + 1) << PLAIN, Ordering::Release);
        }
        counts
    }

    /// Forgets it, and the plain calls.
    #[inline(always)]
    pub fn clear(&self) {
        self.state.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(calls: &[(usize, &[u64], &[u64])]) -> u8 {
        calls
            .iter()
            .fold(Digest::default(), |sum, (function, arguments, read)| sum.with(*function, arguments, read))
            .check()
    }

    fn pending(process: u64, thread: u64) -> PendingCall {
        let pending = PendingCall::default();
        pending.begin(process, thread);
        pending
    }

    #[test]
    fn a_call_is_kept_until_it_is_cleared() {
        let pending = pending(3, 5);
        assert_eq!(pending.get().call, None);
        pending.put(0, 200, &[1, 2], &[3, 4, 5]);
        let Unreturned { number, process, thread, call, plain } = pending.get();
        assert_eq!((number, process, thread, plain), (0, 3, 5, 0));
        assert_eq!(call, Some((200, check(&[(200, &[1, 2], &[3, 4, 5])]))));
        pending.clear();
        assert_eq!(pending.get().call, None);
    }

    #[test]
    fn the_digest_is_of_all_calls_of_a_thread() {
        let pending = pending(3, 5);
        pending.put(0, 1, &[7], &[]);
        pending.put(1, 2, &[], &[8]);
        assert_eq!(pending.get().call, Some((2, check(&[(1, &[7], &[]), (2, &[], &[8])]))));
        pending.begin(3, 6);
        pending.put(2, 2, &[], &[8]);
        assert_eq!(pending.get().call, Some((2, check(&[(2, &[], &[8])]))));
    }

    #[test]
    fn plain_calls_are_counted_up_to_a_byte() {
        let pending = pending(3, 5);
        assert!(!pending.count(), "no call");
        for count in 0..255 {
            pending.put(count.into(), 1, &[], &[]);
            assert_eq!((pending.get().plain, pending.get().number), (count, count.into()));
            assert!(pending.count());
            assert_eq!((pending.get().plain, pending.get().call), (count + 1, None));
        }
        pending.put(300, 2, &[], &[]);
        assert!(!pending.count(), "too many");
        let left = pending.get();
        assert_eq!((left.plain, left.number, left.call.map(|call| call.0)), (255, 300, Some(2)));
    }
}
