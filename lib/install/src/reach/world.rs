//! Holders of endpoints in a system, and the services in its namespace.
//!
//! Key types: [`Holder`] (processes of a program that start in one way), [`Service`] (a path and its provider),
//! [`World`] (all of them). A program's processes are distinguished by their parent: those started by the root get
//! their endpoints from the system manifest, and serve the system's paths; all others get theirs from some parent.
//! Deliberately not here: how endpoints move between holders.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use boot_order::bound_path;
use manifest_model::{Code as ProgramCode, Manifest, Side, Source};

use crate::check::manifest::handles;
use crate::installed::{Installed, named_programs, parameter_texts};
use crate::reach::patterns::{Who, paths_meet};
use crate::reach::protocols::Protocol;

/// Paths that the root program registers for itself; it has no parent to read them from its manifest.
const OF_ROOT: &str = "/service/manager**";
/// Path to which the root binds the standard output of its children.
const CONSOLE: &str = "/dev/console";
/// The contract of folders.
const DIRECTORY: &str = "Directory";
/// The contract over which the namespace hands clients to a provider.
const PROVIDER: &str = "ServiceProvider";

/// Processes of a program that start in the same way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The program, by its index in [`Installed::programs`].
    pub program: usize,
    /// Whether the root starts them, or the kernel.
    pub is_boot: bool,
    /// Whether it does exactly what the system manifest specifies: the root, and the namespace.
    pub is_trusted: bool,
    /// Whether it can start programs.
    pub starts: bool,
    /// Endpoints that its parent gives it, by the manifest.
    pub slots: Vec<Slot>,
    /// Contracts of which it can create channels.
    pub creates: Vec<usize>,
    /// Contracts that its manifest exports, except that of providers: purely declarative, as the kernel does not
    /// enforce it.
    pub exports: Vec<usize>,
    /// Patterns of the paths that rules let it bind, whatever its invocation.
    pub rules: Vec<String>,
}

/// An endpoint given to a program at its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Its name.
    pub name: String,
    /// Its contract.
    pub contract: usize,
    /// Side of the endpoint.
    pub side: Side,
    /// Required state.
    pub state: usize,
}

/// A path of the namespace, its provider and its contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// A path, or a pattern of them.
    pub path: String,
    /// Index of the contract; `None`: all that the program exports.
    pub contract: Option<usize>,
    /// Program that serves it.
    pub program: usize,
    /// Processes that serve it.
    pub holder: usize,
}

/// A service that a holder may bind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Provider of the service.
    pub provider: usize,
    /// Its contracts.
    pub contracts: Vec<usize>,
}

/// Origin of a channel whose ends move from there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The holder of both ends creates it.
    Created,
    /// The root binds an endpoint of an instance to this path.
    BoundByRoot(String),
    /// The root creates it and gives one end to an instance, as this endpoint.
    GivenByRoot(String),
}

/// A channel in its initial state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seed {
    /// Holder of the importing end.
    pub importer: usize,
    /// Holder of the exporting end.
    pub exporter: usize,
    /// Origin of the channel.
    pub origin: Origin,
}

/// Holders of a system, and the services in its namespace.
#[derive(Clone, Debug)]
pub struct World {
    /// The contracts.
    pub protocols: Vec<Protocol>,
    /// Holders of endpoints.
    pub holders: Vec<Holder>,
    /// Services.
    pub services: Vec<Service>,
    /// By contract: its channels in their initial state.
    pub seeds: Vec<Vec<Seed>>,
    /// Contract of folders, if any program lists it.
    pub directory: Option<usize>,
    /// Contract of providers, if any program lists it.
    pub provider: Option<usize>,
    /// Service of the namespace: the provider of `/`.
    pub namespace: Option<usize>,
    /// Holders that may register names at run time, with patterns of the paths.
    pub registrars: Vec<(usize, String)>,
}

impl World {
    /// The world of a system.
    pub fn of(installed: &Installed) -> World {
        let protocols = Protocol::all(installed);
        let position = |name: &str| protocols.iter().position(|protocol| protocol.name == name);
        let (directory, provider) = (position(DIRECTORY), position(PROVIDER));
        let seeds = protocols.iter().map(|_| Vec::new()).collect();
        let (services, registrars) = (Vec::new(), Vec::new());
        let mut world =
            World { protocols, holders: Vec::new(), services, seeds, directory, provider, namespace: None, registrars };
        world.find_holders(installed);
        world.find_services(installed);
        world.find_registered(installed);
        world.find_seeds(installed);
        world
    }

    /// The contract of this name.
    pub fn contract(&self, name: &str) -> Option<usize> {
        self.protocols.iter().position(|protocol| protocol.name == name)
    }

    /// Returns the processes of a program: those started by the root, or those started by others.
    pub fn holder(&self, program: usize, is_boot: bool) -> Option<usize> {
        self.holders.iter().position(|holder| holder.program == program && holder.is_boot == is_boot)
    }

    /// All processes of a program.
    pub fn holders_of(&self, program: usize) -> impl Iterator<Item = usize> + '_ {
        let numbered = self.holders.iter().enumerate();
        numbered.filter(move |(_, holder)| holder.program == program).map(|(index, _)| index)
    }

    /// Returns whether the rules let a holder bind any path at the service, or below it.
    pub fn may_bind(&self, holder: usize, service: &Service) -> bool {
        let is_folder = service.path != "/" && (service.contract.is_none() || service.contract == self.directory);
        // The provider of a folder may open everything below it.
        let below = alloc::format!("{}/**", service.path);
        let met = |rule: &String| paths_meet(rule, &service.path) || (is_folder && paths_meet(rule, &below));
        self.holders[holder].rules.iter().any(met)
    }

    /// Returns the services that rules let a holder bind, without duplicates.
    pub fn bound_by(&self, client: usize) -> Vec<Bound> {
        let mut found: Vec<Bound> = Vec::new();
        for service in self.services.iter().filter(|service| service.holder != client) {
            if !self.may_bind(client, service) {
                continue;
            }
            let provider = &self.holders[service.holder];
            let contracts = service.contract.map_or_else(|| provider.exports.clone(), |contract| Vec::from([contract]));
            let bound = Bound { provider: service.holder, contracts };
            if !found.contains(&bound) {
                found.push(bound);
            }
        }
        found
    }

    fn find_holders(&mut self, installed: &Installed) {
        let binds = installed.system.binds.iter();
        let binds: Vec<(Who, &str)> = binds.map(|bind| (Who::read(&bind.who), bind.path.as_str())).collect();
        for (program, manifest) in installed.programs.iter().map(|program| &program.manifest).enumerate() {
            // A script is run by the shell, in this process or another shell.
            // And a template is a part of other programs.
            if matches!(manifest.code, ProgramCode::Script { .. } | ProgramCode::Template { .. }) {
                continue;
            }
            let (name, principal) = (&manifest.name, manifest.principal());
            let is_root = installed.system.root == *name;
            let is_instance = installed.system.instances.iter().any(|instance| instance.program == *name);
            let provides_root = manifest.provides.iter().any(|provide| provide.path == "/");
            let rules = binds.iter().filter(|(who, _)| who.may_mean(&principal)).map(|(_, path)| path.to_string());
            let holder = Holder {
                program,
                is_boot: true,
                is_trusted: is_root || provides_root,
                starts: manifest.quota.children > 0 && !is_root,
                slots: self.slots(manifest),
                creates: self.creates(manifest),
                exports: self.exports(manifest),
                rules: rules.collect(),
            };
            if is_root || is_instance {
                self.holders.push(holder.clone());
            }
            if !is_root {
                self.holders.push(Holder { is_boot: false, is_trusted: false, ..holder });
            }
        }
    }

    fn slots(&self, manifest: &Manifest) -> Vec<Slot> {
        let listed = |slot: &manifest_model::EndpointSlot| manifest.contracts.get(usize::from(slot.contract));
        let read = |slot: &manifest_model::EndpointSlot| {
            let contract = self.contract(&listed(slot)?.name)?;
            Some(Slot { name: slot.name.clone(), contract, side: slot.side, state: usize::from(slot.state) })
        };
        manifest.endpoints.iter().filter_map(read).collect()
    }

    /// The kernel creates channels of all contracts that the manifest lists, whichever ends it declares.
    fn creates(&self, manifest: &Manifest) -> Vec<usize> {
        if manifest.quota.channels == 0 {
            return Vec::new();
        }
        manifest.contracts.iter().filter_map(|used| self.contract(&used.name)).collect()
    }

    fn exports(&self, manifest: &Manifest) -> Vec<usize> {
        let exported = manifest.contracts.iter().filter(|used| handles(used.side, Side::Exporter));
        let contracts = exported.filter_map(|used| self.contract(&used.name));
        contracts.filter(|&contract| Some(contract) != self.provider).collect()
    }

    fn find_services(&mut self, installed: &Installed) {
        let root = installed.manifest(&installed.system.root);
        let of_root = root.into_iter().flat_map(|root| root.provides.iter().map(move |one| (root, one, &one.path)));
        let instances = installed.instances().flat_map(|(instance, manifest)| {
            manifest.provides.iter().zip(&instance.provides).map(move |(provide, path)| (manifest, provide, path))
        });
        for (manifest, provide, path) in of_root.chain(instances) {
            let listed = manifest.contracts.get(usize::from(provide.contract));
            let (Some(program), Some(contract)) = (place(installed, &manifest.name), listed) else { continue };
            let Some(holder) = self.holder(program, true) else { continue };
            let contract = self.contract(&contract.name);
            self.services.push(Service { path: path.clone(), contract, program, holder });
        }
        self.namespace = self.services.iter().find(|service| service.path == "/").map(|service| service.holder);
        let Some(program) = place(installed, &installed.system.root) else { return };
        let Some(holder) = self.holder(program, true) else { return };
        let used = installed.programs[program].manifest.contracts.iter();
        let exported =
            used.filter(|used| handles(used.side, Side::Exporter)).filter_map(|used| self.contract(&used.name));
        let own: Vec<usize> =
            exported.filter(|&contract| Some(contract) != self.directory && Some(contract) != self.provider).collect();
        let served =
            own.into_iter().map(|contract| Service { path: OF_ROOT.into(), contract: Some(contract), program, holder });
        self.services.extend(served.collect::<Vec<_>>());
    }

    /// Finds names that programs register at run time: `WHO PATH`, as in the namespace's parameter. Permitted programs
    /// are trusted to register themselves and the programs in their parameters, and nothing else.
    fn find_registered(&mut self, installed: &Installed) {
        let Some(namespace) = self.namespace.map(|namespace| self.holders[namespace].program) else { return };
        let texts = parameter_texts(installed, &installed.programs[namespace].manifest);
        for (_, text) in texts.into_iter().filter(|(parameter, _)| *parameter == "register") {
            let Some((who, path)) = text.rsplit_once(' ') else { continue };
            let who = Who::read(who.trim());
            for (program, manifest) in installed.programs.iter().map(|program| &program.manifest).enumerate() {
                if !who.may_mean(&manifest.principal()) {
                    continue;
                }
                let named = named_programs(installed, manifest);
                let named = named.iter().filter_map(|(_, name)| self.holder(place(installed, name)?, false));
                let holders: Vec<usize> = self.holders_of(program).collect();
                let serving: Vec<usize> = named.chain(holders.iter().copied()).collect();
                self.registrars.extend(holders.into_iter().map(|holder| (holder, path.to_string())));
                self.services.extend(serving.into_iter().map(|holder| Service {
                    path: path.to_string(),
                    contract: None,
                    program: self.holders[holder].program,
                    holder,
                }));
            }
        }
    }

    fn find_seeds(&mut self, installed: &Installed) {
        // Other programs need a parent that the root starts.
        let is_started = self.holders.iter().any(|holder| holder.is_boot && holder.starts);
        for index in 0..self.holders.len() {
            if self.holders[index].is_trusted || !(self.holders[index].is_boot || is_started) {
                continue;
            }
            for contract in self.holders[index].creates.clone() {
                self.seed(contract, index, index, Origin::Created);
            }
        }
        let Some(root) = place(installed, &installed.system.root).and_then(|root| self.holder(root, true)) else {
            return;
        };
        for (instance, manifest) in installed.instances() {
            let Some(child) = place(installed, &manifest.name).and_then(|program| self.holder(program, true)) else {
                continue;
            };
            for (number, slot) in manifest.endpoints.iter().enumerate() {
                let listed = manifest.contracts.get(usize::from(slot.contract));
                let Some(contract) = listed.and_then(|listed| self.contract(&listed.name)) else { continue };
                let path = match (&slot.source, bound_path(instance, manifest, number)) {
                    (_, Some(path)) => path,
                    (Source::StandardOutput, None) => CONSOLE,
                    _ => {
                        self.give_by_root((root, child), contract, slot.side, &slot.name);
                        continue;
                    }
                };
                self.bind_by_root(child, contract, path);
            }
        }
    }

    fn seed(&mut self, contract: usize, importer: usize, exporter: usize, origin: Origin) {
        let seed = Seed { importer, exporter, origin };
        let there = &mut self.seeds[contract];
        if there.iter().all(|other| (other.importer, other.exporter) != (importer, exporter)) {
            there.push(seed);
        }
    }

    /// The root creates a channel of a contract that it lists, keeps one end and gives its child the other. The
    /// remainder of a provider's channel goes to the namespace.
    fn give_by_root(&mut self, (root, child): (usize, usize), contract: usize, side: Side, slot: &str) {
        if !self.holders[root].creates.contains(&contract) {
            return;
        }
        let origin = || Origin::GivenByRoot(slot.into());
        match side {
            Side::Importer => self.seed(contract, child, root, origin()),
            Side::Exporter => {
                self.seed(contract, root, child, origin());
                if let Some(namespace) = self.namespace.filter(|_| Some(contract) == self.provider) {
                    self.seed(contract, namespace, child, origin());
                }
            }
        }
    }

    /// The root binds in its own name, without a rule.
    fn bind_by_root(&mut self, child: usize, contract: usize, path: &str) {
        for service in self.services.clone() {
            let above =
                service.path == "/" || path.strip_prefix(&service.path).is_some_and(|rest| rest.starts_with('/'));
            let talks = match service.path.as_str() {
                "/" => Some(contract) == self.directory,
                _ => service.contract.is_none_or(|talked| talked == contract || Some(talked) == self.directory),
            };
            if talks && (above || paths_meet(&service.path, path)) {
                self.seed(contract, child, service.holder, Origin::BoundByRoot(path.into()));
            }
        }
    }
}

fn place(installed: &Installed, name: &str) -> Option<usize> {
    installed.programs.iter().position(|program| program.manifest.name == name)
}
