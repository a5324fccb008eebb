//! Acts of several threads at one object of the kernel: no wake-up is lost, whoever is interrupted where. They are short,
//! so that the simulation can try many interleavings.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};

use sip::{Status, thread};

use crate::Act;
use crate::messages::{LEND, RETURNED, receive, send};
use crate::objects::{block, channel};
use crate::raw::{abi, call, must, number_of, set_words, word};

pub(crate) const ACTS: &[(&str, Act)] =
    &[("mutex-contended", |_| mutex()), ("wait-any-shared", |_| wait_any()), ("loans-settled", |_| loans_settled())];

const FOREVER: u64 = u64::MAX;

/// A function that must succeed, by its number: the code between two calls is short.
#[derive(Clone, Copy)]
struct Function(usize);

impl Function {
    fn of(name: &str) -> Function {
        Function(number_of(name))
    }

    fn call(self, arguments: &[u64]) {
        if let Err(status) = call(self.0, arguments) {
            panic!("{}: {}", sip::abi::FUNCTIONS[self.0].name, status.text());
        }
    }
}

/// Yields until another thread has come to a round; on a machine whose host lets it wait, with pauses.
fn await_round(give_way: Function, of_other: &AtomicU64, round: u64) {
    const MAX_YIELDS: usize = 5_000;
    const PAUSE_NS: u64 = 10_000_000;
    const MAX_PAUSES: usize = 1_000;
    let has_come = || of_other.load(Ordering::SeqCst) >= round;
    let yields = (0..MAX_YIELDS).any(|_| {
        give_way.call(&[]);
        has_come()
    });
    let pauses = |_: usize| {
        must("thread_sleep", &[must("time_monotonic", &[]) + PAUSE_NS]);
        has_come()
    };
    assert!(yields || (0..MAX_PAUSES).any(pauses), "a wake-up was lost");
}

/// A thread that finds a mutex held gets it when its holder, who does not come back in this round, releases it.
fn mutex() -> i32 {
    const ROUNDS: u64 = 30;
    let mutex = must("mutex_create", &[]);
    let [acquire, release, give_way] = ["mutex_acquire", "mutex_release", "thread_yield"].map(Function::of);
    let [held, done] = [(); 2].map(|()| Arc::new(AtomicU64::new(0)));
    let (of_holder, of_waiter) = (Arc::clone(&held), Arc::clone(&done));
    let waiter = thread::spawn(move || {
        for round in 1..=ROUNDS {
            await_round(give_way, &of_holder, round);
            acquire.call(&[mutex, FOREVER]);
            release.call(&[mutex]);
            of_waiter.store(round, Ordering::SeqCst);
        }
    });
    for round in 1..=ROUNDS {
        acquire.call(&[mutex, FOREVER]);
        held.store(round, Ordering::SeqCst);
        // The other comes before the release, or after it, or meanwhile.
        (0..round % 4).for_each(|_| give_way.call(&[]));
        release.call(&[mutex]);
        await_round(give_way, &done, round);
    }
    waiter.expect("a thread").join().expect("it ends");
    must("mutex_close", &[mutex]);
    0
}

/// A thread that waits for two events and takes one passes on the wake-up of the other.
fn wait_any() -> i32 {
    const ROUNDS: usize = 12;
    for round in 0..ROUNDS {
        let [either, other] = core::array::from_fn(|_| must("event_create_auto", &[]));
        let both = thread::spawn(move || {
            set_words(&[either, other]);
            must("wait_any", &[2, FOREVER])
        });
        must("thread_yield", &[]);
        let one = thread::spawn(move || must("event_wait", &[other, FOREVER]));
        if round % 2 == 0 {
            must("thread_yield", &[]);
        }
        for event in [other, either] {
            must("event_set", &[event]);
        }
        let taken = both.expect("a thread").join().expect("it ends");
        if taken == 1 {
            // That was the other's, who waits for the next.
            must("event_set", &[other]);
        }
        one.expect("a thread").join().expect("it ends");
        for event in [either, other] {
            assert_ne!(abi("event_close", &[event]), Err(Status::Busy), "nobody waits any more");
        }
    }
    0
}

/// A thread that lends and returns a block is not held up by one that closes endpoints with loans outstanding, by which
/// all loans are charged anew.
fn loans_settled() -> i32 {
    const ROUNDS: u64 = 30;
    let (lender, borrower) = channel("Errand");
    let lent = block(256);
    let done = Arc::new(AtomicU64::new(0));
    let of_closer = Arc::clone(&done);
    let closer = thread::spawn(move || {
        while of_closer.load(Ordering::SeqCst) < ROUNDS {
            close_with_a_loan();
        }
    });
    for round in 1..=ROUNDS {
        pass_loan(LEND, lender, borrower, lent);
        pass_loan(RETURNED, borrower, lender, lent);
        must("heap_describe", &[lent]);
        done.store(round, Ordering::SeqCst);
    }
    closer.expect("a thread").join().expect("it ends");
    for endpoint in [lender, borrower] {
        must("channel_close", &[endpoint]);
    }
    must("heap_free", &[lent]);
    0
}

/// Sends a block over a channel, as a loan or back, and receives it there.
fn pass_loan(tag: u16, from: u64, to: u64, lent: u64) {
    send(from, tag, (0, 1, 0), &[lent, 0, 256]).expect("a loan is allowed");
    assert_eq!((receive(to), word(0)), (Ok(tag), lent), "it arrives");
}

/// Closes the endpoint of a lender whose block is out.
fn close_with_a_loan() {
    let (lender, borrower) = channel("Errand");
    let lent = block(64);
    send(lender, LEND, (0, 1, 0), &[lent, 0, 64]).expect("a loan is allowed");
    assert_eq!(receive(borrower), Ok(LEND), "the loan arrives");
    for endpoint in [lender, borrower] {
        must("channel_close", &[endpoint]);
    }
    must("heap_free", &[lent]);
}
