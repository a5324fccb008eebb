//! The one machine that the kernel runs on.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, Ordering};

use hal_api::Machine;

struct Place {
    set: AtomicBool,
    machine: UnsafeCell<Option<&'static dyn Machine>>,
}

// SAFETY: `machine` is written once, in `install`, before `set` is, and only read after `set`.
unsafe impl Sync for Place {}

static PLACE: Place = Place { set: AtomicBool::new(false), machine: UnsafeCell::new(None) };

/// Sets the kernel's machine. Called once, before any processor runs the kernel.
pub fn install(machine: &'static dyn Machine) {
    assert!(!PLACE.set.load(Ordering::Acquire), "the kernel has its machine already");
    // SAFETY: no other processor runs yet, and `set` shows that no reader has seen the place.
    unsafe { *PLACE.machine.get() = Some(machine) };
    PLACE.set.store(true, Ordering::Release);
}

/// The machine.
pub fn machine() -> &'static dyn Machine {
    assert!(PLACE.set.load(Ordering::Acquire), "the kernel has no machine yet");
    // SAFETY: written before `set` was, and never again.
    match unsafe { *PLACE.machine.get() } {
        Some(machine) => machine,
        None => unreachable!("install stores the machine before it says so"),
    }
}
