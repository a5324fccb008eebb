//! Job-control builtins.

use alloc::format;

use command_language::Flow;

use crate::builtins::{Call, misused};
use crate::gate::Access;
use crate::shell::{Error, Shell};

/// Lists the jobs.
pub fn jobs(shell: &mut Shell, call: Call<'_, '_>) -> Result<Flow, Error> {
    shell.look_at_jobs();
    for job in &shell.jobs {
        call.out.extend_from_slice(format!("{}\n", job.line()).as_bytes());
    }
    Ok(Flow::Status(0))
}

/// Moves a job to the foreground and waits for it: by default the last stopped one, else the last one.
pub fn fg(shell: &mut Shell, call: Call<'_, '_>) -> Result<Flow, Error> {
    let position = match asked(shell, "fg", &call)? {
        Some(position) => position,
        None => last_stopped(shell)
            .or(shell.jobs.len().checked_sub(1))
            .ok_or_else(|| Error::new("fg: no jobs; `a &` or Ctrl-Z makes one".into()))?,
    };
    let job = shell.jobs.remove(position);
    Ok(shell.bring_to_foreground(job))
}

/// Resumes a stopped job's console output.
pub fn bg(shell: &mut Shell, call: Call<'_, '_>) -> Result<Flow, Error> {
    let position = match asked(shell, "bg", &call)? {
        Some(position) => position,
        None => last_stopped(shell)
            .ok_or_else(|| Error::new("bg: no stopped job; Ctrl-Z stops the one in the foreground".into()))?,
    };
    let job = &shell.jobs[position];
    if !job.is_stopped() {
        return Err(Error::new(format!("bg: job {} is already running", job.number)));
    }
    job.set_access(Access::Output);
    let line = job.line();
    shell.report(&line);
    Ok(Flow::Status(0))
}

/// Waits for jobs.
pub fn wait(shell: &mut Shell, call: Call<'_, '_>) -> Result<Flow, Error> {
    let position = asked(shell, "wait", &call)?;
    let number = position.map(|position| shell.jobs[position].number);
    Ok(shell.wait_for_jobs(number))
}

impl Shell {
    /// Whether the shell must not exit yet: there are stopped jobs, which would end with it, and the user was not
    /// warned immediately before.
    pub fn keeps_stopped_jobs(&mut self, is_warned: &mut bool) -> bool {
        if !self.is_interactive() || last_stopped(self).is_none() || core::mem::replace(is_warned, true) {
            return false;
        }
        self.report(
            "jobs are stopped, which would end with the shell: `jobs` lists them, `fg` gives the last the console; \
             the same again ends the shell",
        );
        true
    }
}

/// Returns the index of the job with this number, given with or without `%`.
fn asked(shell: &Shell, name: &str, call: &Call<'_, '_>) -> Result<Option<usize>, Error> {
    let word = match call.words {
        [] => return Ok(None),
        [word] => word,
        _ => return Err(misused(name)),
    };
    let number = word.strip_prefix('%').unwrap_or(word).parse::<usize>().ok();
    let position = number.and_then(|number| shell.jobs.iter().position(|job| job.number == number));
    position.map(Some).ok_or_else(|| Error::new(format!("{name}: no job `{word}`; `jobs` lists them")))
}

fn last_stopped(shell: &Shell) -> Option<usize> {
    shell.jobs.iter().rposition(crate::jobs::Job::is_stopped)
}
