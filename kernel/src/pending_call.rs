//! The call that a thread is in, as it is recorded when it returns.
//!
//! Written by the thread itself alone. `recorder` reads those of other threads at the end of a recording, when nobody
//! takes one back any more. Deliberately not here: what is recorded.

use core::sync::atomic::{AtomicU64, Ordering};

/// Maximum words of a pending call: arguments, and words of the message buffer.
const WORDS: usize = 20;

/// The call, or none.
#[derive(Default)]
pub struct PendingCall {
    /// One more than the number of the event that comes next, when the call began; 0: there is none.
    number: AtomicU64,
    process: AtomicU64,
    thread: AtomicU64,
    /// Its function in the low byte, above that the number of its words.
    shape: AtomicU64,
    words: [AtomicU64; WORDS],
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
}

impl PendingCall {
    /// Keeps a call; false if it has too many words.
    #[inline(always)]
    pub fn put(&self, call: &Call, arguments: &[u64], read: &[u64]) -> bool {
        let count = arguments.len() + read.len();
        if count > WORDS {
            return false;
        }
        let (first, rest) = self.words.split_at(arguments.len());
        first
            .iter()
            .zip(arguments)
            .chain(rest.iter().zip(read))
            .for_each(|(at, &word)| at.store(word, Ordering::Relaxed));
        self.process.store(call.process, Ordering::Relaxed);
        self.thread.store(call.thread, Ordering::Relaxed);
        self.shape.store(u64::from(call.function) | (count as u64) << 8, Ordering::Relaxed);
        self.number.store(call.number + 1, Ordering::Release);
        true
    }

    /// The call with its words, if there is one.
    #[inline(always)]
    pub fn get(&self) -> Option<(Call, impl ExactSizeIterator<Item = u64>)> {
        let number = self.number.load(Ordering::Acquire).checked_sub(1)?;
        let [process, thread, shape] = [&self.process, &self.thread, &self.shape].map(|at| at.load(Ordering::Relaxed));
        let words = self.words.get(..(shape >> 8) as usize)?.iter().map(|word| word.load(Ordering::Relaxed));
        Some((Call { number, process, thread, function: shape as u8 }, words))
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
    use alloc::vec::Vec;

    #[test]
    fn a_call_is_kept_until_it_is_cleared() {
        let pending = PendingCall::default();
        assert!(pending.get().is_none());
        let call = Call { number: 0, process: 3, thread: 5, function: 200 };
        assert!(pending.put(&call, &[1, 2], &[3, 4, 5]));
        let (found, words) = pending.get().expect("a call");
        assert_eq!((found, words.collect::<Vec<_>>()), (call, [1, 2, 3, 4, 5].to_vec()));
        pending.clear();
        assert!(pending.get().is_none());
    }

    #[test]
    fn a_call_with_too_many_words_is_not_kept() {
        let pending = PendingCall::default();
        let call = Call { number: 9, process: 3, thread: 5, function: 1 };
        assert!(pending.put(&call, &[1; 6], &[2; WORDS - 6]));
        pending.clear();
        assert!(!pending.put(&call, &[1; 6], &[2; WORDS - 5]));
        assert!(pending.get().is_none());
    }
}
