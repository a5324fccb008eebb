//! Exhausts handles, channels and threads, and then calls runtime functions that would create one more.
//!
//! Each must report an error, and none may use an invalid handle as a valid one.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::sync::Arc;
use alloc::vec::Vec;

use hostile_contract::talk;
use sip::executor::block_on;
use sip::exheap::ExVec;
use sip::select::WaitSet;
use sip::sync::{Event, Mutex};
use sip::{Deadline, thread};

sip::startup!();

/// Limit in the manifest.
const HANDLES: usize = 600;
const CHANNELS: usize = 100;
const THREADS: usize = 8;

/// Makes the attempt.
pub fn main(startup: Startup) -> i32 {
    let went_through = match startup.attempt {
        0 => handles(),
        1 => channels(),
        2 => threads(),
        3 => a_lock_without_a_handle(),
        other => panic!("there is no attempt {other}"),
    };
    i32::from(went_through)
}

fn all<T>(mut one: impl FnMut() -> Option<T>, most: usize) -> Vec<T> {
    core::iter::from_fn(&mut one).take(most + 1).collect()
}

fn handles() -> bool {
    for _ in 0..3 {
        let blocks = all(|| ExVec::<u8>::new(64).ok(), HANDLES);
        let events = all(|| Event::auto().ok(), HANDLES);
        let more = [
            ExVec::<u8>::new(64).is_ok(),
            Event::manual().is_ok(),
            WaitSet::<talk::Imp<talk::states::Start>>::new().is_ok(),
            block_on(async {}).is_ok(),
            thread::spawn(|| ()).is_ok(),
        ];
        if blocks.len() + events.len() > HANDLES || more.contains(&true) {
            return true;
        }
    }
    false
}

fn channels() -> bool {
    for _ in 0..3 {
        let channels = all(|| talk::new_channel().ok(), CHANNELS);
        if channels.len() > CHANNELS || talk::new_channel().is_ok() {
            return true;
        }
    }
    false
}

fn threads() -> bool {
    for _ in 0..3 {
        let gate = Arc::new(Event::manual().expect("an event"));
        let start = || {
            let gate = Arc::clone(&gate);
            thread::spawn(move || gate.wait()).ok()
        };
        let threads = all(start, THREADS);
        let went_through = threads.len() >= THREADS;
        gate.set();
        threads.into_iter().for_each(|thread| thread.join().expect("it ends"));
        if went_through {
            return true;
        }
    }
    false
}

/// A contended lock without a handle to wait with still provides mutual exclusion.
fn a_lock_without_a_handle() -> bool {
    const ROUNDS: u64 = 200;
    let value = Arc::new(Mutex::new((0u64, 0u64)));
    let begin = Arc::new(Event::manual().expect("an event"));
    let body = |value: Arc<Mutex<(u64, u64)>>, begin: Arc<Event>| {
        move || {
            begin.wait();
            for _ in 0..ROUNDS {
                let mut guard = value.lock();
                guard.0 += 1;
                thread::yield_now();
                guard.1 += 1;
            }
        }
    };
    let threads: Vec<_> = (0..THREADS - 2)
        .map(|_| thread::spawn(body(Arc::clone(&value), Arc::clone(&begin))).expect("a thread"))
        .collect();
    let events = all(|| Event::auto().ok(), HANDLES);
    begin.set();
    thread::sleep(Deadline::after_ms(1));
    threads.into_iter().for_each(|thread| thread.join().expect("it ends"));
    drop(events);
    let counted = *value.lock();
    counted != (ROUNDS * (THREADS as u64 - 2), ROUNDS * (THREADS as u64 - 2))
}
