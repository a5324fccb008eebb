//! What a program can reach: the closure of the endpoints that it can obtain.
//!
//! Key types: [`Map`] (all channels of a system that can come about), [`Reach`] (one program's part of it,
//! human-readable), [`Rule`] (the ways in which endpoints move). Every program is assumed to be hostile and to collude
//! with all others, except the root, the namespace and, for registering names, the permitted programs. Deliberately not
//! here: services that a program performs for others with its endpoints. A client of a service gets that service's
//! answers; it has none of the service's endpoints.

mod chain;
mod conversations;
mod flows;
mod grid;
mod guard;
mod patterns;
mod protocols;
mod rules;
mod world;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use manifest_model::{Code as ProgramCode, Permission};

pub use conversations::{Conversation, Conversations, conversations};
pub use patterns::{Who, paths_meet};
pub use rules::Rule;

use crate::installed::Installed;
use crate::reach::chain::{Chain, Telling};
use crate::reach::flows::Flows;
use crate::reach::guard::{Found, Guard};
use crate::reach::world::{Service, World};

/// Contracts that give access to common kinds of resources.
const GROUPS: &[(&str, &[&str])] = &[
    ("the network", &["Tcp", "Udp", "Dns", "NicDevice", "IpConfiguration"]),
    ("files", &["File", "FileSystem", "VolumeManager"]),
    ("disks", &["Disk", "PartitionManager"]),
    ("the console", &["Console"]),
    ("the control of services", &["ServiceManager"]),
];

/// All channels of a system that can come about.
#[derive(Clone, Debug)]
pub struct Map<'a> {
    installed: &'a Installed,
    world: World,
    flows: Flows,
}

/// Reach of a program, human-readable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach {
    /// The program as a principal, `program.publisher`.
    pub program: String,
    /// Services of which it can be a client, and how.
    pub reached: Vec<Reached>,
    /// Programs that can be its clients.
    pub clients: Vec<String>,
    /// Devices that it may open.
    pub devices: Vec<String>,
    /// Its permissions.
    pub permissions: Vec<Permission>,
    /// Maximum child programs at a time; it can make each of them do whatever that one may.
    pub children: u32,
    /// Whether the shell runs its commands, and so reaches services for it.
    pub is_script: bool,
    /// Common kinds of resources, and whether they are in reach.
    pub groups: Vec<Group>,
}

/// A reachable service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reached {
    /// Path, or pattern of paths, under which it is bound; `None` if the endpoint is obtained otherwise.
    pub path: Option<String>,
    /// The contract.
    pub contract: String,
    /// The program at the other end.
    pub provider: String,
    /// Steps by which it comes about, in order.
    pub chain: Vec<String>,
    /// Other programs that take part in this.
    pub helpers: Vec<String>,
}

/// Whether a common kind of resource is in reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its common name.
    pub name: &'static str,
    /// Its paths in the system.
    pub places: Vec<String>,
    /// Steps by which the program reaches it; `None` if it does not.
    pub chain: Option<Vec<String>>,
}

impl<'a> Map<'a> {
    /// The channels of a system.
    pub fn of(installed: &'a Installed) -> Map<'a> {
        Map::by(installed, Rule::ALL)
    }

    /// Returns the channels that can come about under these rules alone. Tests use it to show that each rule is needed.
    pub fn by(installed: &'a Installed, rules: &[Rule]) -> Map<'a> {
        let mut world = World::of(installed);
        let flows = Flows::of(&mut world, rules);
        Map { installed, world, flows }
    }

    /// Returns whether processes of a program can have the importing end of a channel of the contract whose exporting
    /// end processes of the other have. [`Started`] selects the processes started by the root, or all others.
    pub fn has_channel(&self, importer: (&str, Started), contract: &str, exporter: (&str, Started)) -> bool {
        let holder = |(name, started): (&str, Started)| {
            let program = self.place(name)?;
            self.world.holder(program, started == Started::ByRoot)
        };
        let (Some(contract), Some(importer), Some(exporter)) =
            (self.world.contract(contract), holder(importer), holder(exporter))
        else {
            return false;
        };
        self.flows.links[contract].has(importer, exporter)
    }

    /// Returns whether programs register a path at run time.
    pub(crate) fn is_registered(&self, path: &str) -> bool {
        let mut registered = self.world.services.iter().filter(|service| service.contract.is_none());
        registered.any(|service| paths_meet(&service.path, path))
    }

    /// Returns the reach of a program; `None` if there is no such program.
    pub fn reach(&self, name: &str) -> Option<Reach> {
        let index = self.place(name)?;
        let manifest = &self.installed.programs[index].manifest;
        let mut clients: Vec<String> = self.clients(index).map(|program| self.principal(program)).collect();
        clients.sort();
        clients.dedup();
        Some(Reach {
            program: manifest.principal(),
            reached: self.reached(index),
            clients,
            devices: manifest.devices.iter().map(|device| device.name.clone()).collect(),
            permissions: manifest.permissions.clone(),
            children: manifest.quota.children,
            is_script: matches!(manifest.code, ProgramCode::Script { .. }),
            groups: GROUPS.iter().map(|(name, contracts)| self.group(index, name, contracts)).collect(),
        })
    }

    /// Returns the steps by which a program reaches a service at one of the paths accepted by `is_meant`: by itself, or
    /// through a program that it can start.
    pub fn way(&self, program: usize, is_meant: impl Fn(&str) -> bool) -> Option<Vec<String>> {
        let services: Vec<&Service> = self.world.services.iter().filter(|service| is_meant(&service.path)).collect();
        self.way_to(program, &services)
    }

    fn place(&self, name: &str) -> Option<usize> {
        self.installed.programs.iter().position(|program| program.manifest.name == name)
    }

    fn principal(&self, program: usize) -> String {
        self.installed.programs.get(program).map_or_else(String::new, |program| program.manifest.principal())
    }

    fn name(&self, program: usize) -> &str {
        self.installed.programs.get(program).map_or("", |program| program.manifest.name.as_str())
    }

    /// Contracts that a program exports according to its manifest.
    fn exported(&self, program: usize) -> Vec<usize> {
        let mut holders = self.world.holders_of(program);
        holders.next().map(|holder| self.world.holders[holder].exports.clone()).unwrap_or_default()
    }

    /// Programs that can have the importing end of a channel to a declared exporter of its contract.
    fn clients(&self, program: usize) -> impl Iterator<Item = usize> + '_ {
        let exported = self.exported(program);
        self.world.holders_of(program).flat_map(move |exporter| {
            let contracts = exported.clone().into_iter();
            let importers = contracts.flat_map(move |contract| self.flows.links[contract].column(exporter));
            importers.map(|importer| self.world.holders[importer].program).filter(move |&other| other != program)
        })
    }

    fn reached(&self, program: usize) -> Vec<Reached> {
        let mut reached: Vec<Reached> = Vec::new();
        for exporter in 0..self.world.holders.len() {
            let provider = self.world.holders[exporter].program;
            if provider == program {
                continue;
            }
            for contract in self.exported(provider) {
                let links = &self.flows.links[contract];
                let Some(importer) = self.world.holders_of(program).find(|&holder| links.has(holder, exporter)) else {
                    continue;
                };
                let found = self.told(program, Found { contract, importer, exporter });
                let is_same =
                    |other: &Reached| (&other.contract, &other.provider) == (&found.contract, &found.provider);
                match reached.iter_mut().find(|other| is_same(other)) {
                    // Processes of the same program: prefer the one with a known path.
                    Some(other) if other.path.is_none() && found.path.is_some() => *other = found,
                    Some(_) => {}
                    None => reached.push(found),
                }
            }
        }
        reached.sort_by(|one, other| (&one.path, &one.contract).cmp(&(&other.path, &other.contract)));
        reached
    }

    fn told(&self, program: usize, found: Found) -> Reached {
        let Chain { steps, programs } = self.chain(found);
        let provider = self.world.holders[found.exporter].program;
        let helpers = programs.into_iter().filter(|&other| other != program && other != provider);
        let namespace = self.world.namespace.zip(self.world.directory);
        let has_names =
            namespace.is_some_and(|(namespace, directory)| self.flows.links[directory].has(found.importer, namespace));
        let is_its = |service: &&Service| {
            service.holder == found.exporter && service.contract.is_none_or(|contract| contract == found.contract)
        };
        let mut services = self.world.services.iter().filter(is_its);
        let bound = services.find(|service| has_names && self.world.may_bind(found.importer, service));
        let given = self.world.seeds[found.contract].iter().find_map(|seed| match &seed.origin {
            world::Origin::BoundByRoot(path) if (seed.importer, seed.exporter) == (found.importer, found.exporter) => {
                Some(path)
            }
            _ => None,
        });
        Reached {
            path: bound.map(|service| &service.path).or(given).cloned(),
            contract: self.world.protocols[found.contract].name.to_string(),
            provider: self.principal(provider),
            chain: steps,
            helpers: helpers.map(|other| self.name(other).to_string()).collect(),
        }
    }

    fn chain(&self, found: Found) -> Chain {
        let ends = (found.importer, found.exporter);
        Telling::chain(self.installed, &self.world, &self.flows, found.contract, ends)
    }

    fn group(&self, program: usize, name: &'static str, contracts: &[&str]) -> Group {
        let mut members: Vec<usize> = contracts.iter().filter_map(|name| self.world.contract(name)).collect();
        members.extend(guard::given(&self.world, &members));
        let is_member = |service: &&Service| {
            let exports = || self.exported(service.program).iter().any(|contract| members.contains(contract));
            service.path != "/" && service.contract.map_or_else(exports, |contract| members.contains(&contract))
        };
        let services: Vec<&Service> = self.world.services.iter().filter(is_member).collect();
        let mut places: Vec<String> = services.iter().map(|service| service.path.clone()).collect();
        places.sort();
        places.dedup();
        Group { name, places, chain: self.way_to_members(program, &services, &members) }
    }

    /// As `way_to` for services of one group: their channels of other contracts do not count, and channels to other
    /// exporters of a contract of it do.
    fn way_to_members(&self, program: usize, services: &[&Service], members: &[usize]) -> Option<Vec<String>> {
        self.way_by(program, |program| {
            let guards = services.iter().filter_map(|service| {
                let found = self.guard(service).found(program)?;
                members.contains(&found.contract).then_some(found)
            });
            guards.chain(self.to_exporters(program, members)).next()
        })
    }

    fn to_exporters(&self, program: usize, members: &[usize]) -> Option<Found> {
        let exporters = 0..self.world.holders.len();
        exporters.filter(|&exporter| self.world.holders[exporter].program != program).find_map(|exporter| {
            let exported = self.exported(self.world.holders[exporter].program);
            members.iter().filter(|contract| exported.contains(contract)).find_map(|&contract| {
                let importer = self
                    .world
                    .holders_of(program)
                    .find(|&importer| self.flows.links[contract].has(importer, exporter))?;
                Some(Found { contract, importer, exporter })
            })
        })
    }

    fn guard<'m>(&'m self, service: &'m Service) -> Guard<'m> {
        Guard::of(&self.world, &self.flows, service)
    }

    fn way_to(&self, program: usize, services: &[&Service]) -> Option<Vec<String>> {
        let guards: Vec<Guard<'_>> = services.iter().map(|service| self.guard(service)).collect();
        self.way_by(program, |program| guards.iter().find_map(|guard| guard.found(program)))
    }

    /// Returns the steps to a service found by a program itself, or by one that it can start.
    fn way_by(&self, program: usize, find: impl Fn(usize) -> Option<Found>) -> Option<Vec<String>> {
        if let Some(found) = find(program) {
            return Some(self.chain(found).steps);
        }
        let manifest = &self.installed.programs.get(program)?.manifest;
        let is_script = matches!(manifest.code, ProgramCode::Script { .. });
        if manifest.quota.children == 0 && !is_script {
            return None;
        }
        let mut others = (0..self.installed.programs.len()).filter(|&other| other != program);
        let (other, found) = others.find_map(|other| Some((other, find(other)?)))?;
        let (name, other) = (&manifest.name, self.name(other));
        let start = match manifest.quota.children {
            _ if is_script => format!("`{name}` is a script, and the shell that runs it can start `{other}`"),
            most => format!("`{name}` can start programs (quota `children` {most}), such as `{other}`"),
        };
        let mut steps = Vec::from([start]);
        steps.extend(self.chain(found).steps);
        Some(steps)
    }
}

/// Parent of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Started {
    /// The root or the kernel.
    ByRoot,
    /// Any other program.
    ByOthers,
}

impl Reach {
    /// Returns the paths that it can bind, without duplicates.
    pub fn paths(&self) -> Vec<&str> {
        let mut paths: Vec<&str> = self.reached.iter().filter_map(|reached| reached.path.as_deref()).collect();
        paths.dedup();
        paths
    }

    /// The group of this name.
    pub fn group(&self, name: &str) -> Option<&Group> {
        self.groups.iter().find(|group| group.name == name)
    }

    /// Returns what is in this reach and not in another, a phrase each: endpoints, devices, permissions, programs.
    pub fn beyond(&self, before: &Reach) -> Vec<String> {
        let mut more = Vec::new();
        for reached in &self.reached {
            let had = |other: &Reached| other.contract == reached.contract && other.provider == reached.provider;
            if !before.reached.iter().any(had) {
                let path = reached.path.as_deref().map_or(String::new(), |path| format!(" at {path}"));
                more.push(format!("{} of {}{path}", reached.contract, reached.provider));
            }
        }
        let devices = self.devices.iter().filter(|device| !before.devices.contains(device));
        more.extend(devices.map(|device| format!("the device `{device}`")));
        let permissions = self.permissions.iter().filter(|permission| !before.permissions.contains(permission));
        more.extend(permissions.map(|permission| format!("the permission `{permission}`")));
        if self.children > 0 && before.children == 0 {
            more.push("the start of other programs".into());
        }
        more
    }
}

/// Describes the endpoints of one contract that a program gets through others, and their providers.
fn by_others(same: &[&Reached]) -> String {
    let providers: Vec<&str> = same.iter().map(|reached| reached.provider.as_str()).collect();
    let mut helpers: Vec<&str> = same.iter().flat_map(|reached| &reached.helpers).map(String::as_str).collect();
    helpers.sort_unstable();
    helpers.dedup();
    let contract = same.first().map_or("", |reached| reached.contract.as_str());
    let mut line = format!("{contract} of {}", providers.join(", "));
    if !helpers.is_empty() {
        line.push_str(&format!(", through {}", helpers.join(", ")));
    }
    line
}

impl fmt::Display for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown: Vec<String> = Vec::new();
        let (bound, given): (Vec<&Reached>, Vec<&Reached>) =
            self.reached.iter().partition(|reached| reached.path.is_some());
        for reached in bound {
            let path = reached.path.as_deref().unwrap_or_default();
            shown.push(format!("{path} ({} of {})", reached.contract, reached.provider));
        }
        for same in given.chunk_by(|one, other| one.contract == other.contract) {
            shown.push(by_others(same));
        }
        shown.extend(self.devices.iter().map(|device| format!("the device `{device}`")));
        shown.extend(self.permissions.iter().map(|permission| format!("what the permission `{permission}` gives")));
        if self.children > 0 {
            shown.push(format!("every other program, by starting it ({} at a time)", self.children));
        }
        if self.is_script {
            shown.push("what the shell reaches that runs it".into());
        }
        if shown.is_empty() {
            shown.push("nothing".into());
        }
        for line in shown {
            writeln!(f, "can reach: {line}")?;
        }
        for group in &self.groups {
            let places =
                if group.places.is_empty() { "nowhere in this system".into() } else { group.places.join(", ") };
            match &group.chain {
                Some(chain) => writeln!(f, "can reach: {}: {}", group.name, chain.join("; "))?,
                None if group.places.is_empty() => writeln!(f, "cannot reach: {} ({places})", group.name)?,
                None => writeln!(f, "cannot reach: {} (no way to {places})", group.name)?,
            }
        }
        if !self.clients.is_empty() {
            writeln!(f, "can be reached by: {}", self.clients.join(", "))?;
        }
        Ok(())
    }
}
