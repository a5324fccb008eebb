//! Every interleaving of a waiting thread with its wakers.
//!
//! The model checker weakens sequentially consistent accesses to acquire and release, but not fences,
//! so a fence stands here beside each swap that the kernel uses for its full barrier (which it is, on
//! x86-64 and in the language's memory model).

use kernel::wait_word::{self, BLOCKED, RUNNING, Word, with_state};
use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use loom::sync::{Arc, Mutex};
use loom::thread;

struct Modelled(AtomicU32);

impl Word for Modelled {
    fn read(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    fn replace(&self, value: u32) {
        self.0.swap(value, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    fn exchange(&self, from: u32, to: u32) -> bool {
        self.0.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

fn running() -> Arc<Modelled> {
    Arc::new(Modelled(AtomicU32::new(with_state(0, RUNNING))))
}

#[test]
fn exactly_one_of_two_wakers_and_the_thread_ends_a_wait() {
    loom::model(|| {
        let word = running();
        let waiting = wait_word::begin(&*word);
        let claimers: Vec<_> = (0..2)
            .map(|_| {
                let word = word.clone();
                thread::spawn(move || u32::from(wait_word::claim(&*word, waiting)))
            })
            .collect();
        let own = u32::from(wait_word::cancel(&*word, waiting));
        let claimed: u32 = claimers.into_iter().map(|claimer| claimer.join().expect("a claimer ends")).sum();
        assert_eq!(own + claimed, 1);
    });
}

#[test]
fn a_claim_on_an_old_wait_does_nothing() {
    loom::model(|| {
        let word = running();
        let first = wait_word::begin(&*word);
        let late = {
            let word = word.clone();
            thread::spawn(move || wait_word::claim(&*word, first))
        };
        if wait_word::cancel(&*word, first) {
            let second = wait_word::begin(&*word);
            assert!(!late.join().expect("the claimer ends"), "the first wait was given up");
            assert_eq!(word.read(), second, "the second wait goes on");
        } else {
            assert!(late.join().expect("the claimer ends"));
        }
    });
}

#[test]
fn a_message_that_comes_while_the_receiver_goes_to_sleep_is_not_missed() {
    loom::model(|| {
        let word = running();
        // The channel: whether there is a message, and the waiter's ticket.
        let channel = Arc::new(Mutex::new((false, None)));
        let sender = {
            let (word, channel) = (word.clone(), channel.clone());
            thread::spawn(move || {
                let mut channel = channel.lock().expect("nobody panics with the lock");
                channel.0 = true;
                channel.1.take().is_some_and(|waiting| wait_word::claim(&*word, waiting))
            })
        };
        let waiting = wait_word::begin(&*word);
        let slept = {
            let mut channel = channel.lock().expect("nobody panics with the lock");
            if !channel.0 {
                channel.1 = Some(waiting);
            }
            !channel.0
        };
        let woken = sender.join().expect("the sender ends");
        assert_eq!(slept, woken, "who sleeps is woken, and nobody else");
    });
}

#[test]
fn a_thread_that_goes_to_sleep_while_it_is_killed_either_sees_that_or_is_woken() {
    loom::model(|| {
        let word = running();
        let dying = Arc::new(AtomicBool::new(false));
        let killer = {
            let (word, dying) = (word.clone(), dying.clone());
            thread::spawn(move || {
                // A swap, as in `lifecycle::end`: a barrier between the mark and the check of the thread.
                dying.swap(true, Ordering::SeqCst);
                fence(Ordering::SeqCst);
                let state = word.0.load(Ordering::SeqCst);
                state & 3 == BLOCKED && wait_word::claim(&*word, state)
            })
        };
        let waiting = wait_word::begin(&*word);
        let saw = dying.load(Ordering::SeqCst) && wait_word::cancel(&*word, waiting);
        let woken = killer.join().expect("the killer ends");
        assert!(saw || woken, "it would sleep for ever");
    });
}
