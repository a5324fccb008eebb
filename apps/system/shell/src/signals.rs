//! Ctrl-C and Ctrl-Z: a thread receives them from the console and applies them to the foreground job.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

use contracts::console_events::{self, ImpReady};
use sip::process::{Child, StopReason};
use sip::select::wait_any;
use sip::sync::{Event, Mutex};
use sip::{Deadline, Status};

/// Polling interval if the kernel gave no event, in milliseconds.
const LOOK_MS: u64 = 50;

/// State shared by the shell and the thread that receives signals.
pub struct Signals {
    interrupted: AtomicBool,
    stopped: AtomicBool,
    /// Set while either flag is set.
    arrived: Result<Event, Status>,
    foreground: Mutex<Vec<Arc<Child>>>,
}

impl Default for Signals {
    fn default() -> Signals {
        Signals {
            interrupted: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            arrived: Event::manual(),
            foreground: Mutex::new(Vec::new()),
        }
    }
}

impl Signals {
    /// Whether Ctrl-C was pressed since [`clear`](Signals::clear).
    pub fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Acquire)
    }

    /// Whether Ctrl-Z was pressed since [`clear`](Signals::clear).
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Clears the flags before a new command.
    pub fn clear(&self) {
        self.interrupted.store(false, Ordering::Release);
        self.stopped.store(false, Ordering::Release);
        if let Ok(arrived) = &self.arrived {
            arrived.reset();
        }
    }

    /// Makes Ctrl-C end these children from now on. If it was already pressed, ends them immediately.
    pub fn set_foreground(&self, children: &[Arc<Child>]) {
        *self.foreground.lock() = children.to_vec();
        if self.is_interrupted() {
            self.stop_foreground();
        }
    }

    /// Removes the foreground children.
    pub fn clear_foreground(&self) {
        self.foreground.lock().clear();
    }

    /// Waits until the child has ended or a signal has arrived.
    pub fn wait_beside(&self, child: &Child) {
        // The caller checks which of them it was.
        let _ = match &self.arrived {
            Ok(arrived) => wait_any(&[child, arrived], Deadline::NEVER),
            Err(_) => wait_any(&[child], Deadline::after_ms(LOOK_MS)),
        };
    }

    fn arrive(&self, signal: &AtomicBool) {
        signal.store(true, Ordering::Release);
        if let Ok(arrived) = &self.arrived {
            arrived.set();
        }
    }

    fn stop_foreground(&self) {
        for child in self.foreground.lock().iter() {
            // Fails only if the child has already ended.
            let _ = child.stop(StopReason::Interrupted);
        }
    }
}

/// Receives signals until the console is gone.
pub fn listen(signals: &Signals, mut events: console_events::Imp<console_events::states::Ready>) {
    loop {
        events = match events.receive() {
            ImpReady::Interrupt { next } => {
                signals.arrive(&signals.interrupted);
                signals.stop_foreground();
                next.next()
            }
            ImpReady::Stop { next } => {
                signals.arrive(&signals.stopped);
                next.next()
            }
            ImpReady::Resized { next, .. } => next.next(),
            ImpReady::ChannelClosed(_) => return,
        };
    }
}
