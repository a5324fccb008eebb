//! Time: the cycle counter (TSC), calibrated against the programmable interval timer.
//!
//! Deliberately not here: the date. Only the real-time clock's driver has it; it calls [`set_wall`].

use core::arch::x86_64::{__cpuid, _rdtsc};
use core::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use x86_64::instructions::port::Port;

use crate::local;

/// Frequency of the interval timer in Hz (8254).
const TIMER_FREQUENCY: u64 = 1_193_182;
/// Length of the calibration: the error is one port read, a microsecond or two.
const MEASURED_COUNTS: u16 = (TIMER_FREQUENCY / 500) as u16;
/// Reads without a change after which the timer is considered absent: a read takes a microsecond.
const TIMEOUT: u32 = 10_000;
/// Reads after which a timer that counts too slowly is abandoned.
const LONG_TIMEOUT: u32 = 1_000_000;
const NS: u64 = 1_000_000_000;
/// Frequency assumed if none can be determined.
const GUESS: u64 = 1_000_000_000;

/// Cycle counter at start.
static START: AtomicU64 = AtomicU64::new(0);
/// Cycles in a second.
static FREQUENCY: AtomicU64 = AtomicU64::new(GUESS);
/// Nanoseconds in a cycle, times 2^32.
static SCALE: AtomicU64 = AtomicU64::new(NS << 2);
/// Nanoseconds since 1970 minus nanoseconds since start.
static WALL: AtomicI64 = AtomicI64::new(0);

/// Returns the cycle counter.
pub(crate) fn cycles() -> u64 {
    // SAFETY: RDTSC exists on every x86-64 processor and touches no memory.
    unsafe { _rdtsc() }
}

/// Sets the start of time to now.
pub(crate) fn start() {
    START.store(cycles(), Ordering::Relaxed);
}

/// Calibrates the cycle counter, and the local timer if it counts down. Returns whether a frequency was found.
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
        // Without an interval timer, CPUID may have the frequency; the local timer then
        // counts at the frequency of the crystal.
        None => told_by_processor().inspect(|told| local::set_frequency(told.crystal / 16)).map(|told| told.cycles),
    };
    let known = frequency.is_some_and(|frequency| frequency > 0);
    let frequency = frequency.filter(|&frequency| frequency > 0).unwrap_or(GUESS);
    FREQUENCY.store(frequency, Ordering::Relaxed);
    SCALE.store(((u128::from(NS) << 32) / u128::from(frequency)) as u64, Ordering::Relaxed);
    known
}

/// Returns cycles and counts of the interval timer over the calibration; `None` if it does not count.
fn measure() -> Option<(u64, u16)> {
    let mut command = Port::<u8>::new(0x43);
    let mut data = Port::<u8>::new(0x40);
    // SAFETY: nothing else uses channel 0 of the 8254; its interrupt is masked.
    let mut count = || unsafe {
        command.write(0);
        u16::from(data.read()) | u16::from(data.read()) << 8
    };
    // SAFETY: as above: access mode low byte then high byte, mode 2, the longest period.
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

/// Returns the frequencies of CPUID (Intel SDM volume 2, leaf 15H).
fn told_by_processor() -> Option<Told> {
    if __cpuid(0).eax < 0x15 {
        return None;
    }
    let leaf = __cpuid(0x15);
    let (denominator, numerator, crystal) = (u64::from(leaf.eax), u64::from(leaf.ebx), u64::from(leaf.ecx));
    (denominator != 0 && numerator != 0 && crystal != 0)
        .then(|| Told { cycles: crystal * numerator / denominator, crystal })
}

/// Returns nanoseconds since start.
pub(crate) fn monotonic_ns() -> u64 {
    ns_at(cycles())
}

/// Converts a value of the cycle counter to nanoseconds since start.
pub(crate) fn ns_at(cycles: u64) -> u64 {
    let passed = cycles.saturating_sub(START.load(Ordering::Relaxed));
    ((u128::from(passed) * u128::from(SCALE.load(Ordering::Relaxed))) >> 32) as u64
}

/// Returns the cycle counter's value this many nanoseconds from now.
pub(crate) fn cycles_after_ns(ns: u64) -> u64 {
    cycles() + (u128::from(ns) * u128::from(FREQUENCY.load(Ordering::Relaxed)) / u128::from(NS)) as u64
}

/// Returns nanoseconds since 1970-01-01 00:00 UTC; since start, until the date has been set.
pub(crate) fn wall_ns() -> u64 {
    monotonic_ns().saturating_add_signed(WALL.load(Ordering::Relaxed))
}

/// Sets the date.
pub(crate) fn set_wall(now: u64) {
    WALL.store(now.wrapping_sub(monotonic_ns()) as i64, Ordering::Relaxed);
}

/// Spins for a time.
pub(crate) fn wait_ns(ns: u64) {
    let end = monotonic_ns() + ns;
    while monotonic_ns() < end {
        core::hint::spin_loop();
    }
}
