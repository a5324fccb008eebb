//! Jobs: pipelines that were started, in the foreground or beside the shell.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use sip::Deadline;
use sip::process::{Child, Epitaph, EpitaphKind};
use sip::thread::JoinHandle;

use crate::gate::{Access, Gate};

/// Status of a command that a person interrupted.
pub const STATUS_INTERRUPTED: i32 = 130;
/// Status of a command that a person stopped.
pub const STATUS_STOPPED: i32 = 148;
/// What is added to the number of an end's kind, for a command that did not exit by itself.
const STATUS_DIED: i32 = 128;

/// A child process and what to call it.
pub struct Running {
    /// Name of the program.
    pub name: String,
    /// The process.
    pub child: Arc<Child>,
    /// Whether the status of the pipeline is its.
    pub is_last: bool,
}

/// Exit status for the end of a process, and the line that tells of it where it did not exit by itself.
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

/// A pipeline that was started.
pub struct Job {
    /// Number by which a person knows it; 0 as long as it never left the foreground.
    pub number: usize,
    /// The command as it was given.
    pub text: String,
    /// Its processes that have not ended.
    pub running: Vec<Running>,
    /// Status of its last process, once that has ended.
    pub status: i32,
    /// Its access to the console; none where no person gives the commands.
    pub gate: Option<Arc<Gate>>,
    /// Threads that move its output on.
    pub pumps: Vec<JoinHandle<()>>,
}

impl Job {
    /// Process ids, for people.
    pub fn process_ids(&self) -> String {
        let ids = self.running.iter().filter_map(|running| running.child.id().ok());
        ids.map(|id| format!("{id}")).collect::<Vec<_>>().join(" ")
    }

    /// Its line in a list.
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

    /// Changes its access to the console.
    pub fn set_access(&self, access: Access) {
        if let Some(gate) = &self.gate {
            gate.set(access);
        }
    }

    /// Looks which processes have ended; gives lines about those that died. True once all have ended and what they
    /// wrote has been moved on.
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

    /// Waits until what its processes wrote has been moved on. They have ended.
    pub fn finish(&mut self) {
        self.set_access(Access::Ended);
        for pump in self.pumps.drain(..) {
            // A pump has no result that could be missed.
            let _ = pump.join();
        }
    }
}
