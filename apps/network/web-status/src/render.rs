//! A snapshot as JSON, and as tables for browsers without scripts.

use alloc::string::{String, ToString};
use core::fmt::Write;

use sip::diagnostics::{LatencyRecord, name};
use text::{bytes, count, duration};
use web_application::message::{Escaped, FAVICON, JsonWriter};

use crate::snapshot::{Link, Process, Service, Snapshot};

/// Formats the JSON that the page's script renders.
pub fn json(snapshot: &Snapshot) -> String {
    let mut json = JsonWriter::new();
    json.object(|json| {
        json.name("uptime_ns").number(snapshot.uptime_ns);
        json.name("processors").number(snapshot.processors);
        json.name("programs").number(snapshot.programs);
        json.name("channels").number(snapshot.channels);
        json.name("processes").list(|json| snapshot.processes.iter().for_each(|one| process(json, one)));
        json.name("links").list(|json| snapshot.links.iter().for_each(|one| link(json, one)));
        json.name("services").list(|json| snapshot.services.iter().for_each(|one| service(json, one)));
        json.name("latencies").list(|json| snapshot.latencies.iter().for_each(|one| latency(json, one)));
        json.name("web").object(|json| {
            for (name, value) in &snapshot.web {
                json.name(name).number(*value);
            }
        });
    });
    json.finish()
}

fn process(json: &mut JsonWriter, process: &Process) {
    json.object(|json| {
        json.name("id").number(process.id);
        json.name("parent").number(process.parent);
        json.name("name").string(&process.name);
        json.name("state").string(process.state);
        json.name("cycles").number(process.cycles);
        json.name("processor").thousandths(process.processor_permille);
        json.name("memory_bytes").number(process.memory_bytes);
        json.name("block_bytes").number(process.block_bytes);
        json.name("threads").number(process.threads);
        json.name("messages").number(process.messages);
        json.name("age_ns").number(process.age_ns);
        json.name("domain").number(process.domain);
    });
}

fn link(json: &mut JsonWriter, link: &Link) {
    json.object(|json| {
        json.name("importer").number(link.importer);
        json.name("exporter").number(link.exporter);
        json.name("contract").string(&link.contract);
        json.name("count").number(link.count);
        json.name("waiting").number(link.waiting);
        json.name("state").string(&link.state);
    });
}

fn service(json: &mut JsonWriter, service: &Service) {
    json.object(|json| {
        json.name("name").string(&service.name);
        json.name("state").string(service.state);
        json.name("process").number(service.process);
        json.name("restarts").number(service.restarts);
        json.name("path").string(&service.path);
    });
}

fn latency(json: &mut JsonWriter, latency: &LatencyRecord) {
    json.object(|json| {
        json.name("contract").string(&name(&latency.contract));
        json.name("to").string(receiver(latency));
        json.name("samples").number(latency.count());
        // Bounds; 0 is none.
        json.name("median_ns").number(latency.quantile_ns(500).unwrap_or(0));
        json.name("p99_ns").number(latency.quantile_ns(990).unwrap_or(0));
    });
}

/// A bound of latencies, for people.
fn below(bound_ns: Option<u64>) -> String {
    bound_ns.map_or_else(|| "long".into(), |ns| alloc::format!("< {}", duration(ns)))
}

/// The end that receives.
pub fn receiver(latency: &LatencyRecord) -> &'static str {
    if latency.to_exporter != 0 { "exporter" } else { "importer" }
}

/// Formats the tables.
pub fn table(snapshot: &Snapshot) -> String {
    let mut page = String::from("<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\">");
    // Writing to a `String` cannot fail.
    let _ = write!(
        page,
        "{FAVICON}<title>Singularity</title><style>:root{{color-scheme:light dark}}body{{font:14px sans-serif}}\
         td,th{{text-align:left;padding:2px 12px 2px 0}}</style></head><body><h1>Singularity</h1>\
         <p>Up {}, {} processors, {} processes, {} channels.</p><h2>Processes</h2><table><tr><th>Id<th>Name<th>State\
         <th>Processor<th>Memory<th>Messages<th>Age<th>Domain</tr>",
        duration(snapshot.uptime_ns),
        snapshot.processors,
        snapshot.processes.len(),
        count(snapshot.channels)
    );
    for one in &snapshot.processes {
        let percent = (one.processor_permille / 10, one.processor_permille % 10);
        let _ = writeln!(
            page,
            "<tr><td>{}<td>{}<td>{}<td>{}.{} %<td>{}<td>{}<td>{}<td>{}</tr>",
            one.id,
            Escaped(&one.name),
            one.state,
            percent.0,
            percent.1,
            bytes(one.memory_bytes + one.block_bytes),
            count(one.messages),
            duration(one.age_ns),
            if one.domain == 0 { "kernel's".to_string() } else { one.domain.to_string() }
        );
    }
    if !snapshot.web.is_empty() {
        page += "</table><h2>Web server</h2><table>";
        for (name, value) in &snapshot.web {
            let _ = writeln!(page, "<tr><td>{}<td>{}</tr>", Escaped(name), count(*value));
        }
    }
    page += "</table><h2>Services</h2><table><tr><th>Name<th>State<th>Process<th>Restarts<th>Path</tr>";
    for one in &snapshot.services {
        let (name, path) = (Escaped(&one.name), Escaped(&one.path));
        let _ = writeln!(page, "<tr><td>{name}<td>{}<td>{}<td>{}<td>{path}</tr>", one.state, one.process, one.restarts);
    }
    page +=
        "</table><h2>Channels</h2><table><tr><th>Contract<th>Importer<th>Exporter<th>Channels<th>Waiting<th>State</tr>";
    for one in &snapshot.links {
        let (contract, state) = (Escaped(&one.contract), Escaped(&one.state));
        let _ = writeln!(
            page,
            "<tr><td>{contract}<td>{}<td>{}<td>{}<td>{}<td>{state}</tr>",
            one.importer,
            one.exporter,
            count(one.count),
            one.waiting
        );
    }
    page += "</table><h2>Latencies</h2><table><tr><th>Contract<th>To<th>Samples<th>Median<th>99 %</tr>";
    for one in &snapshot.latencies {
        let (contract, to) = (name(&one.contract), receiver(one));
        let [median, p99] = [500, 990].map(|permille| below(one.quantile_ns(permille)));
        let (median, p99) = (Escaped(&median), Escaped(&p99));
        let _ = writeln!(
            page,
            "<tr><td>{}<td>{to}<td>{}<td>{median}<td>{p99}</tr>",
            Escaped(&contract),
            count(one.count())
        );
    }
    page += "</table></body></html>\n";
    page
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn snapshot() -> Snapshot {
        let link =
            Link { importer: 1, exporter: 2, contract: "File".into(), count: 3, waiting: 0, state: "READY".into() };
        let mut latency = LatencyRecord { contract: text::pad("File"), ..LatencyRecord::default() };
        (latency.buckets[2], latency.buckets[4]) = (98, 2);
        Snapshot {
            uptime_ns: 5,
            processors: 2,
            programs: 9,
            processes: Vec::new(),
            links: Vec::from([link]),
            channels: 3,
            services: Vec::new(),
            web: Vec::from([("requests".into(), 12)]),
            latencies: Vec::from([latency]),
        }
    }

    #[test]
    fn a_look_is_json() {
        let expected = "{\"uptime_ns\":5,\"processors\":2,\"programs\":9,\"channels\":3,\"processes\":[],\
            \"links\":[{\"importer\":1,\"exporter\":2,\"contract\":\"File\",\"count\":3,\"waiting\":0,\"state\":\"READY\"}],\
            \"services\":[],\"latencies\":[{\"contract\":\"File\",\"to\":\"importer\",\"samples\":100,\"median_ns\":1024,\"p99_ns\":4096}],\
            \"web\":{\"requests\":12}}";
        assert_eq!(json(&snapshot()), expected);
    }

    #[test]
    fn a_look_is_a_table() {
        let page = table(&snapshot());
        assert!(page.contains("<tr><td>File<td>1<td>2<td>3<td>0<td>READY</tr>"), "{page}");
        assert!(page.contains("<tr><td>File<td>importer<td>100<td>&lt; 1.0 us<td>&lt; 4.0 us</tr>"), "{page}");
        assert!(page.contains("<h2>Web server</h2><table><tr><td>requests<td>12</tr>"), "{page}");
    }
}
