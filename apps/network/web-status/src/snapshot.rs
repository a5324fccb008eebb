//! Snapshots of the system.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use client::namespace::Namespace;
use client::processes::state_word;
use client::services;
use sip::Status;
use sip::diagnostics::{ChannelRecord, LatencyRecord, ProcessRecord, name};
use sip::exheap::ExVec;

/// Lifetime of a snapshot in nanoseconds.
const FRESH_NS: u64 = 250_000_000;

/// Maximum number of links in a snapshot; those with most channels have priority.
const MAX_LINKS: usize = 2_000;

/// Path of the web server's statistics, and their maximum size.
const WEB_SERVER: &str = "/status/web";
const MAX_WEB_BYTES: usize = 8 * 1024;

/// A process.
pub struct Process {
    /// Process id.
    pub id: u64,
    /// Process id of its parent.
    pub parent: u64,
    /// Name of its program.
    pub name: String,
    /// Its state.
    pub state: &'static str,
    /// Processor cycles used.
    pub cycles: u64,
    /// Processor usage since the previous snapshot, in permille of one processor.
    pub processor_permille: u64,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Blocks in bytes.
    pub block_bytes: u64,
    /// Number of threads.
    pub threads: u64,
    /// Messages sent and received.
    pub messages: u64,
    /// Age in nanoseconds.
    pub age_ns: u64,
    /// Number of its hardware domain, or 0.
    pub domain: u64,
}

/// The channels of one contract between two processes.
pub struct Link {
    /// Process with the importing ends; 0 if none.
    pub importer: u64,
    /// Process with the exporting ends; 0 if none.
    pub exporter: u64,
    /// Name of the contract.
    pub contract: String,
    /// Number of channels.
    pub count: u64,
    /// Messages queued in them.
    pub waiting: u64,
    /// State of one of them, as seen by its importer.
    pub state: String,
}

/// A service.
pub struct Service {
    /// Its name.
    pub name: String,
    /// Its state.
    pub state: &'static str,
    /// Its process id, or 0.
    pub process: u64,
    /// Number of restarts.
    pub restarts: u64,
    /// Path of its name in the namespace.
    pub path: String,
}

/// A snapshot of the system.
pub struct Snapshot {
    /// Uptime in nanoseconds.
    pub uptime_ns: u64,
    /// Number of processors.
    pub processors: u64,
    /// Number of installed programs.
    pub programs: u64,
    /// All processes.
    pub processes: Vec<Process>,
    /// Channels between processes.
    pub links: Vec<Link>,
    /// Number of channels.
    pub channels: u64,
    /// All services, if available.
    pub services: Vec<Service>,
    /// Counters of the web server by name; empty if not available.
    pub web: Vec<(String, u64)>,
    /// Latencies of sampled messages, by contract and direction.
    pub latencies: Vec<LatencyRecord>,
}

/// Takes snapshots at a limited rate.
pub struct Watch {
    namespace: Option<Namespace>,
    last: Option<Snapshot>,
    /// Cycles of each process at the last snapshot, and of the machine.
    cycles: (BTreeMap<u64, u64>, u64),
}

impl Watch {
    /// Starts without a snapshot.
    pub fn new(namespace: Option<Namespace>) -> Watch {
        Watch { namespace, last: None, cycles: (BTreeMap::new(), 0) }
    }

    /// The namespace, if there is one.
    pub fn namespace(&mut self) -> Option<&mut Namespace> {
        self.namespace.as_mut()
    }

    /// Returns a recent snapshot, taking a new one if necessary.
    pub fn look(&mut self) -> Result<&Snapshot, Status> {
        let now = sip::time::monotonic();
        let is_fresh = self.last.as_ref().is_some_and(|last| now.saturating_sub(last.uptime_ns) < FRESH_NS);
        let snapshot = match self.last.take() {
            Some(last) if is_fresh => last,
            _ => self.look_anew(now)?,
        };
        Ok(self.last.insert(snapshot))
    }

    fn look_anew(&mut self, now: u64) -> Result<Snapshot, Status> {
        let (records, channels) = (sip::diagnostics::processes()?, sip::diagnostics::channels()?);
        let cycles = sip::debug::cycles();
        let elapsed = cycles.saturating_sub(self.cycles.1);
        let processes = records.iter().map(|record| process(record, &self.cycles.0, elapsed, now)).collect();
        self.cycles = (records.iter().map(|record| (record.id, record.cycles)).collect(), cycles);
        let services = self.namespace.as_mut().and_then(|namespace| services::list(namespace).ok());
        let services = services.unwrap_or_default().into_iter().map(|record| Service {
            name: services::text(&record.name),
            state: services::state_word(record.state),
            process: record.process,
            restarts: record.restarts,
            path: services::text(&record.path),
        });
        let web = self.namespace.as_mut().and_then(web_counters).unwrap_or_default();
        Ok(Snapshot {
            uptime_ns: now,
            processors: sip::thread::processor_count() as u64,
            programs: sip::diagnostics::program_count() as u64,
            processes,
            links: links(&channels),
            channels: channels.len() as u64,
            services: services.collect(),
            web,
            latencies: sip::diagnostics::latencies()?.to_vec(),
        })
    }
}

fn web_counters(namespace: &mut Namespace) -> Option<Vec<(String, u64)>> {
    let mut file = namespace.open_file(WEB_SERVER).ok()?;
    let (block, count) = file.read_at(ExVec::new(MAX_WEB_BYTES).ok()?, 0).ok()?;
    Some(counters(core::str::from_utf8(block.get(..count)?).ok()?))
}

/// Parses lines of a name and a number; skips other lines.
fn counters(text: &str) -> Vec<(String, u64)> {
    let line = |line: &str| line.split_once(' ').and_then(|(name, number)| Some((name.into(), number.parse().ok()?)));
    text.lines().filter_map(line).collect()
}

fn process(record: &ProcessRecord, before: &BTreeMap<u64, u64>, elapsed: u64, now: u64) -> Process {
    // A process absent from the last snapshot has no history.
    let used = before.get(&record.id).map_or(0, |before| record.cycles.saturating_sub(*before));
    let permille = u128::from(used) * 1000 / u128::from(elapsed.max(1));
    Process {
        id: record.id,
        parent: record.parent,
        name: name(&record.name),
        state: state_word(record.state),
        cycles: record.cycles,
        processor_permille: permille as u64,
        memory_bytes: record.memory_bytes,
        block_bytes: record.block_bytes,
        threads: record.threads,
        messages: record.messages_sent.saturating_add(record.messages_received),
        age_ns: now.saturating_sub(record.started_ns),
        domain: record.domain,
    }
}

/// Groups channels by the processes at their ends and their contract: a server has thousands of one kind.
fn links(channels: &[ChannelRecord]) -> Vec<Link> {
    let mut found: BTreeMap<(u64, u64, &[u8]), Link> = BTreeMap::new();
    for channel in channels {
        let link = found.entry((channel.importer, channel.exporter, &channel.contract)).or_insert_with(|| Link {
            importer: channel.importer,
            exporter: channel.exporter,
            contract: name(&channel.contract),
            count: 0,
            waiting: 0,
            state: name(&channel.importer_state_name).to_string(),
        });
        link.count += 1;
        link.waiting += channel.waiting_for_importer + channel.waiting_for_exporter;
    }
    let mut links: Vec<Link> = found.into_values().collect();
    if links.len() > MAX_LINKS {
        links.sort_by_key(|link| core::cmp::Reverse(link.count));
        links.truncate(MAX_LINKS);
    }
    links
}

#[cfg(test)]
mod tests {
    use super::*;

    fn channel(importer: u64, exporter: u64, contract: &str, waiting_for_importer: u64) -> ChannelRecord {
        let contract = text::pad(contract);
        ChannelRecord { importer, exporter, contract, waiting_for_importer, ..ChannelRecord::default() }
    }

    #[test]
    fn channels_of_a_kind_are_one_link() {
        let all =
            [channel(1, 2, "File", 1), channel(2, 1, "File", 0), channel(1, 2, "File", 2), channel(1, 2, "Disk", 0)];
        let found = links(&all);
        let told: Vec<(u64, u64, &str, u64, u64)> = found
            .iter()
            .map(|link| (link.importer, link.exporter, link.contract.as_str(), link.count, link.waiting))
            .collect();
        assert_eq!(told, [(1, 2, "Disk", 1, 0), (1, 2, "File", 2, 3), (2, 1, "File", 1, 0)]);
    }

    #[test]
    fn counters_are_lines_with_a_number() {
        let text = "connections 3\napplication /hello web-hello running starts 1 failures 0\nrequests 12\nodd\n";
        assert_eq!(counters(text), [("connections".into(), 3), ("requests".into(), 12)]);
    }

    #[test]
    fn a_new_process_has_used_nothing_yet() {
        let record = ProcessRecord { id: 7, cycles: 500, ..ProcessRecord::default() };
        assert_eq!(process(&record, &BTreeMap::new(), 1000, 0).processor_permille, 0);
        assert_eq!(process(&record, &BTreeMap::from([(7, 250)]), 1000, 0).processor_permille, 250);
        assert_eq!(process(&record, &BTreeMap::from([(7, 250)]), 0, 0).processor_permille, 250_000);
    }
}
