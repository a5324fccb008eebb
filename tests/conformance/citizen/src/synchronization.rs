//! Acts about threads, locks and events.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use sip::sync::{Event, Mutex};
use sip::{Deadline, thread, time};

use crate::Stage;

/// Many threads contending for one lock lose no update and never hold it simultaneously.
pub(crate) fn mutex(_: Stage) -> i32 {
    const THREADS: u64 = 64;
    const ROUNDS: u64 = 2000;
    let counter = Arc::new(Mutex::new(0u64));
    let inside = Arc::new(AtomicU64::new(0));
    let threads: Vec<_> = (0..THREADS)
        .map(|number| {
            let (counter, inside) = (Arc::clone(&counter), Arc::clone(&inside));
            thread::spawn(move || {
                for round in 0..ROUNDS {
                    let mut counter = counter.lock();
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two threads are in the lock");
                    *counter += 1;
                    if (round + number) % 97 == 0 {
                        thread::yield_now();
                    }
                    inside.fetch_sub(1, Ordering::SeqCst);
                }
            })
            .expect("a thread")
        })
        .collect();
    for thread in threads {
        thread.join().expect("it ends");
    }
    assert_eq!(*counter.lock(), THREADS * ROUNDS, "updates were lost");
    0
}

/// An automatic event wakes one waiter for each set; a manual one wakes all until it is reset.
pub(crate) fn events(_: Stage) -> i32 {
    let auto = Arc::new(Event::auto().expect("an event"));
    let woken = Arc::new(AtomicU64::new(0));
    let threads: Vec<_> = (0..20)
        .map(|_| {
            let (auto, woken) = (Arc::clone(&auto), Arc::clone(&woken));
            thread::spawn(move || {
                auto.wait();
                woken.fetch_add(1, Ordering::SeqCst);
            })
            .expect("a thread")
        })
        .collect();
    thread::sleep(Deadline::after_ms(5));
    assert_eq!(woken.load(Ordering::SeqCst), 0, "an event that is not set woke somebody");
    for expected in 1..=20 {
        auto.set();
        let deadline = Deadline::after_ms(2000);
        while woken.load(Ordering::SeqCst) < expected {
            assert!(!deadline.has_passed(), "nobody woke at set number {expected}");
            thread::yield_now();
        }
        assert_eq!(woken.load(Ordering::SeqCst), expected, "one set woke more than one");
    }
    for thread in threads {
        thread.join().expect("it ends");
    }
    assert!(!auto.wait_until(Deadline::after_ms(1)), "an automatic event is taken by its waiter");
    auto.set();
    auto.set();
    assert!(auto.wait_until(Deadline::PASSED), "a set event is remembered");
    assert!(!auto.wait_until(Deadline::PASSED), "once");
    let manual = Event::manual().expect("an event");
    manual.set();
    assert!(manual.wait_until(Deadline::PASSED) && manual.wait_until(Deadline::PASSED), "it stays set");
    manual.reset();
    assert!(!manual.wait_until(Deadline::PASSED), "until it is reset");
    0
}

/// A join returns the thread's value after its end, in either order.
pub(crate) fn join(_: Stage) -> i32 {
    for round in 0..500u64 {
        let quick = thread::spawn(move || round * 2).expect("a thread");
        if round % 2 == 0 {
            thread::yield_now();
        }
        assert_eq!(quick.join(), Ok(round * 2), "the thread's value");
    }
    let slow = thread::spawn(|| {
        thread::sleep(Deadline::after_ms(5));
        7
    });
    assert_eq!(slow.expect("a thread").join(), Ok(7), "the value of a thread that slept");
    // Dropping the handle detaches the thread.
    let flag = Arc::new(Event::manual().expect("an event"));
    let other = Arc::clone(&flag);
    drop(thread::spawn(move || other.set()).expect("a thread"));
    assert!(flag.wait_until(Deadline::after_ms(2000)), "a thread that nobody joins still runs");
    0
}

/// Sleepers wake in the order of their deadlines, never early. The deadlines are spaced by the longest time for which
/// a host may preempt a virtual processor.
pub(crate) fn sleep_order(_: Stage) -> i32 {
    let order = Arc::new(Mutex::new(Vec::new()));
    let start = time::monotonic();
    let threads: Vec<_> = [150u64, 50, 200, 100]
        .into_iter()
        .map(|milliseconds| {
            let order = Arc::clone(&order);
            thread::spawn(move || {
                let deadline = Deadline::at(start + milliseconds * 1_000_000);
                thread::sleep(deadline);
                assert!(deadline.has_passed(), "a sleeper woke early");
                order.lock().push(milliseconds);
            })
            .expect("a thread")
        })
        .collect();
    for thread in threads {
        thread.join().expect("it ends");
    }
    assert_eq!(*order.lock(), [50, 100, 150, 200], "the order of waking");
    let late = (time::monotonic() - start) / 1_000_000;
    assert!(late < 1500, "200 ms of sleep took {late} ms");
    0
}

/// Threads that yield on one processor alternate.
pub(crate) fn yield_order(_: Stage) -> i32 {
    let turns = Arc::new(Mutex::new(Vec::new()));
    let gate = Arc::new(Event::manual().expect("an event"));
    let threads: Vec<_> = (0..3u64)
        .map(|number| {
            let (turns, gate) = (Arc::clone(&turns), Arc::clone(&gate));
            thread::spawn(move || {
                gate.wait();
                for _ in 0..200 {
                    turns.lock().push(number);
                    thread::yield_now();
                }
            })
            .expect("a thread")
        })
        .collect();
    gate.set();
    for thread in threads {
        thread.join().expect("it ends");
    }
    let turns = turns.lock();
    assert_eq!(turns.len(), 600, "every turn was taken");
    if thread::processor_count() == 1 {
        // Preemption may occasionally let one run twice, nothing else may.
        let again = turns.windows(2).filter(|pair| pair[0] == pair[1]).count();
        assert!(again < 60, "a thread went on after its yield {again} times of 600");
    }
    0
}
