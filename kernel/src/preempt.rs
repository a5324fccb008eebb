//! Preemption points of the kernel, at which long work yields to other threads, like Linux's `cond_resched`.
//!
//! Each processor has a word of pending flags. It is read before a processor returns to a SIP and at each [`pause`].
//! Deliberately not here: the work that a flag asks for. It is far above (`deferred`), so the two functions that a
//! preemption point may call are installed at boot; they are off every fast path.

use alloc::boxed::Box;
use core::sync::atomic::{AtomicBool, Ordering};

use crate::lock::AtomicRef;
use crate::machine::machine;
use crate::{arch, latency};

/// Pending flag: other threads should run.
pub const PENDING_RESCHEDULE: u32 = 1;
/// Pending flag: the quantum expired.
pub const PENDING_TIMER: u32 = 2;
/// Pending flag: the current thread's SIP is being ended.
pub const PENDING_KILL: u32 = 4;
/// Pending flag: an interrupt line fired.
pub const PENDING_INTERRUPT: u32 = 8;
/// Pending flag: memory is low.
pub const PENDING_RECLAIM: u32 = 16;
/// Pending flag: deferred wake-ups remain.
pub const PENDING_WAKE: u32 = 32;
/// Pending flag that stays set, on a machine that observes calls: makes every ABI call and every preemption point pass
/// through the functions that do pending work.
pub const PENDING_OBSERVER: u32 = 64;

static OBSERVED: AtomicBool = AtomicBool::new(false);

/// Notes that the machine observes calls.
pub fn begin_observed() {
    OBSERVED.store(true, Ordering::Relaxed);
}

/// Whether the machine observes calls.
#[inline(always)]
pub fn is_observed() -> bool {
    OBSERVED.load(Ordering::Relaxed)
}

/// Items of a long loop between two preemption points.
const ITEMS: usize = 32;

/// Functions called by a preemption point.
pub struct Hooks {
    /// Does the pending work and may switch to another thread. The calling thread is not ended.
    pub service: fn(),
    /// Lets the other runnable threads go first.
    pub yield_now: fn(),
}

static HOOKS: AtomicRef<Hooks> = AtomicRef::none();

/// Installs the hooks. Called before any thread runs; without them a preemption point does nothing.
pub fn start(hooks: Hooks) {
    HOOKS.set(Some(Box::leak(Box::new(hooks))));
}

/// A preemption point: the calling thread may be preempted here as a SIP's code may be anywhere. No lock is held. It
/// ends no thread, so the work is finished.
#[inline(always)]
pub fn pause() {
    #[cfg(test)]
    crate::test_machine::count_pause();
    // Unit tests also do long work on threads that are no processor.
    if !cfg!(test) && (latency::is_on() || arch::cpu_pending() & !PENDING_KILL != 0) {
        service();
    }
}

#[cold]
#[inline(never)]
fn service() {
    if let Some(hooks) = HOOKS.get() {
        (hooks.service)();
    }
}

/// A preemption point of a loop that polls for another thread's work: that thread may be on this processor.
#[cold]
pub fn let_others_go_first() {
    if let Some(hooks) = HOOKS.get() {
        (hooks.yield_now)();
    }
    pause();
    machine().relax(1);
}

/// The items of a long loop, with a [`pause`] every [`ITEMS`] of them. The loop body holds no lock from one item to the
/// next.
pub fn pausing<T>(items: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
    items.enumerate().map(|(number, item)| {
        if number % ITEMS == ITEMS - 1 {
            pause();
        }
        item
    })
}
