//! Time: the cycle counter, measured against the programmable interval timer.
//!
//! Deliberately not here: the date. Nothing but the clock's driver knows it; it sets [`set_wall`].

use core::arch::x86_64::{__cpuid, _rdtsc};
use core::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use x86_64::instructions::port::Port;

use crate::local;

/// Counts of the interval timer in a second (8254).
const TIMER_FREQUENCY: u64 = 1_193_182;
/// How long is measured: the error is one read of a port, a microsecond or two.
const MEASURED_COUNTS: u16 = (TIMER_FREQUENCY / 500) as u16;
/// Reads after which a timer that has not counted once is taken for none: a read takes a microsecond.
const TIMEOUT: u32 = 10_000;
/// Reads after which a timer is given up that counts too slowly.
const LONG_TIMEOUT: u32 = 1_000_000;
const NS: u64 = 1_000_000_000;
/// What is taken for the frequency where nothing tells it.
const GUESS: u64 = 1_000_000_000;

/// Cycle counter at start.
static START: AtomicU64 = AtomicU64::new(0);
/// Cycles in a second.
static FREQUENCY: AtomicU64 = AtomicU64::new(GUESS);
/// Nanoseconds in a cycle, times 2^32.
static SCALE: AtomicU64 = AtomicU64::new(NS << 2);
/// Nanoseconds since 1970 less nanoseconds since start.
static WALL: AtomicI64 = AtomicI64::new(0);

/// The cycle counter.
pub(crate) fn cycles() -> u64 {
    // SAFETY: RDTSC exists on every x86-64 processor and touches no memory.
    unsafe { _rdtsc() }
}

/// Time starts now.
pub(crate) fn start() {
    START.store(cycles(), Ordering::Relaxed);
}

/// Measures the cycle counter, and the local timer if it counts down. Answers whether anything told.
pub(crate) fn calibrate() -> bool {
    if local::timer_counts() {
        local::start_counting();
    }
    let measured = measure();
    let counted = if local::timer_counts() { u64::from(local::counted()) } else { 0 };
    let frequency = match measured {
        Some((cycles, counts)) => {
            local::set_frequency(counted * TIMER_FREQUENCY / u64::from(counts));
            Some(cycles * TIMER_FREQUENCY / u64::from(counts))
        }
        // Without an interval timer the processor may say its frequency itself; the local timer then
        // counts at the frequency of the crystal.
        None => told_by_processor().inspect(|told| local::set_frequency(told.crystal / 16)).map(|told| told.cycles),
    };
    let known = frequency.is_some_and(|frequency| frequency > 0);
    let frequency = frequency.filter(|&frequency| frequency > 0).unwrap_or(GUESS);
    FREQUENCY.store(frequency, Ordering::Relaxed);
    SCALE.store(((u128::from(NS) << 32) / u128::from(frequency)) as u64, Ordering::Relaxed);
    known
}

/// Cycles while the interval timer counted so far; none where it does not count.
fn measure() -> Option<(u64, u16)> {
    let mut command = Port::<u8>::new(0x43);
    let mut data = Port::<u8>::new(0x40);
    // SAFETY: channel 0 of the 8254 is nobody else's; its interrupt is masked.
    let mut count = || unsafe {
        command.write(0);
        u16::from(data.read()) | u16::from(data.read()) << 8
    };
    // SAFETY: as above: both bytes, mode 2, the longest period.
    unsafe {
        Port::<u8>::new(0x43).write(0x34);
        Port::<u8>::new(0x40).write(0);
        Port::<u8>::new(0x40).write(0);
    }
    let first = count();
    let from = cycles();
    for reads in 0..LONG_TIMEOUT {
        let passed = first.wrapping_sub(count());
        if passed == 0 && reads > TIMEOUT {
            break;
        }
        if (MEASURED_COUNTS..u16::MAX / 2).contains(&passed) {
            return Some((cycles() - from, passed));
        }
    }
    None
}

struct Told {
    cycles: u64,
    crystal: u64,
}

/// What CPUID tells (Intel SDM volume 2, leaf 15H).
fn told_by_processor() -> Option<Told> {
    if __cpuid(0).eax < 0x15 {
        return None;
    }
    let leaf = __cpuid(0x15);
    let (denominator, numerator, crystal) = (u64::from(leaf.eax), u64::from(leaf.ebx), u64::from(leaf.ecx));
    (denominator != 0 && numerator != 0 && crystal != 0)
        .then(|| Told { cycles: crystal * numerator / denominator, crystal })
}

/// Nanoseconds since start.
pub(crate) fn monotonic_ns() -> u64 {
    ns_at(cycles())
}

/// When the cycle counter showed this, in nanoseconds since start.
pub(crate) fn ns_at(cycles: u64) -> u64 {
    let passed = cycles.saturating_sub(START.load(Ordering::Relaxed));
    ((u128::from(passed) * u128::from(SCALE.load(Ordering::Relaxed))) >> 32) as u64
}

/// What the cycle counter shows after so many nanoseconds.
pub(crate) fn cycles_after_ns(ns: u64) -> u64 {
    cycles() + (u128::from(ns) * u128::from(FREQUENCY.load(Ordering::Relaxed)) / u128::from(NS)) as u64
}

/// Nanoseconds since 1970-01-01 00:00 UTC; since start, until the date has been set.
pub(crate) fn wall_ns() -> u64 {
    monotonic_ns().saturating_add_signed(WALL.load(Ordering::Relaxed))
}

/// Sets the date.
pub(crate) fn set_wall(now: u64) {
    WALL.store(now.wrapping_sub(monotonic_ns()) as i64, Ordering::Relaxed);
}

/// Waits without sleeping.
pub(crate) fn wait_ns(ns: u64) {
    let end = monotonic_ns() + ns;
    while monotonic_ns() < end {
        core::hint::spin_loop();
    }
}
