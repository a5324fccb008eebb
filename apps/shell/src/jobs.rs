//! Commands that run beside the shell.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use sip::Deadline;
use sip::process::{Child, Epitaph, EpitaphKind};

/// Status of a command that a person interrupted.
pub const STATUS_INTERRUPTED: i32 = 130;
/// What is added to the number of an end's kind, for a command that did not exit by itself.
const STATUS_DIED: i32 = 128;

/// A child process and what to call it.
pub struct Running {
    /// Name of the program.
    pub name: String,
    /// The process.
    pub child: alloc::sync::Arc<Child>,
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

/// A pipeline in the background.
pub struct Job {
    /// Number by which a person knows it.
    pub number: usize,
    /// The command as it was given.
    pub text: String,
    /// Its processes that have not ended.
    pub running: Vec<Running>,
    /// Status of its last process, once that has ended.
    pub status: i32,
}

impl Job {
    /// Process ids, for people.
    pub fn process_ids(&self) -> String {
        let ids = self.running.iter().filter_map(|running| running.child.id().ok());
        ids.map(|id| format!("{id}")).collect::<Vec<_>>().join(" ")
    }

    /// Looks which processes have ended until the deadline; gives lines about those that died. True once all
    /// have ended.
    pub fn settle(&mut self, deadline: Deadline, lines: &mut Vec<String>) -> bool {
        let last = self.running.len().saturating_sub(1);
        let mut left = Vec::new();
        for (index, running) in core::mem::take(&mut self.running).into_iter().enumerate() {
            match running.child.wait_until(deadline) {
                Ok(epitaph) => {
                    let (status, line) = judge(&running, &epitaph);
                    lines.extend(line);
                    if index == last {
                        self.status = status;
                    }
                }
                Err(_) => left.push(running),
            }
        }
        self.running = left;
        self.running.is_empty()
    }
}
