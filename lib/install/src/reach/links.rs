//! The least set of channels that can come about: who may come to be importer and who exporter of which contract.
//!
//! It starts from what rules and manifests give and grows by what contracts let endpoints be sent over channels
//! that are in it already, until nothing new comes. It holds every channel that can come about, and may hold some
//! that never do: what is not in it is out of reach. Trusted are the service of the namespace (the program that
//! provides `/`), which hands on endpoints as the rules say, and those who may register names there, which start
//! the programs that their parameters name. Deliberately not here: what is said over the channels.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use abi::{Automaton, Direction, name_tag};
use package::{Manifest, Side, Source, bound_path, pattern};

use crate::check::manifest::handles;
use crate::installed::{Installed, named_programs};
use crate::reach::patterns::{Who, paths_meet};

/// What the root program registers for itself; it has no parent to whom its manifest could say so.
const OF_ROOT: &str = "/service/manager**";
/// Contracts with which the service of the namespace and providers talk about clients.
const PLUMBING: [&str; 2] = ["Directory", "ServiceProvider"];

/// A channel that can come about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Program that has the importing end, by its index in [`Installed::programs`].
    pub importer: usize,
    /// The contract, by its index in [`Links::contracts`].
    pub contract: usize,
    /// Program that has the exporting end.
    pub exporter: usize,
    /// How it comes about; the way that was found first.
    pub how: How,
}

/// How a channel comes about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum How {
    /// The importer binds the path, which a rule lets it.
    Bound {
        /// A path, or a pattern of them where names are registered while the system runs.
        path: String,
    },
    /// The importer opens something in a folder that it has.
    Opened {
        /// The link of the folder.
        folder: usize,
    },
    /// One of the two starts the other and gives it an endpoint.
    Parent {
        /// The program that is started.
        child: usize,
        /// The endpoint's name in that one's manifest.
        slot: String,
    },
    /// An endpoint was sent over another channel.
    Passed {
        /// The link over which it was sent.
        over: usize,
        /// The message that it was sent with.
        message: String,
        /// Who sent it.
        sender: usize,
        /// The link that was the sender's, where it passes on what it has.
        from: Option<usize>,
    },
}

/// All links.
#[derive(Clone, Debug, Default)]
pub struct Links {
    /// Names of contracts.
    pub contracts: Vec<String>,
    /// The links; each was found after those that it comes from.
    pub all: Vec<Link>,
    known: BTreeSet<(usize, usize, usize)>,
    /// By program and contract: links of which it has the importing end, and those of the exporting end.
    importing: BTreeMap<(usize, usize), Vec<usize>>,
    exporting: BTreeMap<(usize, usize), Vec<usize>>,
}

impl Links {
    fn add(&mut self, importer: usize, contract: usize, exporter: usize, how: How) -> bool {
        if !self.known.insert((importer, contract, exporter)) {
            return false;
        }
        let index = self.all.len();
        self.importing.entry((importer, contract)).or_default().push(index);
        self.exporting.entry((exporter, contract)).or_default().push(index);
        self.all.push(Link { importer, contract, exporter, how });
        true
    }

    fn held(&self, program: usize, contract: usize, side: Side) -> Vec<usize> {
        let map = if side == Side::Importer { &self.importing } else { &self.exporting };
        map.get(&(program, contract)).cloned().unwrap_or_default()
    }

    /// Links of which the program has the importing end.
    pub fn of_importer(&self, program: usize) -> impl Iterator<Item = (usize, &Link)> {
        self.all.iter().enumerate().filter(move |(_, link)| link.importer == program)
    }
}

/// A path of the namespace, and who serves it under which contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// A path, or a pattern of them.
    pub path: String,
    /// Index of the contract; `None`: whatever the program exports.
    pub contract: Option<usize>,
    /// The program that serves it.
    pub program: usize,
}

/// What an endpoint in a message is of.
struct Sent {
    message: String,
    direction: Direction,
    /// `None`: of any contract.
    contract: Option<usize>,
    side: Side,
}

/// What is known of a program.
struct Node<'a> {
    manifest: &'a Manifest,
    link: String,
    /// By contract: the ends that it handles.
    imports: BTreeSet<usize>,
    exports: BTreeSet<usize>,
    /// Patterns of the paths that rules let it bind, in whatever way it was invoked.
    rules: Vec<&'a str>,
    /// Whether it was looked at as a client of the namespace.
    is_bound: bool,
    /// Whether it can pass on endpoints of contracts that it does not list, with arguments of any contract.
    carries: bool,
}

/// Finds all links of a system.
pub struct Search<'a> {
    installed: &'a Installed,
    nodes: Vec<Node<'a>>,
    /// By contract: the endpoints that its messages carry.
    carried: Vec<Vec<Sent>>,
    services: Vec<Service>,
    links: Links,
}

/// The links of a system, and what is served in its namespace.
pub fn search(installed: &Installed) -> (Links, Vec<Service>) {
    let mut search = Search::new(installed);
    search.find_services();
    search.seed();
    while search.grow() {}
    (search.links, search.services)
}

impl<'a> Search<'a> {
    fn new(installed: &'a Installed) -> Search<'a> {
        let mut links = Links::default();
        let mut automata: Vec<Option<Automaton>> = Vec::new();
        let mut nodes = Vec::new();
        let binds = installed.system.binds.iter();
        let binds: Vec<(Who, &str)> = binds.map(|bind| (Who::read(&bind.who), bind.path.as_str())).collect();
        for program in &installed.programs {
            let manifest = &program.manifest;
            let (mut imports, mut exports) = (BTreeSet::new(), BTreeSet::new());
            for used in &manifest.contracts {
                let known = links.contracts.iter().position(|name| *name == used.name);
                let index = known.unwrap_or_else(|| {
                    links.contracts.push(used.name.clone());
                    automata.push(Automaton::decode(&used.automaton).ok());
                    links.contracts.len() - 1
                });
                if handles(used.side, Side::Importer) {
                    imports.insert(index);
                }
                if handles(used.side, Side::Exporter) {
                    exports.insert(index);
                }
            }
            let link = manifest.principal();
            let rules = binds.iter().filter(|(who, _)| who.may_mean(&link)).map(|(_, path)| *path).collect();
            nodes.push(Node { manifest, link, imports, exports, rules, is_bound: false, carries: false });
        }
        let tags: Vec<u64> = links.contracts.iter().map(|name| name_tag(name)).collect();
        let carried = automata.iter().map(|automaton| automaton.as_ref().map_or(Vec::new(), |one| carried(one, &tags)));
        let carried: Vec<Vec<Sent>> = carried.collect();
        let sends_any = |contract: usize, direction: Direction| {
            let is_plumbing = PLUMBING.contains(&links.contracts[contract].as_str());
            !is_plumbing && carried[contract].iter().any(|sent| sent.contract.is_none() && sent.direction == direction)
        };
        for node in &mut nodes {
            node.carries = node.imports.iter().any(|&contract| sends_any(contract, Direction::ToExporter))
                || node.exports.iter().any(|&contract| sends_any(contract, Direction::ToImporter));
        }
        Search { installed, nodes, carried, services: Vec::new(), links }
    }

    fn place(&self, program: &str) -> Option<usize> {
        self.nodes.iter().position(|node| node.manifest.name == program)
    }

    fn contract(&self, name: &str) -> Option<usize> {
        self.links.contracts.iter().position(|known| known == name)
    }

    /// Whoever provides `/`: the service of the namespace.
    fn namespace(&self) -> Option<usize> {
        self.services.iter().find(|service| service.path == "/").map(|service| service.program)
    }

    fn find_services(&mut self) {
        let installed = self.installed;
        let mut found = Vec::new();
        let root = installed.manifest(&installed.system.root);
        let root = root.into_iter().flat_map(|root| root.provides.iter().map(move |one| (root, one, &one.path)));
        let instances = installed.instances().flat_map(|(instance, manifest)| {
            manifest.provides.iter().zip(&instance.provides).map(move |(provide, path)| (manifest, provide, path))
        });
        for (manifest, provide, path) in root.chain(instances) {
            let (Some(program), Some(contract)) =
                (self.place(&manifest.name), manifest.contracts.get(usize::from(provide.contract)))
            else {
                continue;
            };
            found.push(Service { path: path.clone(), contract: self.contract(&contract.name), program });
        }
        if let Some(root) = self.place(&installed.system.root) {
            let contracts = self.nodes[root].exports.iter().copied();
            let own = contracts.filter(|&contract| !PLUMBING.contains(&self.links.contracts[contract].as_str()));
            found.extend(own.map(|contract| Service { path: OF_ROOT.into(), contract: Some(contract), program: root }));
        }
        self.services = found;
        self.find_registered();
    }

    /// Names that programs register while the system runs: `WHO PATH`, as the service of the namespace is told.
    fn find_registered(&mut self) {
        let Some(namespace) = self.namespace() else { return };
        let Some(node) = self.nodes.get(namespace) else { return };
        let texts = crate::installed::parameter_texts(self.installed, node.manifest);
        let mut found = Vec::new();
        for (_, text) in texts.into_iter().filter(|(parameter, _)| *parameter == "register") {
            let Some((who, path)) = text.rsplit_once(' ') else { continue };
            let who = Who::read(who.trim());
            for (index, node) in self.nodes.iter().enumerate().filter(|(_, node)| who.may_mean(&node.link)) {
                let started = named_programs(self.installed, node.manifest);
                let started = started.iter().filter_map(|(_, name)| self.place(name));
                let serving = started.chain([index]);
                found.extend(serving.map(|program| Service { path: path.to_string(), contract: None, program }));
            }
        }
        self.services.extend(found);
    }

    fn seed(&mut self) {
        let directory = self.contract("Directory");
        let namespace = self.namespace();
        for index in 0..self.nodes.len() {
            self.seed_slots(index);
        }
        // Whoever has a folder of the namespace asks it for all others.
        if let (Some(directory), Some(namespace)) = (directory, namespace) {
            let clients: Vec<usize> = self.links.held(namespace, directory, Side::Exporter);
            let clients: Vec<usize> = clients.iter().map(|&link| self.links.all[link].importer).collect();
            for client in clients {
                self.bind(client);
            }
        }
    }

    /// What a program is given at its start.
    fn seed_slots(&mut self, index: usize) {
        let manifest = self.nodes[index].manifest;
        for (number, slot) in manifest.endpoints.iter().enumerate() {
            let Some(contract) = manifest.contracts.get(usize::from(slot.contract)) else { continue };
            let Some(contract) = self.contract(&contract.name) else { continue };
            match &slot.source {
                Source::Path(path) => {
                    let instances =
                        self.installed.system.instances.iter().filter(|instance| instance.program == manifest.name);
                    let mut paths: Vec<&str> =
                        instances.filter_map(|instance| bound_path(instance, manifest, number)).collect();
                    paths.push(path);
                    for path in paths {
                        self.bind_path(index, contract, path);
                    }
                }
                Source::Parent => self.seed_parents(index, contract, slot.side, &slot.name),
                // Pipes, which carry bytes alone: both ends belong to whoever starts it, or to its siblings.
                Source::StandardInput | Source::StandardOutput => {
                    self.seed_parents(index, contract, slot.side, &slot.name);
                }
            }
        }
    }

    /// Whoever can start programs and handles the other end may start this one.
    fn seed_parents(&mut self, child: usize, contract: usize, side: Side, slot: &str) {
        let root = self.place(&self.installed.system.root);
        for parent in 0..self.nodes.len() {
            let node = &self.nodes[parent];
            let ends = if side == Side::Importer { &node.exports } else { &node.imports };
            let starts = node.manifest.quota.children > 0 || Some(parent) == root;
            if !starts || !ends.contains(&contract) || parent == child {
                continue;
            }
            let (importer, exporter) = if side == Side::Importer { (child, parent) } else { (parent, child) };
            self.links.add(importer, contract, exporter, How::Parent { child, slot: slot.into() });
        }
    }

    /// Everything of the namespace that the rules let a program bind and that it can talk to.
    fn bind(&mut self, program: usize) {
        if core::mem::replace(&mut self.nodes[program].is_bound, true) {
            return;
        }
        let rules = self.nodes[program].rules.clone();
        let directory = self.contract("Directory");
        for service in self.services.clone() {
            let is_folder = service.path != "/" && (service.contract.is_none() || service.contract == directory);
            // What lies below a folder is its provider's to open.
            let below = format!("{}/**", service.path);
            let met = |rule: &str| paths_meet(rule, &service.path) || (is_folder && paths_meet(rule, &below));
            if rules.iter().any(|rule| met(rule)) {
                self.link_service(program, &service);
            }
        }
    }

    /// One path that an endpoint is bound to.
    fn bind_path(&mut self, program: usize, contract: usize, path: &str) {
        if !self.nodes[program].rules.iter().any(|rule| pattern::matches(rule, path)) {
            return;
        }
        for service in self.services.clone() {
            let above =
                service.path == "/" || path.strip_prefix(&service.path).is_some_and(|rest| rest.starts_with('/'));
            let is_it = paths_meet(&service.path, path);
            let talks = service.contract.is_none_or(|talked| talked == contract);
            if (is_it || above) && talks && self.nodes[service.program].exports.contains(&contract) {
                self.links.add(program, contract, service.program, How::Bound { path: path.into() });
            }
        }
    }

    fn link_service(&mut self, program: usize, service: &Service) {
        let contracts: Vec<usize> = match service.contract {
            Some(contract) => Vec::from([contract]),
            // The service of the namespace hands over clients of whatever contract its provider serves.
            None => {
                let exports = self.nodes[service.program].exports.iter().copied();
                exports.filter(|&contract| self.links.contracts[contract] != "ServiceProvider").collect()
            }
        };
        for contract in contracts {
            if self.nodes[program].imports.contains(&contract) {
                self.links.add(program, contract, service.program, How::Bound { path: service.path.clone() });
            }
        }
    }

    /// Follows every link once more; says whether something new was found.
    fn grow(&mut self) -> bool {
        let before = self.links.all.len();
        let mut at = 0;
        while at < self.links.all.len() {
            let link = self.links.all[at].clone();
            self.follow(at, &link);
            at += 1;
        }
        self.links.all.len() > before
    }

    fn follow(&mut self, at: usize, link: &Link) {
        let name = self.links.contracts[link.contract].clone();
        let mediated = PLUMBING.contains(&name.as_str());
        if name == "Directory" {
            if Some(link.exporter) == self.namespace() {
                self.bind(link.importer);
            } else {
                self.open(at, link);
            }
        }
        for number in 0..self.carried[link.contract].len() {
            let sent = &self.carried[link.contract][number];
            // An endpoint of any contract that these two carry is a client on its way to what the rules let it bind.
            if sent.contract.is_none() && mediated {
                continue;
            }
            let contracts: Vec<usize> = match sent.contract {
                Some(contract) => Vec::from([contract]),
                None => (0..self.links.contracts.len()).collect(),
            };
            let (message, direction, side) = (sent.message.clone(), sent.direction, sent.side);
            let (sender, receiver) = match direction {
                Direction::ToImporter => (link.exporter, link.importer),
                Direction::ToExporter => (link.importer, link.exporter),
            };
            let is_any = sent.contract.is_none();
            for contract in contracts {
                self.pass((at, &message), (sender, receiver), (contract, is_any), side);
            }
        }
    }

    /// What can be opened in a folder of a file system, or of whoever else serves folders.
    fn open(&mut self, at: usize, link: &Link) {
        let both: Vec<usize> =
            self.nodes[link.importer].imports.intersection(&self.nodes[link.exporter].exports).copied().collect();
        for contract in both {
            self.links.add(link.importer, contract, link.exporter, How::Opened { folder: at });
        }
    }

    /// The receiver gets an end of a channel: of one that the sender made, or of one that it has.
    fn pass(
        &mut self,
        (over, message): (usize, &str),
        (sender, receiver): (usize, usize),
        (contract, is_any): (usize, bool),
        side: Side,
    ) {
        let ends = |node: &Node<'_>, side| match side {
            Side::Importer => node.imports.contains(&contract),
            Side::Exporter => node.exports.contains(&contract),
        };
        let carries = is_any && self.nodes[receiver].carries;
        if !ends(&self.nodes[receiver], side) && !carries {
            return;
        }
        let other = if side == Side::Importer { Side::Exporter } else { Side::Importer };
        let mut peers: Vec<(usize, Option<usize>)> = Vec::new();
        if ends(&self.nodes[sender], other) {
            peers.push((sender, None));
        }
        for held in self.links.held(sender, contract, side) {
            let link = &self.links.all[held];
            peers.push((if side == Side::Importer { link.exporter } else { link.importer }, Some(held)));
        }
        for (peer, from) in peers.into_iter().filter(|(peer, _)| *peer != receiver) {
            let (importer, exporter) = if side == Side::Importer { (receiver, peer) } else { (peer, receiver) };
            let how = How::Passed { over, message: message.to_string(), sender, from };
            self.links.add(importer, contract, exporter, how);
        }
    }
}

/// The endpoints that messages of a contract carry.
fn carried(automaton: &Automaton, tags: &[u64]) -> Vec<Sent> {
    let mut out = Vec::new();
    for message in &automaton.messages {
        for endpoint in &message.endpoints {
            let contract = tags.iter().position(|&tag| tag == endpoint.contract);
            if endpoint.contract != 0 && contract.is_none() {
                // Nobody lists the contract, so nobody can use its endpoint.
                continue;
            }
            let side = if endpoint.importer { Side::Importer } else { Side::Exporter };
            out.push(Sent { message: message.name.clone(), direction: message.direction, contract, side });
        }
    }
    out
}

/// The contracts whose endpoints come of one, over its messages to the importer and theirs; itself first.
pub fn family(installed: &Installed, links: &Links, contract: usize) -> Vec<usize> {
    let tags: Vec<u64> = links.contracts.iter().map(|name| name_tag(name)).collect();
    let mut found = Vec::from([contract]);
    let mut at = 0;
    while let Some(&next) = found.get(at) {
        at += 1;
        let mut uses = installed.programs.iter().flat_map(|program| &program.manifest.contracts);
        let used = uses.find(|used| links.contracts.get(next) == Some(&used.name));
        let Some(automaton) = used.and_then(|used| Automaton::decode(&used.automaton).ok()) else { continue };
        for sent in carried(&automaton, &tags) {
            let Some(contract) = sent.contract else { continue };
            let comes = sent.direction == Direction::ToImporter && sent.side == Side::Importer;
            if comes && !found.contains(&contract) {
                found.push(contract);
            }
        }
    }
    found
}
