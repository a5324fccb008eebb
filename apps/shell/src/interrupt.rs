//! Ctrl-C: what a thread of its own hears from the console, and whom it concerns.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

use contracts::console_events::{self, ImpReady};
use sip::process::{Child, StopReason};
use sip::sync::Mutex;

/// Shared between the shell and the thread that hears of Ctrl-C.
pub struct Interrupt {
    pressed: AtomicBool,
    foreground: Mutex<Vec<Arc<Child>>>,
}

impl Default for Interrupt {
    fn default() -> Interrupt {
        Interrupt { pressed: AtomicBool::new(false), foreground: Mutex::new(Vec::new()) }
    }
}

impl Interrupt {
    /// Whether Ctrl-C was pressed since [`clear`](Interrupt::clear).
    pub fn is_pressed(&self) -> bool {
        self.pressed.load(Ordering::Acquire)
    }

    /// A new command begins.
    pub fn clear(&self) {
        self.pressed.store(false, Ordering::Release);
    }

    /// From now on Ctrl-C ends these. If it was pressed already, they end now.
    pub fn set_foreground(&self, children: &[Arc<Child>]) {
        *self.foreground.lock() = children.to_vec();
        if self.is_pressed() {
            self.stop_foreground();
        }
    }

    /// Nothing runs in the foreground any more.
    pub fn clear_foreground(&self) {
        self.foreground.lock().clear();
    }

    fn press(&self) {
        self.pressed.store(true, Ordering::Release);
        self.stop_foreground();
    }

    fn stop_foreground(&self) {
        for child in self.foreground.lock().iter() {
            // One that has ended cannot be stopped, which is as good.
            let _ = child.stop(StopReason::Interrupted);
        }
    }
}

/// Hears of Ctrl-C until the console is gone.
pub fn listen(interrupt: &Interrupt, mut events: console_events::Imp<console_events::states::Ready>) {
    loop {
        events = match events.receive() {
            ImpReady::Interrupt { next } => {
                interrupt.press();
                next.next()
            }
            ImpReady::Resized { next, .. } => next.next(),
            ImpReady::ChannelClosed(_) => return,
        };
    }
}
