//! Tests of the two lists, of tickets, and of charging at switches.

extern crate std;

use alloc::rc::Rc;
use core::cell::{Cell, RefCell};
use std::vec::Vec;

use abi::limits::NEVER;

use super::*;
use crate::process::ProcessRef;
use crate::test_machine::{alone, end_quantum, run, spawn, with_quota};
use crate::thread::THREADS;
use crate::wait::{self, Ticket, Waiters, Woken};

/// Log entries of the threads, in order.
#[derive(Clone, Default)]
struct Log(Rc<RefCell<Vec<&'static str>>>);

impl Log {
    fn add(&self, what: &'static str) {
        self.0.borrow_mut().push(what);
    }

    /// Returns the entries added since the last call.
    fn take(&self) -> Vec<&'static str> {
        core::mem::take(&mut *self.0.borrow_mut())
    }

    /// Spawns a thread that logs `what` and ends.
    fn spawn(&self, process: ProcessRef, what: &'static str) {
        let log = self.clone();
        spawn(process, move || log.add(what));
    }
}

fn sip() -> ProcessRef {
    with_quota(|quota| quota.threads = 20)
}

/// Slot for the ticket of a waiting thread.
type Held = Rc<Cell<Option<Ticket>>>;

/// A thread that waits this many times, publishes its ticket, and logs the end of each wait.
fn waiter(process: ProcessRef, name: &'static str, times: usize, log: &Log) -> Held {
    let held = Held::default();
    let (ticket, log) = (held.clone(), log.clone());
    spawn(process, move || {
        for _ in 0..times {
            let begun = wait::begin();
            ticket.set(Some(begun));
            assert_eq!(wait::block(begun, NEVER), Woken::Signalled);
            log.add(name);
        }
    });
    held
}

fn wake(held: &Held) -> bool {
    held.get().expect("it waits").wake(Woken::Signalled)
}

#[test]
fn unblocked_threads_run_in_the_order_in_which_they_were_woken() {
    let _alone = alone();
    let (log, process) = (Log::default(), sip());
    let held: Vec<Held> = ["a", "b", "c"].into_iter().map(|name| waiter(process, name, 1, &log)).collect();
    run();
    assert_eq!(log.take(), [""; 0]);
    for number in [1, 2, 0] {
        assert!(wake(&held[number]));
    }
    run();
    assert_eq!(log.take(), ["b", "c", "a"]);
}

#[test]
fn what_was_unblocked_recently_runs_before_what_was_preempted() {
    let _alone = alone();
    let (log, process) = (Log::default(), sip());
    let sleeper = waiter(process, "woken", 1, &log);
    run();
    let first = log.clone();
    spawn(process, move || {
        first.add("first");
        end_quantum();
        first.add("first again");
    });
    let second = log.clone();
    spawn(process, move || {
        second.add("second");
        assert!(wake(&sleeper));
    });
    log.spawn(process, "third");
    run();
    // The quantum moved the second and the third to the preempted list before the first, which ran.
    assert_eq!(log.take(), ["first", "second", "woken", "third", "first again"]);
}

#[test]
fn a_woken_thread_inherits_the_quantum_of_its_waker() {
    const ROUNDS: usize = 50;
    let _alone = alone();
    let (log, process) = (Log::default(), sip());
    let (one, other) = (waiter(process, "one", 0, &log), Held::default());
    // Two that hand over to each other, and a preempted one that is also runnable.
    let hog = log.clone();
    spawn(process, move || {
        end_quantum();
        hog.add("hog");
    });
    let partner = |name: &'static str, own: Held, peer: Held, strikes: bool| {
        let log = log.clone();
        move || {
            for round in 0..ROUNDS {
                if round == ROUNDS - 1 && strikes {
                    log.add("tick");
                    end_quantum();
                    log.add(name);
                }
                let ticket = wait::begin();
                own.set(Some(ticket));
                if let Some(peer) = peer.get() {
                    peer.wake(Woken::Signalled);
                }
                if round < ROUNDS - 1 {
                    wait::block(ticket, NEVER);
                } else {
                    wait::drop_wait(ticket);
                }
            }
            log.add(name);
        }
    };
    spawn(process, partner("pinged", one.clone(), other.clone(), false));
    spawn(process, partner("ponged", other, one, true));
    let switches = cpu::this().switches.load(Ordering::Relaxed);
    run();
    let log = log.take();
    let place = |what| log.iter().position(|&entry| entry == what).expect("logged");
    assert!(place("tick") < place("hog"), "{log:?}: the pair gave way before its quantum was over");
    assert!(place("hog") < place("ponged"), "{log:?}: the switches to it gave the pair a quantum of its own");
    assert!(cpu::this().switches.load(Ordering::Relaxed) - switches >= 2 * ROUNDS as u64 - 4, "they did not hand over");
}

#[test]
fn a_quantum_that_ends_with_nothing_else_runnable_goes_on() {
    let _alone = alone();
    let (log, process) = (Log::default(), sip());
    let alone_here = log.clone();
    spawn(process, move || {
        let before = cpu::this().switches.load(Ordering::Relaxed);
        end_quantum();
        assert_eq!(cpu::this().switches.load(Ordering::Relaxed), before);
        alone_here.add("went on");
    });
    run();
    assert_eq!(log.take(), ["went on"]);
}

#[test]
fn a_thread_woken_from_outside_runs_behind_the_unblocked_and_before_the_preempted() {
    let _alone = alone();
    let (log, process) = (Log::default(), sip());
    let device = waiter(process, "device", 1, &log);
    let unblocked = waiter(process, "unblocked", 1, &log);
    run();
    let first = log.clone();
    spawn(process, move || {
        end_quantum();
        first.add("first again");
    });
    spawn(process, move || {
        assert!(device.get().expect("it waits").wake_from_outside(Woken::Signalled));
        assert!(wake(&unblocked));
    });
    log.spawn(process, "preempted");
    run();
    assert_eq!(log.take(), ["unblocked", "device", "preempted", "first again"]);
}

#[test]
fn a_thread_that_yields_runs_behind_the_others() {
    let _alone = alone();
    let (log, process) = (Log::default(), sip());
    let first = log.clone();
    spawn(process, move || {
        first.add("first");
        yield_now();
        first.add("first again");
    });
    log.spawn(process, "second");
    log.spawn(process, "third");
    run();
    assert_eq!(log.take(), ["first", "second", "third", "first again"]);
}

#[test]
fn a_stale_ticket_does_nothing() {
    let _alone = alone();
    let (log, process) = (Log::default(), sip());
    // Keeps the SIP alive.
    let keeper = waiter(process, "keeper", 1, &log);
    let held = waiter(process, "woken", 2, &log);
    run();
    let first = held.get().expect("it waits");
    assert!(first.wake(Woken::Signalled));
    assert!(!first.wake(Woken::Signalled), "a ticket serves twice");
    run();
    assert_eq!(log.take(), ["woken"]);
    // It waits again.
    assert!(!first.wake(Woken::TimedOut));
    run();
    assert_eq!(log.take(), [""; 0]);
    assert!(wake(&held));
    run();
    assert_eq!(log.take(), ["woken"]);
    // It has ended, and its slot has been reused.
    let last = held.get().expect("it waited");
    let next = waiter(process, "next", 1, &log);
    run();
    assert!(core::ptr::eq(next.get().expect("it waits").thread, last.thread), "the slot was not used again");
    assert!(!last.wake(Woken::Signalled) && !first.wake(Woken::Signalled));
    run();
    assert_eq!(log.take(), [""; 0]);
    assert!(wake(&next) && wake(&keeper));
    run();
    assert_eq!(log.take(), ["next", "keeper"]);
}

#[test]
fn a_wait_that_was_given_up_is_woken_by_nobody() {
    let _alone = alone();
    let (log, process) = (Log::default(), sip());
    let done = log.clone();
    spawn(process, move || {
        let ticket = wait::begin();
        assert!(wait::cancel(ticket));
        assert!(!ticket.wake(Woken::Signalled));
        done.add("went on");
    });
    run();
    assert_eq!(log.take(), ["went on"]);
    assert_eq!(cpu::this().unblocked.count(), 0);
}

#[test]
fn waiters_are_woken_in_order_and_a_stale_one_is_passed_over() {
    let _alone = alone();
    let (log, process) = (Log::default(), sip());
    let held: Vec<Held> = ["a", "b", "c"].into_iter().map(|name| waiter(process, name, 1, &log)).collect();
    run();
    let mut waiters = Waiters::default();
    for ticket in held.iter().filter_map(|held| held.get()) {
        waiters.add(ticket);
    }
    assert!(wake(&held[0]));
    let woken = waiters.wake_one().expect("one that waits");
    assert!(core::ptr::eq(woken, held[1].get().expect("it waits").thread));
    waiters.wake_all();
    assert!(waiters.is_empty());
    run();
    assert_eq!(log.take(), ["a", "b", "c"]);
}

#[test]
fn the_timer_charges_the_thread_that_it_strikes_and_a_switch_charges_nobody() {
    let _alone = alone();
    let (log, process) = (Log::default(), sip());
    let since = Rc::new(Cell::new(0));
    let seen = since.clone();
    let first = spawn(process, move || {
        seen.set(cpu::this().since.load(Ordering::Relaxed));
        yield_now();
    });
    let struck = log.clone();
    let second = spawn(process, move || {
        assert_eq!(cpu::this().since.load(Ordering::Relaxed), since.get(), "a switch charged somebody");
        account_sample();
        assert!(cpu::current().cycles.load(Ordering::Relaxed) > 0);
        struck.add("struck");
    });
    run();
    assert_eq!(log.take(), ["struck"]);
    let [first, second] = [first, second].map(|thread| thread.cycles.load(Ordering::Relaxed));
    assert_eq!((first, second > 0), (0, true));
    assert!(process.cycles.load(Ordering::Relaxed) >= second);
}

#[test]
fn threads_that_have_ended_give_back_their_slots_and_stacks() {
    let _alone = alone();
    let (log, process) = (Log::default(), sip());
    let count = || (THREADS.live(), crate::memory::usage().2);
    let before = count();
    let last = waiter(process, "last", 1, &log);
    for _ in 0..3 {
        log.spawn(process, "ran");
        assert_eq!(count(), (before.0 + 2, before.1 + 2));
        run();
        assert_eq!(count(), (before.0 + 1, before.1 + 1));
    }
    assert_eq!(process.state(), abi::ProcessState::Running);
    assert!(wake(&last));
    run();
    assert_eq!(log.take(), ["ran", "ran", "ran", "last"]);
    assert_eq!(count(), before);
    assert_eq!(process.state(), abi::ProcessState::Ended, "its last thread has ended");
}
