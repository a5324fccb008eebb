//! The power button: a termination request of the host, as the interrupt of the device `power-button`.
//!
//! A SIP that waits for the interrupt shuts the system down and powers the machine off; `host` enforces a
//! timeout for that. Neighbours: `host` presses the button, `signal` delivers the interrupt.
//! Deliberately not here: signals of the host, timeouts.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use hal_api::{Hardware, KernelEntries};

/// The device's name.
const NAME: &str = "power-button";

/// The one button of the process.
static BUTTON: OnceLock<Button> = OnceLock::new();

struct Button {
    /// Number of the interrupt line.
    line: u32,
    /// Whether the line is masked.
    masked: AtomicBool,
    /// Whether the interrupt is pending.
    due: AtomicBool,
    /// Makes the processors check for pending interrupts.
    interrupt: Box<dyn Fn() + Send + Sync>,
}

/// Connects the button to an interrupt line; the first call counts.
pub(crate) fn connect(line: u32, interrupt: impl Fn() + Send + Sync + 'static) {
    let (masked, due) = (AtomicBool::new(true), AtomicBool::new(false));
    BUTTON.get_or_init(|| Button { line, masked, due, interrupt: Box::new(interrupt) });
}

/// Returns the device for the kernel.
pub(crate) fn hardware() -> Option<Hardware> {
    BUTTON.get().map(|button| Hardware { name: NAME.into(), ranges: Vec::new(), interrupts: vec![button.line] })
}

/// Masks or unmasks the line; false if the line is not the button's.
pub(crate) fn mask(line: u32, masked: bool) -> bool {
    let button = BUTTON.get().filter(|button| button.line == line);
    button.inspect(|button| button.masked.store(masked, Ordering::SeqCst)).is_some()
}

/// Presses it; false if the line is masked, so that no SIP waits for it.
#[must_use]
pub(crate) fn press() -> bool {
    let listening = BUTTON.get().filter(|button| !button.masked.load(Ordering::SeqCst));
    let Some(button) = listening else { return false };
    button.due.store(true, Ordering::SeqCst);
    (button.interrupt)();
    true
}

/// Fires the line if it is pending, in a signal handler of a processor; returns whether it was. Async-signal-safe.
pub(crate) fn interrupt(kernel: &KernelEntries) -> bool {
    let due = BUTTON.get().filter(|button| button.due.swap(false, Ordering::SeqCst));
    due.inspect(|button| (kernel.fired)(button.line)).is_some()
}
