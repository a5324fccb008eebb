//! Lists the services of the system.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use client::namespace::Namespace;
use client::services::{list, state_word, text};
use contracts::service_manager::ServiceRecord;
use stdio::{Output, report};
use text::{Align, Table, json_string};

sip::startup!("services/manifest.toml");

/// Prints a line for each service, in boot order.
pub fn main(startup: Startup) -> i32 {
    let services = match list(&mut Namespace::new(startup.namespace)) {
        Ok(services) => services,
        Err(error) => {
            report::error(format_args!("{error}"));
            return 1;
        }
    };
    let text = if startup.json { json(&services) } else { table(&services) };
    let mut output = Output::new(startup.output);
    output.write(text.as_bytes()).map_or(1, |()| output.finish_with(0))
}

fn table(services: &[ServiceRecord]) -> String {
    let mut table = Table::new(&[
        ("NAME", Align::Left),
        ("PROGRAM", Align::Left),
        ("STATE", Align::Left),
        ("ID", Align::Right),
        ("RESTARTS", Align::Right),
        ("PATH", Align::Left),
        ("REASON", Align::Left),
    ]);
    for service in services {
        table.row([
            text(&service.name),
            text(&service.program),
            state_word(service.state).to_string(),
            if service.process == 0 { String::from("-") } else { service.process.to_string() },
            service.restarts.to_string(),
            text(&service.path),
            text(&service.reason),
        ]);
    }
    table.render()
}

fn json(services: &[ServiceRecord]) -> String {
    let lines: Vec<String> = services
        .iter()
        .map(|service| {
            format!(
                "  {{\"name\": {}, \"program\": {}, \"state\": {}, \"process\": {}, \"restarts\": {}, \"path\": {}, \
                 \"reason\": {}}}",
                json_string(&text(&service.name)),
                json_string(&text(&service.program)),
                json_string(state_word(service.state)),
                service.process,
                service.restarts,
                json_string(&text(&service.path)),
                json_string(&text(&service.reason))
            )
        })
        .collect();
    format!("[\n{}\n]\n", lines.join(",\n"))
}
