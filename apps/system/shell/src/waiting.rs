//! Waits for jobs: in the foreground, where Ctrl-C ends the job and Ctrl-Z stops it, and in `wait`, which Ctrl-C
//! ends.

use alloc::format;
use alloc::string::ToString;
use alloc::sync::Arc;
use alloc::vec::Vec;

use command_language::Flow;
use sip::Deadline;

use crate::gate::Access;
use crate::jobs::{Job, STATUS_INTERRUPTED, STATUS_STOPPED, judge};
use crate::shell::Shell;
use crate::sink::Sink;

/// Why a wait for a job ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// All its processes have ended.
    Ended,
    /// Ctrl-Z was pressed.
    Stopped,
}

impl Shell {
    /// Reports the jobs that have ended.
    pub fn look_at_jobs(&mut self) {
        let mut lines = Vec::new();
        let interactive = self.is_interactive();
        self.jobs.retain_mut(|job| {
            let ended = job.settle(&mut lines);
            if ended && interactive {
                let how = if job.status == 0 { "done".to_string() } else { format!("status {}", job.status) };
                lines.push(format!("[{}] {how}: {}", job.number, job.text));
            }
            !ended
        });
        lines.iter().for_each(|line| self.report(line));
    }

    /// Waits for a foreground job.
    pub fn wait_for(&mut self, mut job: Job) -> Flow {
        let children = job.children();
        self.signals.set_foreground(&children);
        let outcome = self.await_foreground(&mut job);
        self.signals.clear_foreground();
        drop(children);
        if outcome == Outcome::Stopped {
            self.stop(job);
            return Flow::GivenUp(STATUS_STOPPED);
        }
        job.finish();
        if self.signals.is_interrupted() {
            return Flow::GivenUp(STATUS_INTERRUPTED);
        }
        Flow::Status(job.status)
    }

    fn await_foreground(&mut self, job: &mut Job) -> Outcome {
        while let Some(one) = job.running.first() {
            let is_stoppable = job.gate.is_some() && !matches!(self.sink(), Sink::Collect(_));
            let ended = if self.signals.is_interrupted() || !is_stoppable {
                // It was requested to end, or only its end can end the wait.
                one.child.wait()
            } else if self.signals.is_stopped() {
                return Outcome::Stopped;
            } else {
                self.signals.wait_beside(&one.child);
                match one.child.wait_until(Deadline::PASSED) {
                    Err(sip::Status::TimedOut | sip::Status::WouldBlock) => continue,
                    ended => ended,
                }
            };
            self.account(&one.child);
            let (status, line) = match ended {
                Ok(epitaph) => judge(one, &epitaph),
                Err(error) => (1, Some(format!("{}: {}", one.name, error.text()))),
            };
            if one.is_last {
                job.status = status;
            }
            if let Some(line) = line.filter(|_| !self.signals.is_interrupted()) {
                self.report(&line);
            }
            job.running.remove(0);
        }
        Outcome::Ended
    }

    /// Takes the console from a job and keeps the job.
    fn stop(&mut self, mut job: Job) {
        job.set_access(Access::Nothing);
        if job.number == 0 {
            job.number = self.next_job_number();
        }
        let line = job.line();
        self.report(&line);
        self.jobs.push(job);
    }

    /// Moves a job to the foreground and waits for it.
    pub fn bring_to_foreground(&mut self, job: Job) -> Flow {
        let text = job.text.clone();
        self.report(&text);
        self.signals.clear();
        job.set_access(Access::Full);
        self.wait_for(job)
    }

    /// Waits for the job with this number, or for all; returns the status of the last. Ctrl-C ends the wait, but no
    /// job.
    pub fn wait_for_jobs(&mut self, number: Option<usize>) -> Flow {
        let mut status = 0;
        let is_meant = |job: &Job| number.is_none_or(|number| number == job.number);
        while let Some(position) = self.jobs.iter().position(is_meant) {
            let mut lines = Vec::new();
            let has_ended = self.jobs[position].settle(&mut lines);
            lines.iter().for_each(|line| self.report(line));
            if has_ended {
                status = self.jobs.remove(position).status;
                continue;
            }
            if self.signals.is_interrupted() || self.signals.is_stopped() {
                return Flow::GivenUp(STATUS_INTERRUPTED);
            }
            let first = self.jobs[position].running.first().map(|one| Arc::clone(&one.child));
            if let Some(child) = first {
                self.signals.wait_beside(&child);
            }
        }
        Flow::Status(status)
    }
}
