//! Every interleaving of a thread that waits until deadlines with the queue that wakes it.
//!
//! The model checker weakens sequentially consistent accesses to acquire and release, but not fences,
//! so a fence stands here beside each access that the kernel uses for its full barrier (which it is, on
//! x86-64 and in the language's memory model).

use kernel::alarm::{self, Words};
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use loom::sync::{Arc, Mutex};
use loom::thread;

/// No deadline.
const NEVER: u64 = u64::MAX;

struct Modelled {
    deadline: AtomicU64,
    place: AtomicU64,
    wait: AtomicU32,
}

impl Words for Modelled {
    fn deadline(&self) -> u64 {
        self.deadline.load(Ordering::Acquire)
    }

    fn set_deadline(&self, deadline: u64) {
        self.deadline.store(deadline, Ordering::Release);
    }

    fn swap_deadline(&self, deadline: u64) {
        self.deadline.swap(deadline, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    fn wait(&self) -> u32 {
        self.wait.load(Ordering::Acquire)
    }

    fn set_wait(&self, wait: u32) {
        self.wait.store(wait, Ordering::Release);
    }

    fn place(&self) -> u64 {
        self.place.load(Ordering::SeqCst)
    }

    fn swap_place(&self, place: u64) {
        self.place.swap(place, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }
}

/// A thread without a deadline that has this place in the queue.
fn with_place(place: u64) -> Arc<Modelled> {
    let (deadline, wait) = (AtomicU64::new(NEVER), AtomicU32::new(0));
    Arc::new(Modelled { deadline, place: AtomicU64::new(place), wait })
}

#[test]
fn a_deadline_that_is_set_while_the_place_is_used_up_is_not_forgotten() {
    loom::model(|| {
        let words = with_place(5);
        // The queue's lock, and the expiry of the thread's entry in the queue.
        let queue = Arc::new(Mutex::new(Some(5)));
        let expiring = {
            let (words, queue) = (words.clone(), queue.clone());
            thread::spawn(move || {
                let mut place = queue.lock().expect("nobody panics with the lock");
                *place = None;
                let (deadline, _) = alarm::wanted(&*words);
                if deadline != NEVER {
                    *place = Some(deadline);
                    words.swap_place(deadline);
                }
            })
        };
        if alarm::set(&*words, 10, 1) {
            let mut place = queue.lock().expect("nobody panics with the lock");
            if words.place() > 10 {
                *place = Some(10);
                words.swap_place(10);
            }
        }
        expiring.join().expect("the queue ends");
        assert_eq!(*queue.lock().expect("nobody panics with the lock"), Some(10));
        assert_eq!(words.place(), 10);
    });
}

#[test]
fn a_wait_is_never_seen_with_the_earlier_deadline_of_another() {
    loom::model(|| {
        let words = with_place(5);
        alarm::set(&*words, 5, 1);
        let expiring = {
            let words = words.clone();
            thread::spawn(move || alarm::wanted(&*words))
        };
        // The first wait ends, and the next has a later deadline.
        alarm::clear(&*words);
        alarm::set(&*words, 10, 2);
        let (deadline, wait) = expiring.join().expect("the queue ends");
        assert!(wait == 1 || deadline >= 10, "wait {wait} would end at {deadline}");
    });
}

#[test]
fn a_place_that_is_early_enough_is_left_alone() {
    loom::model(|| {
        let words = with_place(5);
        assert!(!alarm::set(&*words, 10, 1));
        assert!(!alarm::set(&*words, 5, 2));
        assert!(alarm::set(&*words, 4, 3));
        assert_eq!(alarm::wanted(&*words), (4, 3));
        assert!(alarm::set(&*words, 4, 4), "it has no place any more");
    });
}
