//! Lists channels: their two processes, contract and state.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use client::processes::{none, select, title};
use sip::diagnostics::{ChannelRecord, ProcessRecord, name};
use stdio::{Output, report};
use text::{Align, Table, json_string};

sip::startup!("channels/manifest.toml");

/// Prints a line for each channel.
pub fn main(startup: Startup) -> i32 {
    let (channels, processes) = match (sip::diagnostics::channels(), sip::diagnostics::processes()) {
        (Ok(channels), Ok(processes)) => (channels, processes),
        (Err(status), _) | (_, Err(status)) => {
            report::error(format_args!("the channels cannot be listed: {}", status.text()));
            return 1;
        }
    };
    let mut shown: Vec<&ChannelRecord> = channels.iter().collect();
    if let Some(target) = &startup.process {
        let meant = select(&processes, target);
        if meant.is_empty() {
            report::error(format_args!("{}", none(target)));
            return 1;
        }
        shown.retain(|channel| meant.iter().any(|one| one.id == channel.importer || one.id == channel.exporter));
    }
    shown.sort_by_key(|channel| channel.channel);
    let text = if startup.json { json(&shown, &processes) } else { table(&shown, &processes) };
    let mut output = Output::new(startup.output);
    output.write(text.as_bytes()).map_or(1, |()| output.finish_with(0))
}

/// Both ends are in the same state unless messages are in flight; then each has its own.
fn state(channel: &ChannelRecord) -> String {
    let (importer, exporter) = (name(&channel.importer_state_name), name(&channel.exporter_state_name));
    if importer == exporter { importer } else { format!("{importer} | {exporter}") }
}

fn table(channels: &[&ChannelRecord], processes: &[ProcessRecord]) -> String {
    let mut table = Table::new(&[
        ("CHANNEL", Align::Right),
        ("CONTRACT", Align::Left),
        ("IMPORTER", Align::Left),
        ("EXPORTER", Align::Left),
        ("STATE", Align::Left),
        ("TO IMP", Align::Right),
        ("TO EXP", Align::Right),
    ]);
    for channel in channels {
        table.row([
            channel.channel.to_string(),
            name(&channel.contract),
            title(processes, channel.importer),
            title(processes, channel.exporter),
            state(channel),
            channel.waiting_for_importer.to_string(),
            channel.waiting_for_exporter.to_string(),
        ]);
    }
    table.render()
}

fn json(channels: &[&ChannelRecord], processes: &[ProcessRecord]) -> String {
    let program = |id: u64| {
        let found = processes.iter().find(|process| process.id == id);
        found.map_or(String::from("null"), |process| json_string(&name(&process.name)))
    };
    let lines: Vec<String> = channels
        .iter()
        .map(|channel| {
            format!(
                "  {{\"channel\": {}, \"contract\": {}, \"importer\": {}, \"importer_name\": {}, \
                 \"importer_state\": {}, \"exporter\": {}, \"exporter_name\": {}, \"exporter_state\": {}, \
                 \"waiting_for_importer\": {}, \"waiting_for_exporter\": {}}}",
                channel.channel,
                json_string(&name(&channel.contract)),
                channel.importer,
                program(channel.importer),
                json_string(&name(&channel.importer_state_name)),
                channel.exporter,
                program(channel.exporter),
                json_string(&name(&channel.exporter_state_name)),
                channel.waiting_for_importer,
                channel.waiting_for_exporter
            )
        })
        .collect();
    format!("[\n{}\n]\n", lines.join(",\n"))
}
