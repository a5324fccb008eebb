//! The local APIC of each processor (xAPIC; Intel SDM volume 3, chapter 11): end of
//! interrupt, inter-processor interrupts, and the timer.

use core::arch::x86_64::__cpuid;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use x86_64::registers::model_specific::Msr;

use crate::interrupts::{SPURIOUS, TIMER};

const ID: usize = 0x20;
const TASK_PRIORITY: usize = 0x80;
const END: usize = 0xb0;
const SPURIOUS_VECTOR: usize = 0xf0;
const COMMAND_LOW: usize = 0x300;
const COMMAND_HIGH: usize = 0x310;
const TIMER_VECTOR: usize = 0x320;
const LINT_0: usize = 0x350;
const ERROR_VECTOR: usize = 0x370;
const TIMER_INITIAL: usize = 0x380;
const TIMER_CURRENT: usize = 0x390;
const TIMER_DIVIDE: usize = 0x3e0;

const MASKED: u32 = 1 << 16;
const TIMER_BY_DEADLINE: u32 = 2 << 17;
const DIVIDE_BY_16: u32 = 3;
const PENDING: u32 = 1 << 12;
const ASSERT: u32 = 1 << 14;
const INIT: u32 = 5 << 8;
const START_UP: u32 = 6 << 8;
const SOFTWARE_ENABLED: u32 = 1 << 8;
const DEADLINE_REGISTER: u32 = 0x6e0;

/// Address of the registers, the same on all processors.
static REGISTERS: AtomicUsize = AtomicUsize::new(0);
/// Frequency in Hz of a timer that counts down.
static FREQUENCY: AtomicU64 = AtomicU64::new(0);
static BY_DEADLINE: AtomicBool = AtomicBool::new(false);

fn register(offset: usize) -> *mut u32 {
    ptr::with_exposed_provenance_mut(REGISTERS.load(Ordering::Relaxed) + offset)
}

fn read(offset: usize) -> u32 {
    // SAFETY: the registers are mapped as a device's (`place`), and reading those named here changes nothing.
    unsafe { register(offset).read_volatile() }
}

fn write(offset: usize, value: u32) {
    // SAFETY: the registers are mapped as a device's (`place`); writes to those named here
    // affect interrupts only, which this module is responsible for.
    unsafe { register(offset).write_volatile(value) };
}

/// Returns this processor's APIC id, without access to the registers.
pub(crate) fn own_number() -> u32 {
    __cpuid(1).ebx >> 24
}

/// Sets the address of the registers.
///
/// # Safety
/// The registers are there, mapped as a device's.
pub(crate) unsafe fn place(address: usize) {
    REGISTERS.store(address, Ordering::Relaxed);
    BY_DEADLINE.store(__cpuid(1).ecx >> 24 & 1 == 1, Ordering::Relaxed);
}

/// Enables this processor's APIC, with its timer stopped.
pub(crate) fn enable() {
    write(TASK_PRIORITY, 0);
    write(LINT_0, MASKED);
    write(ERROR_VECTOR, MASKED);
    write(TIMER_DIVIDE, DIVIDE_BY_16);
    let deadline = if BY_DEADLINE.load(Ordering::Relaxed) { TIMER_BY_DEADLINE } else { 0 };
    write(TIMER_VECTOR, u32::from(TIMER) | deadline);
    write(SPURIOUS_VECTOR, u32::from(SPURIOUS) | SOFTWARE_ENABLED);
    end_of_interrupt();
}

/// Signals the end of the interrupt being handled.
pub(crate) fn end_of_interrupt() {
    write(END, 0);
}

/// Returns this processor's APIC id.
pub(crate) fn number() -> u32 {
    read(ID) >> 24
}

/// Returns whether the timer counts down (no TSC-deadline mode), so that its frequency must be measured.
pub(crate) fn timer_counts() -> bool {
    !BY_DEADLINE.load(Ordering::Relaxed)
}

/// Starts to count down from the maximum, without an interrupt; see [`counted`].
pub(crate) fn start_counting() {
    write(TIMER_VECTOR, u32::from(TIMER) | MASKED);
    write(TIMER_INITIAL, u32::MAX);
}

/// Returns the counts since [`start_counting`], and stops the timer.
pub(crate) fn counted() -> u32 {
    let left = read(TIMER_CURRENT);
    write(TIMER_INITIAL, 0);
    write(TIMER_VECTOR, u32::from(TIMER));
    u32::MAX - left
}

/// Sets the frequency of the counting timer in Hz.
pub(crate) fn set_frequency(counts: u64) {
    FREQUENCY.store(counts, Ordering::Relaxed);
}

/// Arms a one-shot timer of this processor: after this many nanoseconds, or, in TSC-deadline
/// mode, when the cycle counter reaches `deadline_cycles`.
pub(crate) fn arm(after_ns: u64, deadline_cycles: u64) {
    if BY_DEADLINE.load(Ordering::Relaxed) {
        // SAFETY: the register exists in TSC-deadline mode (`place`), and only sets the timer.
        unsafe { Msr::new(DEADLINE_REGISTER).write(deadline_cycles.max(1)) };
    } else {
        let counts = u128::from(after_ns) * u128::from(FREQUENCY.load(Ordering::Relaxed)) / 1_000_000_000;
        write(TIMER_INITIAL, u32::try_from(counts).unwrap_or(u32::MAX).max(1));
    }
}

fn command(to: u32, what: u32) {
    while read(COMMAND_LOW) & PENDING != 0 {
        core::hint::spin_loop();
    }
    write(COMMAND_HIGH, to << 24);
    write(COMMAND_LOW, what);
}

/// Sends an inter-processor interrupt.
pub(crate) fn send(to: u32, vector: u8) {
    command(to, u32::from(vector) | ASSERT);
}

/// Sends INIT, which resets another processor.
pub(crate) fn send_init(to: u32) {
    command(to, INIT | ASSERT);
}

/// Sends a start-up IPI to a reset processor, for a page below 1 MiB.
pub(crate) fn send_start(to: u32, page: u8) {
    command(to, START_UP | ASSERT | u32::from(page));
}
