//! Shows when and how processes ended, and the trace of one of them.
//!
//! With `core`, a death is written in the form that `cargo sing autopsy` reads. Deliberately not here: the kernel's
//! refusals, which are in `/status/audit`, and the log files of programs.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use client::namespace::Namespace;
use client::processes::{Instances, none, state_word};
use client::services;
use post_mortem::conversations::{contracts_of, messages};
use post_mortem::words::{self, Endpoints, Names, seconds};
use post_mortem::{Core, End, core_text};
use sip::Status;
use sip::diagnostics::{ProcessRecord, ProcessState, TraceRecord, name};
use stdio::{Output, report};
use text::{Align, Table};

sip::startup!("log/manifest.toml");

/// Data to report from.
struct System<'a> {
    processes: &'a [ProcessRecord],
    instances: Instances,
    ends: Vec<End<'a>>,
}

/// Prints the latest exits, or with an argument the details of that instance, program or process.
pub fn main(startup: Startup) -> i32 {
    match tell(startup.process.as_deref(), startup.core, &mut Namespace::new(startup.namespace)) {
        Ok(text) => {
            let mut output = Output::new(startup.output);
            output.write(text.as_bytes()).map_or(1, |()| output.finish_with(0))
        }
        Err(reason) => {
            report::error(format_args!("{reason}"));
            1
        }
    }
}

fn tell(target: Option<&str>, core: bool, namespace: &mut Namespace) -> Result<String, String> {
    let lines = sip::diagnostics::epitaphs()
        .map_err(|status| format!("ended processes cannot be listed: {}", status.text()))?;
    let ends: Vec<End<'_>> = lines.lines().filter_map(End::parse).collect();
    if core {
        return cores(target, &ends);
    }
    let Some(target) = target else { return Ok(table(&ends)) };
    let processes = sip::diagnostics::processes().map_err(unlisted)?;
    let system = System { processes: &processes, instances: Instances::read(namespace), ends };
    system.of(target)
}

/// Formats the latest exits, oldest first.
fn table(ends: &[End<'_>]) -> String {
    let mut table =
        Table::new(&[("TIME", Align::Right), ("ID", Align::Right), ("PROGRAM", Align::Left), ("END", Align::Left)]);
    for end in ends {
        table.row([seconds(end.time_ns), format!("{}", end.id), String::from(end.program), String::from(end.text)]);
    }
    table.render()
}

/// Writes the cores that are kept of processes with this id or of this program, or of all.
fn cores(target: Option<&str>, ends: &[End<'_>]) -> Result<String, String> {
    let is_meant = |end: &&End<'_>| target.is_none_or(|target| is_of(end, target, target));
    let names = names(&sip::diagnostics::processes().map_err(unlisted)?, ends);
    let mut out = String::new();
    for end in ends.iter().filter(is_meant) {
        match sip::diagnostics::trace(end.id) {
            Ok(trace) => out.extend(core_text(end, &trace, &names, &contracts_of(&trace))),
            Err(Status::NotFound) => {}
            Err(status) => return Err(unread(end.id, status)),
        }
    }
    match target {
        Some(target) if out.is_empty() => {
            Err(format!("no core of `{target}` is kept; `log` lists processes that ended"))
        }
        _ => Ok(out),
    }
}

/// Whether an end is that of the process with this id, or of a process of this program.
fn is_of(end: &End<'_>, target: &str, program: &str) -> bool {
    match target.parse::<u64>() {
        Ok(id) => end.id == id,
        Err(_) => end.program == program,
    }
}

fn names(processes: &[ProcessRecord], ends: &[End<'_>]) -> Names {
    let ends = ends.iter().map(|end| (end.id, String::from(end.program)));
    let running = processes.iter().map(|process| (process.id, name(&process.name)));
    Names::new(running.chain(ends))
}

fn unlisted(status: Status) -> String {
    format!("the processes cannot be listed: {}", status.text())
}

fn unread(id: u64, status: Status) -> String {
    format!("the trace of process {id} cannot be read: {}", status.text())
}

impl System<'_> {
    /// Formats everything known about the process, instance or program of this name.
    fn of(&self, target: &str) -> Result<String, String> {
        let mut out = String::new();
        let service = self.instances.service(target);
        if let Some(service) = service {
            out += &format!(
                "{target}: a service, the program {}; {}, started again {} times{}\n",
                services::text(&service.program),
                services::state_word(service.state),
                service.restarts,
                Some(services::text(&service.reason))
                    .filter(|reason| !reason.is_empty())
                    .map_or(String::new(), |reason| format!("; {reason}")),
            );
        }
        let running = self.instances.select(self.processes, target);
        let program = service.map(|service| services::text(&service.program));
        let is_meant = |end: &&End<'_>| is_of(end, target, program.as_deref().unwrap_or(target));
        let ends: Vec<&End<'_>> = self.ends.iter().filter(is_meant).collect();
        if running.is_empty() && ends.is_empty() && service.is_none() {
            return Err(none(target) + ", and `log` lists processes that ended");
        }
        for end in &ends {
            out += &format!("{} (process {}): {} at {}\n", end.program, end.id, end.text, seconds(end.time_ns));
        }
        for process in &running {
            out += &self.heading(process);
            out += &self.trace_of(process.id)?;
        }
        if let ([], Some(last)) = (running.as_slice(), ends.last()) {
            out += &format!("\nlast events of process {}:\n", last.id);
            out += &self.trace_of(last.id)?;
        }
        Ok(out)
    }

    fn heading(&self, process: &ProcessRecord) -> String {
        let instance =
            self.instances.name_of(process.id).map_or(String::new(), |instance| format!(", instance {instance}"));
        let since = match process.state == ProcessState::Ended as u64 {
            true => String::from("; its parent still holds it"),
            false => format!(" since {}", seconds(process.started_ns)),
        };
        format!("\n{} (process {}){instance}: {}{since}\n", name(&process.name), process.id, state_word(process.state))
    }

    fn trace_of(&self, id: u64) -> Result<String, String> {
        match sip::diagnostics::trace(id) {
            Ok(events) => Ok(self.told(&events)),
            Err(Status::NotFound) => Ok(String::from("  its events are no longer kept\n")),
            Err(status) => Err(unread(id, status)),
        }
    }

    fn told(&self, trace: &[TraceRecord]) -> String {
        let (events, core) = Core::split(trace);
        let (names, contracts) = (names(self.processes, &self.ends), contracts_of(trace));
        let mut endpoints = Endpoints::default();
        let mut out = words::tell_with(events, &messages(trace, &contracts), &names, &mut endpoints);
        if let Some(core) = core {
            out += "where it was and what it held; `cargo sing autopsy` names the functions:\n";
            out += &core.text(&names, &contracts, &mut endpoints);
        }
        out
    }
}
