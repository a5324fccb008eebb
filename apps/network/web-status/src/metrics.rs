//! The system as metrics for Prometheus: `/metrics`.
//!
//! In OpenMetrics 1.0 for clients that accept it, else in Prometheus' text format 0.0.4. Counters of a process begin
//! with it, so its samples carry the process id. Deliberately not here: history, which is the scraper's.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use core::fmt::{Display, Write};

use sip::Status;
use sip::diagnostics::{CounterRecord, LatencyRecord, name};
use web_application::Reply;
use web_application::message::RequestHead;

use crate::snapshot::Snapshot;

const OPEN_METRICS: &str = "application/openmetrics-text";
/// Prefix of all names.
const PREFIX: &str = "singularity_";

/// Kind of a metric.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Goes up only.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts by upper bounds.
    Histogram,
}
use Kind::{Counter, Gauge, Histogram};

/// Counters of the kernel: their names there, as metrics, and what they count.
const KERNEL: &[(&str, &str, Kind, &str)] = &[
    ("processes", "processes", Gauge, "Processes, with ended ones whose parent holds their handle."),
    ("processes created", "processes_created", Counter, "Processes created since boot."),
    ("processes ended", "processes_ended", Counter, "Processes ended since boot."),
    ("threads", "threads", Gauge, "Threads."),
    ("channels", "channels", Gauge, "Channels."),
    ("blocks", "blocks", Gauge, "Blocks of the exchange heap."),
    ("quarantined blocks", "quarantined_blocks", Gauge, "Blocks that a device may still write to."),
    ("synchronization objects", "synchronization_objects", Gauge, "Mutexes, events, wait sets and debug sinks."),
    ("pages", "pages", Gauge, "Pages that processes hold."),
    ("exchange bytes", "exchange_bytes", Gauge, "Bytes of the exchange heap in use."),
    ("stacks", "stacks", Gauge, "Stacks in use."),
    ("kernel heap bytes", "kernel_heap_bytes", Gauge, "Bytes of the kernel's heap in use."),
    ("memory bytes", "memory_bytes", Gauge, "Memory of the machine in bytes."),
    ("memory bytes in use", "memory_used_bytes", Gauge, "Memory of the machine in use, in bytes."),
    ("idle processors", "idle_processors", Gauge, "Processors that have nothing to run."),
    ("processors", "processors", Gauge, "Processors."),
    ("hardware domains", "hardware_domains", Gauge, "Hardware domains."),
];
/// Those of each processor, and the longest time that the kernel took for a function.
const SWITCHES: &str = "switches of processor ";
const LONGEST: &str = "ns ";

/// Counters of the web server, in the same way.
const WEB: &[(&str, &str, Kind, &str)] = &[
    ("connections", "web_connections", Gauge, "Open connections."),
    ("connections-allowed", "web_connections_limit", Gauge, "Maximum of open connections."),
    ("connections-taken", "web_connections_accepted", Counter, "Connections accepted."),
    ("requests", "web_requests", Counter, "Requests."),
    ("answers-cut", "web_responses_truncated", Counter, "Responses that ended early."),
    ("content-bytes", "web_content_bytes", Counter, "Content sent, in bytes."),
    ("open-files", "web_cached_files", Gauge, "Files that are kept open."),
    ("open-files-found", "web_cache_hits", Counter, "Requests for a file that was kept open."),
    ("open-files-missed", "web_cache_misses", Counter, "Requests for a file that was not."),
    ("kept-content-bytes", "web_cached_bytes", Gauge, "Content in memory, in bytes."),
    ("log-lines-lost", "web_log_lines_lost", Counter, "Lines that the access log could not take."),
];
const ANSWERS: &str = "answers-";

/// Formats a snapshot and the kernel's counters for a client.
pub fn reply(head: &RequestHead, snapshot: &Snapshot) -> Result<Reply, Status> {
    let counters = sip::diagnostics::counters()?;
    let is_open = accepts_open_metrics(head.headers_named("accept"));
    let text = text(is_open, snapshot, &counters);
    Ok(if is_open {
        Reply::text_of("application/openmetrics-text; version=1.0.0; charset=utf-8", text)
    } else {
        Reply::text_of("text/plain; version=0.0.4; charset=utf-8", text)
    })
}

/// Whether any of these `Accept` fields names OpenMetrics, other than with weight zero.
fn accepts_open_metrics<'a>(fields: impl Iterator<Item = &'a str>) -> bool {
    let is_named = |range: &str| {
        let mut parts = range.split(';').map(str::trim);
        let is_zero =
            |weight: &str| weight.strip_prefix("q=").is_some_and(|digits| digits.chars().all(|one| "0.".contains(one)));
        parts.next().is_some_and(|name| name.eq_ignore_ascii_case(OPEN_METRICS)) && !parts.any(is_zero)
    };
    fields.flat_map(|field| field.split(',')).any(is_named)
}

fn text(is_open: bool, snapshot: &Snapshot, counters: &[CounterRecord]) -> String {
    let mut metrics = Metrics { text: String::new(), is_open };
    metrics.one("uptime_seconds", Gauge, "Time since boot.", Nanoseconds(snapshot.uptime_ns));
    metrics.one("programs", Gauge, "Installed programs.", snapshot.programs);
    kernel(&mut metrics, counters);
    processes(&mut metrics, snapshot);
    links(&mut metrics, snapshot);
    latencies(&mut metrics, &snapshot.latencies);
    services(&mut metrics, snapshot);
    web(&mut metrics, snapshot);
    if is_open {
        metrics.text += "# EOF\n";
    }
    metrics.text
}

/// Metrics as text.
struct Metrics {
    text: String,
    /// OpenMetrics, whose families of counters are named without `_total`.
    is_open: bool,
}

/// A number of nanoseconds, in seconds.
struct Nanoseconds(u64);

impl Display for Nanoseconds {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(formatter, "{}.{:09}", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}

/// The value of a label.
struct Value<'a>(&'a str);

impl Display for Value<'_> {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.chars().try_for_each(|letter| match letter {
            '\\' => formatter.write_str("\\\\"),
            '"' => formatter.write_str("\\\""),
            '\n' => formatter.write_str("\\n"),
            other => formatter.write_char(other),
        })
    }
}

impl Metrics {
    /// Begins a family. Its samples follow, and no other's.
    fn family(&mut self, name: &str, kind: Kind, help: &str) {
        let suffix = if kind == Counter && !self.is_open { "_total" } else { "" };
        let word = match kind {
            Counter => "counter",
            Gauge => "gauge",
            Histogram => "histogram",
        };
        // Writing to a `String` cannot fail.
        let _ = writeln!(self.text, "# HELP {PREFIX}{name}{suffix} {help}\n# TYPE {PREFIX}{name}{suffix} {word}");
    }

    fn sample(&mut self, name: &str, kind: Kind, labels: &[(&str, &str)], value: impl Display) {
        let suffix = if kind == Counter { "_total" } else { "" };
        let _ = write!(self.text, "{PREFIX}{name}{suffix}");
        for (index, (label, value)) in labels.iter().enumerate() {
            let before = if index == 0 { '{' } else { ',' };
            let _ = write!(self.text, "{before}{label}=\"{}\"", Value(value));
        }
        let after = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.text, "{after} {value}");
    }

    fn one(&mut self, name: &str, kind: Kind, help: &str, value: impl Display) {
        self.family(name, kind, help);
        self.sample(name, kind, &[], value);
    }

    /// A family with a sample for each of some things.
    fn each<'a, T: 'a, V: Display>(
        &mut self,
        (name, kind, help): (&str, Kind, &str),
        all: impl IntoIterator<Item = &'a T>,
        sample: impl Fn(&'a T) -> ([(&'a str, String); 2], V),
    ) {
        self.family(name, kind, help);
        for thing in all {
            let (labels, value) = sample(thing);
            let labels = labels.each_ref().map(|(label, value)| (*label, value.as_str()));
            let used = labels.iter().position(|(label, _)| label.is_empty()).unwrap_or(labels.len());
            self.sample(name, kind, &labels[..used], value);
        }
    }
}

fn kernel(metrics: &mut Metrics, counters: &[CounterRecord]) {
    let named: BTreeMap<String, u64> = counters.iter().map(|record| (name(&record.name), record.value)).collect();
    for (known, metric, kind, help) in KERNEL {
        if let Some(value) = named.get(*known) {
            metrics.one(metric, *kind, help, value);
        }
    }
    let with =
        |prefix: &'static str| named.iter().filter_map(move |(name, value)| Some((name.strip_prefix(prefix)?, *value)));
    metrics.family("context_switches", Counter, "Switches from one thread to another.");
    for (number, value) in with(SWITCHES) {
        metrics.sample("context_switches", Counter, &[("processor", number)], value);
    }
    metrics.family(
        "kernel_longest_seconds",
        Gauge,
        "Longest time that the kernel took without a chance of preemption.",
    );
    for (part, value) in with(LONGEST) {
        metrics.sample("kernel_longest_seconds", Gauge, &[("part", part)], Nanoseconds(value));
    }
}

fn processes(metrics: &mut Metrics, snapshot: &Snapshot) {
    type Figure = fn(&crate::snapshot::Process) -> u64;
    let figures: [(&str, Kind, &str, Figure); 6] = [
        ("process_cycles", Counter, "Processor cycles used.", |process| process.cycles),
        ("process_memory_bytes", Gauge, "Memory in bytes.", |process| process.memory_bytes),
        ("process_block_bytes", Gauge, "Blocks of the exchange heap in bytes.", |process| process.block_bytes),
        ("process_threads", Gauge, "Threads.", |process| process.threads),
        ("process_messages", Counter, "Messages sent and received.", |process| process.messages),
        ("process_domain", Gauge, "Number of its hardware domain; 0 for the kernel's.", |process| process.domain),
    ];
    for (name, kind, help, figure) in figures {
        metrics.each((name, kind, help), &snapshot.processes, |process| {
            ([("process", process.id.to_string()), ("program", process.name.clone())], figure(process))
        });
    }
}

fn links(metrics: &mut Metrics, snapshot: &Snapshot) {
    let mut by_contract: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for link in &snapshot.links {
        let (channels, waiting) = by_contract.entry(&link.contract).or_default();
        *channels += link.count;
        *waiting += link.waiting;
    }
    let label = |contract: &str| [("contract", contract.to_string()), ("", String::new())];
    let all: alloc::vec::Vec<_> = by_contract.into_iter().collect();
    metrics.each(("contract_channels", Gauge, "Channels of a contract."), &all, |(contract, (channels, _))| {
        (label(contract), *channels)
    });
    metrics.each(("contract_queued_messages", Gauge, "Messages sent and not received."), &all, |(contract, one)| {
        (label(contract), one.1)
    });
}

/// Of the kernel's bounds, powers of two, every second is a series.
const BOUNDS: usize = 2;

fn latencies(metrics: &mut Metrics, latencies: &[LatencyRecord]) {
    const NAME: &str = "message_latency_seconds";
    metrics.family(NAME, Histogram, "Time from send to receive, of sampled messages.");
    for one in latencies {
        let contract = name(&one.contract);
        let labels = [("contract", contract.as_str()), ("to", crate::render::receiver(one))];
        let mut below: u64 = 0;
        for (bucket, count) in one.buckets.iter().enumerate() {
            below = below.saturating_add(*count);
            let bound = match LatencyRecord::bound_ns(bucket) {
                Some(_) if bucket % BOUNDS != 0 => continue,
                Some(bound_ns) => Nanoseconds(bound_ns).to_string(),
                None => "+Inf".into(),
            };
            let [contract, to] = labels;
            metrics.sample("message_latency_seconds_bucket", Histogram, &[contract, to, ("le", &bound)], below);
        }
        metrics.sample("message_latency_seconds_sum", Histogram, &labels, Nanoseconds(one.sum_ns));
        metrics.sample("message_latency_seconds_count", Histogram, &labels, below);
    }
}

fn services(metrics: &mut Metrics, snapshot: &Snapshot) {
    let label = |name: &str| [("service", name.to_string()), ("", String::new())];
    metrics.each(("service_up", Gauge, "Whether a service runs."), &snapshot.services, |service| {
        (label(&service.name), u64::from(service.state == "running"))
    });
    metrics.each(("service_restarts", Counter, "Restarts of a service."), &snapshot.services, |service| {
        (label(&service.name), service.restarts)
    });
}

fn web(metrics: &mut Metrics, snapshot: &Snapshot) {
    if snapshot.web.is_empty() {
        return;
    }
    for (known, metric, kind, help) in WEB {
        if let Some((_, value)) = snapshot.web.iter().find(|(name, _)| name == known) {
            metrics.one(metric, *kind, help, value);
        }
    }
    metrics.family("web_responses", Counter, "Responses by the class of their status.");
    for (name, value) in &snapshot.web {
        let class = name.strip_prefix(ANSWERS).filter(|class| class.ends_with("xx"));
        if let Some(class) = class {
            metrics.sample("web_responses", Counter, &[("class", class)], value);
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::snapshot::{Process, Service};

    fn snapshot() -> Snapshot {
        let process = Process {
            id: 7,
            parent: 1,
            name: "odd\"name\\".into(),
            state: "running",
            cycles: 12,
            processor_permille: 0,
            memory_bytes: 4096,
            block_bytes: 0,
            threads: 2,
            messages: 5,
            age_ns: 0,
            domain: 0,
        };
        let service =
            Service { name: "disk".into(), state: "running", process: 7, restarts: 3, path: "/dev/disk".into() };
        let mut latency = LatencyRecord { to_exporter: 1, sum_ns: 9_000, ..LatencyRecord::default() };
        latency.contract = text::pad("File");
        (latency.buckets[0], latency.buckets[2], latency.buckets[27]) = (3, 4, 1);
        Snapshot {
            uptime_ns: 1_500_000_000,
            processors: 1,
            programs: 2,
            processes: Vec::from([process]),
            links: Vec::new(),
            channels: 0,
            services: Vec::from([service]),
            web: Vec::from([("requests".into(), 9), ("answers-2xx".into(), 8)]),
            latencies: Vec::from([latency]),
        }
    }

    fn counter(name: &str, value: u64) -> CounterRecord {
        CounterRecord { value, name: text::pad(name) }
    }

    fn lines(is_open: bool) -> String {
        let counters =
            [counter("processes ended", 4), counter("switches of processor 0", 6), counter("ns send", 1_000)];
        text(is_open, &snapshot(), &counters)
    }

    #[test]
    fn a_counter_is_named_as_each_format_wants() {
        let (open, plain) = (lines(true), lines(false));
        assert!(
            open.contains("# TYPE singularity_processes_ended counter\nsingularity_processes_ended_total 4\n"),
            "{open}"
        );
        assert!(
            plain.contains("# TYPE singularity_processes_ended_total counter\nsingularity_processes_ended_total 4\n"),
            "{plain}"
        );
        assert!(open.ends_with("\n# EOF\n") && !plain.contains("EOF"));
    }

    #[test]
    fn labels_are_escaped() {
        let sample = "singularity_process_cycles_total{process=\"7\",program=\"odd\\\"name\\\\\"} 12\n";
        assert!(lines(false).contains(sample), "{}", lines(false));
    }

    #[test]
    fn samples_have_their_units() {
        let text = lines(false);
        for sample in [
            "singularity_uptime_seconds 1.500000000\n",
            "singularity_context_switches_total{processor=\"0\"} 6\n",
            "singularity_kernel_longest_seconds{part=\"send\"} 0.000001000\n",
            "singularity_service_up{service=\"disk\"} 1\n",
            "singularity_service_restarts_total{service=\"disk\"} 3\n",
            "singularity_web_responses_total{class=\"2xx\"} 8\n",
        ] {
            assert!(text.contains(sample), "no {sample} in {text}");
        }
    }

    #[test]
    fn buckets_are_cumulative_and_end_with_all() {
        let text = lines(true);
        let labels = "contract=\"File\",to=\"exporter\"";
        for sample in [
            alloc::format!("singularity_message_latency_seconds_bucket{{{labels},le=\"0.000000256\"}} 3\n"),
            alloc::format!("singularity_message_latency_seconds_bucket{{{labels},le=\"0.000001024\"}} 7\n"),
            alloc::format!("singularity_message_latency_seconds_bucket{{{labels},le=\"+Inf\"}} 8\n"),
            alloc::format!("singularity_message_latency_seconds_sum{{{labels}}} 0.000009000\n"),
            alloc::format!("singularity_message_latency_seconds_count{{{labels}}} 8\n"),
        ] {
            assert!(text.contains(&sample), "no {sample} in {text}");
        }
        assert!(text.contains("# TYPE singularity_message_latency_seconds histogram\n"), "{text}");
    }

    #[test]
    fn each_family_stands_once_before_its_samples() {
        let text = lines(true);
        let families: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
        for family in &families {
            assert_eq!(families.iter().filter(|other| other == &family).count(), 1, "{family}");
        }
        let mut current = String::new();
        for line in text.lines() {
            match line.strip_prefix("# ") {
                Some(comment) => current = comment.split(' ').nth(1).unwrap_or("").into(),
                None => assert!(line.starts_with(&current), "{line} in {current}"),
            }
        }
    }

    #[test]
    fn open_metrics_is_for_clients_that_ask_for_it() {
        let accepts = |field: &str| accepts_open_metrics([field].into_iter());
        assert!(accepts("application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.3"));
        assert!(accepts("text/plain, Application/OpenMetrics-Text; q=0.5"));
        assert!(!accepts("application/openmetrics-text;q=0.0"));
        assert!(!accepts("text/plain"));
        assert!(!accepts("*/*"));
    }
}
