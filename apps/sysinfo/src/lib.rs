//! Shows the system's counters.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use contracts::pipe_io::Output;
use contracts::report;
use contracts::text::{Align, Table, count, duration, json_string};
use sip::diagnostics::{CounterRecord, name};

sip::startup!();

/// Prints the machine and a line for each counter.
pub fn main(startup: Startup) -> i32 {
    let counters = match sip::diagnostics::counters() {
        Ok(counters) => counters,
        Err(status) => {
            report::error(format_args!("the counters cannot be read: {}", status.text()));
            return 1;
        }
    };
    let text = if startup.json { json(&counters) } else { table(&counters) };
    let mut output = Output::new(startup.output);
    output.write(text.as_bytes()).map_or(1, |()| output.finish_with(0))
}

fn table(counters: &[CounterRecord]) -> String {
    let mut table = Table::new(&[("COUNTER", Align::Left), ("VALUE", Align::Right)]);
    for counter in counters {
        table.row([name(&counter.name), count(counter.value)]);
    }
    format!(
        "up {}, {} processors, {} programs installed\n\n{}",
        duration(sip::time::monotonic()),
        sip::thread::processor_count(),
        sip::diagnostics::program_count(),
        table.render()
    )
}

fn json(counters: &[CounterRecord]) -> String {
    let mut lines = Vec::from([
        format!("  \"uptime_ns\": {}", sip::time::monotonic()),
        format!("  \"processors\": {}", sip::thread::processor_count()),
        format!("  \"programs\": {}", sip::diagnostics::program_count()),
    ]);
    lines.extend(counters.iter().map(|counter| format!("  {}: {}", json_string(&name(&counter.name)), counter.value)));
    format!("{{\n{}\n}}\n", lines.join(",\n"))
}
