//! Shows when and how processes ended, and the trace of one of them.
//!
//! `words` describes the events of a trace. Deliberately not here: the kernel's refusals, which are in
//! `/status/audit`, and the log files of programs.

mod words;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use client::namespace::Namespace;
use client::processes::{Instances, none, state_word};
use client::services;
use sip::Status;
use sip::diagnostics::{ProcessRecord, TraceRecord, name};
use stdio::{Output, report};
use text::{Align, Table};

use words::{Names, seconds};

sip::startup!("log/manifest.toml");

/// A process's exit.
struct End<'a> {
    id: u64,
    time_ns: u64,
    program: &'a str,
    text: &'a str,
}

impl<'a> End<'a> {
    /// Parses a line of the kernel's: process id, nanoseconds, program, epitaph.
    fn parse(line: &'a str) -> Option<End<'a>> {
        let mut parts = line.splitn(4, ' ');
        let (id, time_ns) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        Some(End { id, time_ns, program: parts.next()?, text: parts.next().unwrap_or_default() })
    }
}

/// Data to report from.
struct System<'a> {
    processes: &'a [ProcessRecord],
    instances: Instances,
    ends: Vec<End<'a>>,
}

/// Prints the latest exits, or with an argument the details of that instance, program or process.
pub fn main(startup: Startup) -> i32 {
    match tell(startup.process.as_deref(), &mut Namespace::new(startup.namespace)) {
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

fn tell(target: Option<&str>, namespace: &mut Namespace) -> Result<String, String> {
    let lines = sip::diagnostics::epitaphs()
        .map_err(|status| format!("ended processes cannot be listed: {}", status.text()))?;
    let ends: Vec<End<'_>> = lines.lines().filter_map(End::parse).collect();
    let Some(target) = target else { return Ok(table(&ends)) };
    let processes =
        sip::diagnostics::processes().map_err(|status| format!("the processes cannot be listed: {}", status.text()))?;
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
        let is_meant = |end: &&End<'_>| match target.parse::<u64>() {
            Ok(id) => end.id == id,
            Err(_) => end.program == program.as_deref().unwrap_or(target),
        };
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
        format!(
            "\n{} (process {}){instance}: {} since {}\n",
            name(&process.name),
            process.id,
            state_word(process.state),
            seconds(process.started_ns)
        )
    }

    fn trace_of(&self, id: u64) -> Result<String, String> {
        match sip::diagnostics::trace(id) {
            Ok(events) => Ok(self.told(&events)),
            Err(Status::NotFound) => Ok(String::from("  its events are no longer kept\n")),
            Err(status) => Err(format!("the trace of process {id} cannot be read: {}", status.text())),
        }
    }

    fn told(&self, events: &[TraceRecord]) -> String {
        let ends = self.ends.iter().map(|end| (end.id, String::from(end.program)));
        let running = self.processes.iter().map(|process| (process.id, name(&process.name)));
        words::tell(events, &Names::new(running.chain(ends)))
    }
}
