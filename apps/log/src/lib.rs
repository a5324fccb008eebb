//! Shows how processes ended, and what one of them did last.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use contracts::pipe_io::Output;
use contracts::processes::{none, select};
use contracts::report;
use contracts::text::{Align, Table};
use sip::Status;
use sip::diagnostics::{TraceKind, TraceRecord};

sip::startup!();

/// Prints the last ends, or with an argument that process's end and trace.
pub fn main(startup: Startup) -> i32 {
    let text = match &startup.process {
        None => epitaphs(),
        Some(target) => trace_of(target),
    };
    match text {
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

fn epitaphs() -> Result<String, String> {
    sip::diagnostics::epitaphs().map_err(|status| format!("the ends cannot be listed: {}", status.text()))
}

/// Processes that run are found by id and name; one that has ended only by its id.
fn trace_of(target: &str) -> Result<String, String> {
    let listed = sip::diagnostics::processes().map_err(|status| format!("no processes: {}", status.text()))?;
    let mut ids: Vec<u64> = select(&listed, target).iter().map(|process| process.id).collect();
    if let (true, Ok(id)) = (ids.is_empty(), target.parse()) {
        ids.push(id);
    }
    if ids.is_empty() {
        return Err(none(target));
    }
    let ends = epitaphs()?;
    let mut out = String::new();
    for id in ids {
        let own = format!("{id} ");
        for line in ends.lines().filter(|line| line.trim_start().starts_with(&own)) {
            out = out + line + "\n";
        }
        match sip::diagnostics::trace(id) {
            Ok(events) => out += &table(&events),
            Err(Status::NotFound) => {
                return Err(format!("no trace of process {id} is kept; `log` lists the last ends"));
            }
            Err(status) => return Err(format!("the trace of process {id} cannot be read: {}", status.text())),
        }
    }
    Ok(out)
}

fn table(events: &[TraceRecord]) -> String {
    let mut table =
        Table::new(&[("EVENT", Align::Right), ("WHAT", Align::Left), ("A", Align::Right), ("B", Align::Right)]);
    for event in events {
        let what = TraceKind::from_number(event.kind).map_or("unknown", TraceKind::text);
        table.row([event.sequence.to_string(), what.to_string(), hexadecimal(event.a), hexadecimal(event.b)]);
    }
    table.render()
}

/// Small numbers are ids and tags; large ones are handles and addresses, which people know in hexadecimal.
fn hexadecimal(number: u64) -> String {
    if number < 1 << 20 { number.to_string() } else { format!("{number:#x}") }
}
