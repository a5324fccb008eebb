//! Shows the system's counters.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use sip::diagnostics::{CounterRecord, Measured, name};
use stdio::{Output, report};
use text::{Align, Table, bytes, count, duration, json_string};

sip::startup!("sysinfo/manifest.toml");

/// Measurements that identify the system.
const MEASURED: [(&str, Measured); 2] = [("kernel", Measured::Kernel), ("system", Measured::System)];

/// Prints the machine, its measurements and a line for each counter.
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
    let measured: String = MEASURED.iter().map(|&(what, of)| format!("{what:<8}{}\n", measurement(of))).collect();
    format!(
        "up {}, {} processors, {} programs installed\n{}{measured}{}\n{}",
        duration(sip::time::monotonic()),
        sip::thread::processor_count(),
        sip::diagnostics::program_count(),
        memory(counters),
        confinement(counters),
        table.render()
    )
}

/// Formats the total and used memory.
fn memory(counters: &[CounterRecord]) -> String {
    let Some(total) = value(counters, "memory bytes") else { return String::new() };
    // If the host accounts for all memory, only the pages and blocks of the programs count.
    let in_use = value(counters, "memory bytes in use").or_else(|| value(counters, "arena bytes")).unwrap_or(0);
    format!("memory  {} in use, {} at most\n", bytes(in_use), bytes(total))
}

/// Describes the host access left to the process of a hosted machine; empty for other machines.
fn confinement(counters: &[CounterRecord]) -> String {
    let limits = (value(counters, "host calls allowed"), value(counters, "host Landlock version"));
    let (Some(calls), Some(landlock)) = limits else { return String::new() };
    let calls = if calls == 0 { "all system calls".into() } else { format!("{calls} system calls (seccomp)") };
    let files = if landlock == 0 { "no Landlock".into() } else { format!("no file by its name (Landlock {landlock})") };
    format!("host    {calls}, {files}\n")
}

/// Returns the value of the counter of this name.
fn value(counters: &[CounterRecord], wanted: &str) -> Option<u64> {
    counters.iter().find(|counter| name(&counter.name) == wanted).map(|counter| counter.value)
}

fn json(counters: &[CounterRecord]) -> String {
    let mut lines = Vec::from([
        format!("  \"uptime_ns\": {}", sip::time::monotonic()),
        format!("  \"processors\": {}", sip::thread::processor_count()),
        format!("  \"programs\": {}", sip::diagnostics::program_count()),
    ]);
    lines.extend(MEASURED.iter().map(|&(what, of)| format!("  \"{what}_sha256\": {}", json_string(&measurement(of)))));
    lines.extend(counters.iter().map(|counter| format!("  {}: {}", json_string(&name(&counter.name)), counter.value)));
    format!("{{\n{}\n}}\n", lines.join(",\n"))
}

/// Formats a SHA-256 in hexadecimal, or the reason why there is none.
fn measurement(of: Measured) -> String {
    match sip::diagnostics::measurement(of) {
        Ok(digest) => digest.iter().map(|byte| format!("{byte:02x}")).collect(),
        Err(status) => format!("({})", status.text()),
    }
}
