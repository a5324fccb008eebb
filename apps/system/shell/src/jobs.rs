//! Jobs: pipelines in the foreground or background.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use sip::Deadline;
use sip::process::{Child, Epitaph, EpitaphKind};
use sip::thread::JoinHandle;

use crate::gate::{Access, Gate};

/// Exit status of a command interrupted by Ctrl-C.
pub const STATUS_INTERRUPTED: i32 = 130;
/// Exit status of a command stopped by Ctrl-Z.
pub const STATUS_STOPPED: i32 = 148;
/// Added to the code of the kind of end, for a command that did not exit normally.
const STATUS_DIED: i32 = 128;

/// A child process and its name.
pub struct Running {
    /// Name of the program.
    pub name: String,
    /// The process.
    pub child: Arc<Child>,
    /// Whether its status is that of the pipeline.
    pub is_last: bool,
}

/// Returns the exit status for an epitaph, and the line that reports an abnormal end.
pub fn judge(running: &Running, epitaph: &Epitaph) -> (i32, Option<String>) {
    match epitaph.kind {
        EpitaphKind::Exited => (epitaph.status & 0xff, None),
        kind => {
            let status = STATUS_DIED + kind as i32;
            let process = running.child.id().map(|id| format!(" (process {id})")).unwrap_or_default();
            (status, Some(format!("{}{process}: {epitaph}", running.name)))
        }
    }
}

/// A running pipeline.
pub struct Job {
    /// Job number; 0 while it has never left the foreground.
    pub number: usize,
    /// The command as entered.
    pub text: String,
    /// Its processes that have not ended.
    pub running: Vec<Running>,
    /// Status of its last process, once that has ended.
    pub status: i32,
    /// Its console access; `None` in a non-interactive shell.
    pub gate: Option<Arc<Gate>>,
    /// Threads that forward its output.
    pub pumps: Vec<JoinHandle<()>>,
}

impl Job {
    /// Process ids, for people.
    pub fn process_ids(&self) -> String {
        let ids = self.running.iter().filter_map(|running| running.child.id().ok());
        ids.map(|id| format!("{id}")).collect::<Vec<_>>().join(" ")
    }

    /// Formats its line in a list.
    pub fn line(&self) -> String {
        let state = if self.is_stopped() { "stopped" } else { "running" };
        format!("[{}] {state}: {}  (process {})", self.number, self.text, self.process_ids())
    }

    /// Its processes.
    pub fn children(&self) -> Vec<Arc<Child>> {
        self.running.iter().map(|one| Arc::clone(&one.child)).collect()
    }

    /// Whether Ctrl-Z took the console from it.
    pub fn is_stopped(&self) -> bool {
        self.gate.as_ref().is_some_and(|gate| gate.access() == Access::Nothing)
    }

    /// Changes its console access.
    pub fn set_access(&self, access: Access) {
        if let Some(gate) = &self.gate {
            gate.set(access);
        }
    }

    /// Checks which processes have ended; appends lines about those that died. Returns true once all have ended and
    /// their output has been forwarded.
    pub fn settle(&mut self, lines: &mut Vec<String>) -> bool {
        let mut left = Vec::new();
        for running in core::mem::take(&mut self.running) {
            match running.child.wait_until(Deadline::PASSED) {
                Ok(epitaph) => {
                    let (status, line) = judge(&running, &epitaph);
                    lines.extend(line);
                    if running.is_last {
                        self.status = status;
                    }
                }
                Err(_) => left.push(running),
            }
        }
        self.running = left;
        if !self.running.is_empty() {
            return false;
        }
        self.finish();
        true
    }

    /// Waits until the output of its processes, which have ended, has been forwarded.
    pub fn finish(&mut self) {
        self.set_access(Access::Ended);
        for pump in self.pumps.drain(..) {
            // A pump has no result to lose.
            let _ = pump.join();
        }
    }
}
