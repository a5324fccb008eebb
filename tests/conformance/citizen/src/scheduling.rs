//! Acts that try to monopolize the processor.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use sip::exheap::ExBox;
use sip::thread;

/// Computes forever, without a call.
pub(crate) fn spin() -> ! {
    let mut number = 1u64;
    loop {
        number = core::hint::black_box(number.wrapping_mul(6364136223846793005).wrapping_add(1));
    }
}

/// Calls the kernel forever, without waiting.
pub(crate) fn spin_in_kernel() -> ! {
    loop {
        core::hint::black_box(sip::debug::cycles());
    }
}

/// Maximum blocks of a chain, unless the quota is smaller.
const CHAIN: usize = 200_000;
/// Maximum number of chains that are freed.
const ROUNDS: usize = 12;
/// Number of chains after which it is shown.
const SHARED: u32 = 2;

fn chain() -> ExBox<[u64; 8]> {
    let mut chain = ExBox::new([0; 8]).expect("a block");
    for _ in 0..CHAIN {
        let Ok(mut next) = ExBox::new([0; 8]) else { break };
        assert!(next.attach(chain).is_ok(), "a block is attached");
        chain = next;
    }
    chain
}

/// Freeing a long chain of blocks is one kernel call. Another thread of the same processor runs meanwhile.
pub(crate) fn free_chains() -> i32 {
    let (turns, done) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let spinner = {
        let (turns, done) = (Arc::clone(&turns), Arc::clone(&done));
        thread::spawn(move || {
            while !done.load(Ordering::Relaxed) {
                turns.fetch_add(1, Ordering::Relaxed);
            }
        })
    };
    let mut shared = 0;
    let mut rounds = 0;
    while shared < SHARED && rounds < ROUNDS {
        rounds += 1;
        let chain = chain();
        let before = turns.load(Ordering::Relaxed);
        drop(chain);
        shared += u32::from(turns.load(Ordering::Relaxed) != before);
    }
    done.store(true, Ordering::Relaxed);
    spinner.expect("a thread").join().expect("it ends");
    // If freeing takes less than a quantum it is not always preempted.
    assert!(shared >= SHARED, "another thread ran while {shared} of {ROUNDS} chains were freed");
    0
}
