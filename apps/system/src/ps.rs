//! Lists processes.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use client::namespace::Namespace;
use client::processes::{Instances, state_word};
use sip::diagnostics::{ProcessRecord, name};
use stdio::{Output, report};
use text::{Align, Table, bytes, count, duration, json_string};

sip::startup!("ps/manifest.toml");

/// Prints a line for each process, oldest first.
pub fn main(startup: Startup) -> i32 {
    let processes = match sip::diagnostics::processes() {
        Ok(processes) => processes,
        Err(status) => {
            report::error(format_args!("the processes cannot be listed: {}", status.text()));
            return 1;
        }
    };
    let instances = Instances::read(&mut Namespace::new(startup.namespace));
    let text = match (startup.json, startup.long) {
        (true, _) => json(&processes, &instances),
        (false, true) => long_table(&processes, &instances),
        (false, false) => table(&processes, &instances),
    };
    let mut output = Output::new(startup.output);
    output.write(text.as_bytes()).map_or(1, |()| output.finish_with(0))
}

/// Adds a last column with hardware domains, if a process has one. Processes with one number share it.
fn with_domains(processes: &[ProcessRecord], columns: &[(&'static str, Align)]) -> (Vec<(&'static str, Align)>, bool) {
    let any = processes.iter().any(|process| process.domain != 0);
    let mut columns = columns.to_vec();
    columns.extend(any.then_some(("DOMAIN", Align::Right)));
    (columns, any)
}

fn domain(process: &ProcessRecord) -> String {
    if process.domain == 0 { "-".into() } else { process.domain.to_string() }
}

/// Fits a terminal of 80 columns unless names are unusually long.
fn table(processes: &[ProcessRecord], instances: &Instances) -> String {
    let now = sip::time::monotonic();
    let (columns, has_domains) = with_domains(
        processes,
        &[
            ("ID", Align::Right),
            ("NAME", Align::Left),
            ("INSTANCE", Align::Left),
            ("STATE", Align::Left),
            ("AGE", Align::Right),
            ("MEMORY", Align::Right),
            ("MCYCLES", Align::Right),
        ],
    );
    let mut table = Table::new(&columns);
    for process in processes {
        let row = [
            process.id.to_string(),
            name(&process.name),
            instances.name_of(process.id).unwrap_or("-").to_string(),
            state_word(process.state).to_string(),
            duration(now.saturating_sub(process.started_ns)),
            bytes(process.memory_bytes),
            count(process.cycles / 1_000_000),
        ];
        table.row(row.into_iter().chain(has_domains.then(|| domain(process))));
    }
    table.render()
}

fn long_table(processes: &[ProcessRecord], instances: &Instances) -> String {
    let now = sip::time::monotonic();
    let (columns, has_domains) = with_domains(
        processes,
        &[
            ("ID", Align::Right),
            ("PARENT", Align::Right),
            ("NAME", Align::Left),
            ("INSTANCE", Align::Left),
            ("STATE", Align::Left),
            ("AGE", Align::Right),
            ("THREADS", Align::Right),
            ("MEMORY", Align::Right),
            ("BLOCKS", Align::Right),
            ("ENDPOINTS", Align::Right),
            ("MESSAGES", Align::Right),
            ("MCYCLES", Align::Right),
        ],
    );
    let mut table = Table::new(&columns);
    for process in processes {
        let row = [
            process.id.to_string(),
            process.parent.to_string(),
            name(&process.name),
            instances.name_of(process.id).unwrap_or("-").to_string(),
            state_word(process.state).to_string(),
            duration(now.saturating_sub(process.started_ns)),
            process.threads.to_string(),
            bytes(process.memory_bytes),
            process.blocks.to_string(),
            process.endpoints.to_string(),
            count(process.messages_sent.saturating_add(process.messages_received)),
            count(process.cycles / 1_000_000),
        ];
        table.row(row.into_iter().chain(has_domains.then(|| domain(process))));
    }
    table.render()
}

fn json(processes: &[ProcessRecord], instances: &Instances) -> String {
    let lines: Vec<String> = processes
        .iter()
        .map(|process| {
            format!(
                "  {{\"id\": {}, \"parent\": {}, \"name\": {}, \"instance\": {}, \"state\": {}, \"threads\": {}, \"memory_bytes\": {}, \
                 \"blocks\": {}, \"block_bytes\": {}, \"endpoints\": {}, \"handles\": {}, \"children\": {}, \
                 \"cycles\": {}, \"messages_sent\": {}, \"messages_received\": {}, \"started_ns\": {}, \"domain\": {}}}",
                process.id,
                process.parent,
                json_string(&name(&process.name)),
                instances.name_of(process.id).map_or(String::from("null"), json_string),
                json_string(state_word(process.state)),
                process.threads,
                process.memory_bytes,
                process.blocks,
                process.block_bytes,
                process.endpoints,
                process.handles,
                process.children,
                process.cycles,
                process.messages_sent,
                process.messages_received,
                process.started_ns,
                process.domain
            )
        })
        .collect();
    format!("[\n{}\n]\n", lines.join(",\n"))
}
