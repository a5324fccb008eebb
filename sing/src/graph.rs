//! `sing graph`: the SIPs of a system and the channels between them, as SVG.
//!
//! The graph of a system manifest shows the endpoints bound at start. The graph of a running system shows every
//! channel: `--running` starts the system, lets its shell run `channels --json` and draws the output; `--from FILE`
//! draws the output of that command from another system. Running machines therefore need no interface for inspection,
//! and have none.

mod layout;
mod svg;

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use boot_order::{Provider, bound_path, provider_of};
use install::Installed;
use manifest_model::{ContractSide, Instance, Manifest, Source, SystemManifest};
use serde::Deserialize;

use crate::builder::UnsafeTests;
use crate::command_line::GraphArguments;
use crate::contract_view::{Content, write_or_print};
use crate::failure::{Failure, Outcome};
use crate::repository::Repository;
use crate::systems::{self, Catalogue, Platform};
use crate::{process, run};

/// Timeout of a running system's reply.
const LIMIT: Duration = Duration::from_secs(60);

/// Graph to draw.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Graph {
    title: String,
    nodes: Vec<Node>,
    edges: Vec<Edge>,
    /// Lines under the graph.
    notes: Vec<String>,
}

/// A SIP, or several equal ones.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Node {
    title: String,
    detail: String,
    /// Category of the program, which determines the colour.
    category: String,
    /// Its hardware domain; `None` for the kernel's own.
    domain: Option<String>,
}

/// Channels from an importer to an exporter.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Edge {
    importer: usize,
    exporter: usize,
    labels: Vec<String>,
}

impl Graph {
    /// Adds a channel; those between the same two nodes are one line with several labels.
    fn connect(&mut self, importer: usize, exporter: usize, label: &str) {
        let found = self.edges.iter_mut().find(|edge| edge.importer == importer && edge.exporter == exporter);
        match found {
            Some(edge) if edge.labels.iter().any(|known| known == label) => {}
            Some(edge) => edge.labels.push(label.to_string()),
            None => self.edges.push(Edge { importer, exporter, labels: vec![label.to_string()] }),
        }
    }
}

/// `sing graph`.
///
/// # Errors
/// The system has errors, does not start, or the file cannot be written.
pub fn graph(repository: &Repository, arguments: &GraphArguments) -> Outcome<u8> {
    let graph = match &arguments.from {
        Some(file) => of_listing(&listing(file)?)?,
        None if arguments.running => of_listing(&running(repository, &arguments.system)?)?,
        None => {
            let catalogue = Catalogue::read(repository)?;
            let path = repository.system_manifest(&arguments.system)?;
            of_manifest(&systems::described(repository, &catalogue, &path)?)
        }
    };
    write_or_print(arguments.output.as_deref(), Content::Picture, &svg::draw(&graph))?;
    Ok(0)
}

/// Optional instances of the same program are one node.
fn of_manifest(installed: &Installed) -> Graph {
    let system = &installed.system;
    let find = |name: &str| installed.manifest(name);
    let mut graph = Graph { title: format!("system {}", system.name), ..Graph::default() };
    let root = node(&mut graph, &system.root, "root", find(&system.root));
    let mut groups: BTreeMap<&str, usize> = BTreeMap::new();
    let mut places = Vec::new();
    for instance in &system.instances {
        let group = groups.get(instance.program.as_str()).copied().filter(|_| instance.optional);
        let place =
            group.unwrap_or_else(|| node(&mut graph, &instance.name, &instance.program, find(&instance.program)));
        if instance.optional {
            groups.insert(&instance.program, place);
        }
        places.push(place);
    }
    name_groups(&mut graph, system, &places);
    for (index, instance) in system.instances.iter().enumerate() {
        let Some(manifest) = find(&instance.program) else { continue };
        connect_instance(&mut graph, system, &find, (index, instance, manifest), (&places, root));
    }
    name_domains(&mut graph, installed, &places);
    if !system.installed.is_empty() {
        graph.notes.push(format!("To be started by others: {}.", system.installed.join(", ")));
    }
    graph
}

/// Notes the hardware domains of nodes, and which programs that others start have one.
fn name_domains(graph: &mut Graph, installed: &Installed, places: &[usize]) {
    let system = &installed.system;
    let domain_of = |program: &str| {
        let domain = system.domain_of(installed.manifest(program)?)?;
        Some(if domain.each { format!("{}, each its own", domain.name) } else { domain.name.clone() })
    };
    for (instance, place) in system.instances.iter().zip(places) {
        graph.nodes[*place].domain = domain_of(&instance.program);
    }
    if system.domains.is_empty() {
        return;
    }
    graph
        .notes
        .push("Dashed: in a hardware domain, named below the program. Those of one name share one domain.".into());
    let mut by_domain: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for program in &system.installed {
        if let Some(domain) = domain_of(program) {
            by_domain.entry(domain).or_default().push(program);
        }
    }
    for (domain, programs) in by_domain {
        graph.notes.push(format!("In the hardware domain {domain}: {}.", programs.join(", ")));
    }
}

fn node(graph: &mut Graph, title: &str, detail: &str, manifest: Option<&Manifest>) -> usize {
    let category = manifest.map_or(String::new(), |manifest| manifest.category.to_string());
    let detail = if detail == title { category.clone() } else { detail.to_string() };
    graph.nodes.push(Node { title: title.to_string(), detail, category, domain: None });
    graph.nodes.len() - 1
}

/// Labels a node of several instances with their names.
fn name_groups(graph: &mut Graph, system: &SystemManifest, places: &[usize]) {
    for (place, node) in graph.nodes.iter_mut().enumerate() {
        let members: Vec<&Instance> =
            system.instances.iter().zip(places).filter(|(_, at)| **at == place).map(|(instance, _)| instance).collect();
        if let [first, .., last] = members.as_slice() {
            node.title = format!("{} … {}", first.name, last.name);
            node.detail = format!("{}, as many as needed", first.program);
        }
    }
}

fn connect_instance<'m>(
    graph: &mut Graph,
    system: &SystemManifest,
    find: &impl Fn(&str) -> Option<&'m Manifest>,
    (index, instance, manifest): (usize, &Instance, &Manifest),
    (places, root): (&[usize], usize),
) {
    let here = places[index];
    for (slot_number, slot) in manifest.endpoints.iter().enumerate() {
        let Some(contract) = manifest.contracts.get(usize::from(slot.contract)) else { continue };
        let peer = match (&slot.source, bound_path(instance, manifest, slot_number)) {
            (_, Some(path)) => match provider_of(system, find, path, &contract.name) {
                Some(Provider::Instance(provider)) => Some(places[provider]),
                Some(Provider::Root) => Some(root),
                None => None,
            },
            (Source::Parent, _) => Some(root),
            _ => None,
        };
        match (peer, slot.side) {
            (Some(peer), manifest_model::Side::Importer) => graph.connect(here, peer, &contract.name),
            (Some(peer), manifest_model::Side::Exporter) => graph.connect(peer, here, &contract.name),
            (None, _) => {}
        }
    }
    // Endpoints bound at run time: it requires an instance and imports what that one provides.
    for required in &instance.requires {
        let Some(other) = system.instances.iter().position(|candidate| candidate.name == *required) else { continue };
        let Some(provider) = find(&system.instances[other].program) else { continue };
        for provide in &provider.provides {
            let Some(contract) = provider.contracts.get(usize::from(provide.contract)) else { continue };
            let uses =
                manifest.contracts.iter().any(|used| used.name == contract.name && used.side != ContractSide::Export);
            if uses && places[other] != here {
                graph.connect(here, places[other], &contract.name);
            }
        }
    }
}

/// A channel as `channels --json` prints it.
#[derive(Debug, Deserialize)]
struct ListedChannel {
    contract: String,
    importer: u64,
    importer_name: Option<String>,
    importer_state: String,
    exporter: u64,
    exporter_name: Option<String>,
    exporter_state: String,
}

fn of_listing(text: &str) -> Outcome<Graph> {
    let channels: Vec<ListedChannel> = serde_json::from_str(text).map_err(|error| {
        Failure::new(format!("invalid list of channels: {error}"))
            .remedy("use the output of `channels --json` in a running system")
    })?;
    let mut graph = Graph { title: "running system".into(), ..Graph::default() };
    let mut places: BTreeMap<u64, usize> = BTreeMap::new();
    let mut in_messages = 0;
    for channel in &channels {
        let ends = [(channel.importer, &channel.importer_name), (channel.exporter, &channel.exporter_name)];
        if ends.iter().any(|(process, _)| *process == 0) {
            in_messages += 1;
            continue;
        }
        for (process, name) in ends {
            places.entry(process).or_insert_with(|| {
                let title = name.clone().unwrap_or_else(|| "unknown".into());
                let category = if process == 1 { "service" } else { "" }.to_string();
                graph.nodes.push(Node { title, detail: format!("process {process}"), category, domain: None });
                graph.nodes.len() - 1
            });
        }
        let state = if channel.importer_state == channel.exporter_state {
            channel.importer_state.clone()
        } else {
            format!("{} / {}", channel.importer_state, channel.exporter_state)
        };
        graph.connect(places[&channel.importer], places[&channel.exporter], &format!("{} {state}", channel.contract));
    }
    if in_messages > 0 {
        graph.notes.push(format!("{in_messages} more channels have an endpoint that is closed or in transit."));
    }
    Ok(graph)
}

fn listing(file: &Path) -> Outcome<String> {
    if file.as_os_str() != "-" {
        return crate::repository::read_text(file);
    }
    let mut text = String::new();
    std::io::stdin()
        .read_to_string(&mut text)
        .map_err(|error| Failure::new(format!("cannot read standard input: {error}")))?;
    Ok(text)
}

/// Starts the system and lists its channels.
fn running(repository: &Repository, system: &Path) -> Outcome<String> {
    let manifest = repository.system_manifest(system)?;
    let ready = systems::current(repository, &manifest, Platform::Hosted, UnsafeTests::Refused)?;
    let mut command = Command::new(&ready.machine);
    command.arg("--system").arg(&ready.image).arg("--disk").arg(run::demo_disk(repository)?);
    command.args(["--parameter", "commands=channels --json"]);
    let output = process::run_machine(command, LIMIT)?;
    match output.problem {
        None => Ok(output.text),
        Some(problem) => Err(Failure::new(format!("cannot list the system's channels: {problem}"))
            .details(output.text)
            .remedy("check that `cargo sing run -c channels` works")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTING: &str = r#"[
      {"channel": 1, "contract": "Disk", "importer": 3, "importer_name": "ext2-fs", "importer_state": "READY",
       "exporter": 2, "exporter_name": "file-disk", "exporter_state": "READY", "waiting_for_importer": 0, "waiting_for_exporter": 0},
      {"channel": 2, "contract": "Disk", "importer": 3, "importer_name": "ext2-fs", "importer_state": "READY",
       "exporter": 2, "exporter_name": "file-disk", "exporter_state": "READY", "waiting_for_importer": 0, "waiting_for_exporter": 0},
      {"channel": 3, "contract": "Pipe", "importer": 0, "importer_name": null, "importer_state": "READY",
       "exporter": 2, "exporter_name": "file-disk", "exporter_state": "ENDED", "waiting_for_importer": 0, "waiting_for_exporter": 0}
    ]"#;

    #[test]
    fn channels_between_the_same_two_are_one_line() {
        let graph = of_listing(LISTING).expect("a graph");
        assert_eq!(graph.nodes.len(), 2);
        assert_eq!(graph.edges, [Edge { importer: 0, exporter: 1, labels: vec!["Disk READY".into()] }]);
        assert_eq!(graph.notes.len(), 1);
        let drawn = svg::draw(&graph);
        assert!(drawn.starts_with("<svg") && drawn.contains(">file-disk<") && drawn.contains(">Disk READY<"));
    }

    #[test]
    fn nodes_in_hardware_domains_are_dashed_and_say_which() {
        let node = |title: &str, domain: Option<&str>| Node {
            title: title.into(),
            detail: "driver".into(),
            category: "driver".into(),
            domain: domain.map(String::from),
        };
        let nodes = vec![node("disk0", Some("drivers")), node("console", None)];
        let drawn = svg::draw(&Graph { nodes, ..Graph::default() });
        assert_eq!(drawn.matches("class=\"node driver apart\"").count(), 1, "{drawn}");
        assert!(drawn.contains(">driver; drivers<") && drawn.contains(">driver<"), "{drawn}");
    }

    #[test]
    fn something_else_is_refused_in_a_sentence() {
        let failure = of_listing("no such command: channels").expect_err("not a list").to_string();
        assert!(failure.contains("invalid list of channels") && failure.contains("channels --json"), "{failure}");
    }
}
