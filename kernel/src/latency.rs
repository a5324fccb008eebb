//! Scheduling latency of each ABI function: the longest stretch between two preemption points of the calling thread.
//! Measured only with the boot parameter `measure-calls`; else threads get an ABI table without the measurement.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use abi::FUNCTIONS;

use crate::machine::machine;
use crate::watch;

/// Name of the boot parameter. It is not passed on to the root program.
pub const PARAMETER: &str = "measure-calls";

/// By function number, in ns of processor time.
static LONGEST: [AtomicU64; FUNCTIONS.len()] = [const { AtomicU64::new(0) }; FUNCTIONS.len()];

/// Current stretch of a thread.
#[derive(Default)]
pub struct Stretch {
    function: AtomicU32,
    /// Its start, 0 outside any call.
    since_ns: AtomicU64,
}

/// Starts measuring. Called before there are threads.
pub fn start() {
    watch::start(watch::CALLS);
}

/// Whether calls are measured.
#[inline(always)]
pub fn is_on() -> bool {
    watch::is_on(watch::CALLS)
}

/// Starts a stretch as a thread calls a function.
pub fn begin(stretch: &Stretch, function: usize) {
    stretch.function.store(function as u32, Ordering::Relaxed);
    stretch.since_ns.store(machine().processor_ns(), Ordering::Relaxed);
}

/// Ends a stretch after a call, or with its thread.
#[cold]
pub fn end(stretch: &Stretch) {
    let since = stretch.since_ns.swap(0, Ordering::Relaxed);
    if since != 0
        && let Some(longest) = LONGEST.get(stretch.function.load(Ordering::Relaxed) as usize)
    {
        longest.fetch_max(machine().processor_ns().saturating_sub(since), Ordering::Relaxed);
    }
}

/// Calls a function that may switch to another thread: one stretch ends before it, and another begins after it.
#[cold]
pub fn between<R>(stretch: &Stretch, switch: impl FnOnce() -> R) -> R {
    let is_in_call = stretch.since_ns.load(Ordering::Relaxed) != 0;
    end(stretch);
    let answer = switch();
    if is_in_call {
        stretch.since_ns.store(machine().processor_ns(), Ordering::Relaxed);
    }
    answer
}

/// Longest stretch of each function, 0 if it was not called; empty if calls are not measured.
pub fn longest() -> impl Iterator<Item = (&'static str, u64)> {
    let measured = if is_on() { LONGEST.len() } else { 0 };
    let all = FUNCTIONS.iter().zip(&LONGEST).take(measured);
    all.map(|(function, longest)| (function.name, longest.load(Ordering::Relaxed)))
}
