//! The channels on which one program can be a client of another, if all keep to their manifests: for the analysis of
//! deadlocks.
//!
//! [`Map`](crate::Map) takes every program for hostile, and so finds channels that none of them wants. Here a program
//! uses the contracts that it imports and serves those that it exports; it obtains its channels at its start, by
//! binding paths as rules allow, from its parent or its children, and in messages. Key type: [`Conversation`].

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use manifest_model::{EndpointSlot, Manifest, Side, Source};

use crate::check::manifest::handles;
use crate::installed::{Installed, named_programs};
use crate::reach::protocols::{Message, Wanted};
use crate::reach::world::{Bound, Origin, World};

/// A contract on which processes of one program can be clients of processes of another, or of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Conversation<'a> {
    /// Name of the program with the importing end.
    pub importer: &'a str,
    /// Name of the program with the exporting end.
    pub exporter: &'a str,
    /// Name of the contract.
    pub contract: &'a str,
    /// Whether the importer can open any number of such channels, rather than that of its endpoints at start.
    pub many: bool,
    /// Whether it asks the namespace for them: the provider is then asked by the namespace.
    pub by_name: bool,
    /// Whether the exporter is always a child of the importer.
    pub of_children: bool,
    /// Whether its endpoints come in messages only.
    pub in_messages: bool,
}

/// Conversations of a system, and its namespace.
#[derive(Clone, Debug, Default)]
pub struct Conversations<'a> {
    /// All conversations, each once, in order.
    pub all: Vec<Conversation<'a>>,
    /// Name of the program that serves the namespace.
    pub namespace: Option<&'a str>,
}

/// Returns the conversations of a system.
pub fn conversations(installed: &Installed) -> Conversations<'_> {
    let world = World::of(installed);
    let bound = (0..world.holders.len()).map(|holder| world.bound_by(holder)).collect();
    let handled = installed.programs.iter().map(|program| handled(&world, &program.manifest)).collect();
    let mut found = Finder { installed, world, bound, handled, pairs: BTreeSet::new() };
    found.at_start();
    found.by_name();
    found.by_parents();
    while found.in_messages() {}
    let named = |pair: &Pair| {
        let name = |program: usize| installed.programs.get(program).map(|program| program.manifest.name.as_str());
        let (importer, exporter) = (name(pair.importer)?, name(pair.exporter)?);
        // The names of contracts live in the manifests, too.
        let contract = &found.world.protocols.get(pair.contract)?.name;
        let used = installed.manifest(importer)?.contracts.iter().find(|used| used.name == *contract)?;
        Some(Conversation {
            importer,
            exporter,
            contract: &used.name,
            many: pair.many,
            by_name: pair.by_name,
            of_children: pair.of_children,
            in_messages: pair.in_messages,
        })
    };
    let mut all: Vec<Conversation<'_>> = found.pairs.iter().filter_map(named).collect();
    all.sort_unstable();
    all.dedup_by(|next, one| {
        let is_same = (next.importer, next.exporter, next.contract) == (one.importer, one.exporter, one.contract);
        if is_same {
            (one.many, one.by_name) = (one.many || next.many, one.by_name || next.by_name);
            one.of_children &= next.of_children;
            one.in_messages &= next.in_messages;
        }
        is_same
    });
    let namespace = found.world.namespace.and_then(|holder| {
        let program = installed.programs.get(found.world.holders.get(holder)?.program)?;
        Some(program.manifest.name.as_str())
    });
    Conversations { all, namespace }
}

fn handled(world: &World, manifest: &Manifest) -> Vec<(usize, bool)> {
    let sides = [(Side::Importer, true), (Side::Exporter, false)];
    let used = manifest.contracts.iter().filter_map(|used| Some((world.contract(&used.name)?, used.side)));
    used.flat_map(|(contract, side)| {
        sides.into_iter().filter(move |(one, _)| handles(side, *one)).map(move |(_, imports)| (contract, imports))
    })
    .collect()
}

/// As a conversation, by indices.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Pair {
    contract: usize,
    importer: usize,
    exporter: usize,
    many: bool,
    by_name: bool,
    of_children: bool,
    in_messages: bool,
}

/// How a program obtains a channel.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Got {
    /// As an endpoint of an instance.
    AtStart,
    /// From the namespace.
    ByName,
    /// From its parent.
    Given,
    /// In a message.
    Sent,
    /// From itself, as the parent of the exporter.
    OfChild,
}

struct Finder<'a> {
    installed: &'a Installed,
    world: World,
    /// By holder: what it may bind.
    bound: Vec<Vec<Bound>>,
    /// By program: contracts, and whether it handles importing ends or exporting ones.
    handled: Vec<Vec<(usize, bool)>>,
    pairs: BTreeSet<Pair>,
}

impl Finder<'_> {
    fn manifest(&self, program: usize) -> Option<&Manifest> {
        Some(&self.installed.programs.get(program)?.manifest)
    }

    fn handles(&self, program: usize, contract: usize, side: Side) -> bool {
        self.handled.get(program).is_some_and(|handled| handled.contains(&(contract, side == Side::Importer)))
    }

    /// Adds a conversation if both programs handle their ends.
    fn add(&mut self, contract: usize, importer: usize, exporter: usize, got: Got) -> bool {
        let is_handled =
            self.handles(importer, contract, Side::Importer) && self.handles(exporter, contract, Side::Exporter);
        is_handled
            && self.pairs.insert(Pair {
                contract,
                importer,
                exporter,
                many: got != Got::AtStart,
                by_name: got == Got::ByName,
                of_children: got == Got::OfChild,
                in_messages: got == Got::Sent,
            })
    }

    /// Endpoints of instances.
    fn at_start(&mut self) {
        for contract in 0..self.world.seeds.len() {
            for seed in self.world.seeds[contract].clone() {
                let (importer, exporter) =
                    (self.world.holders[seed.importer].program, self.world.holders[seed.exporter].program);
                if seed.origin != Origin::Created {
                    self.add(contract, importer, exporter, Got::AtStart);
                }
            }
        }
    }

    /// Paths that rules let programs bind which import the contract of folders.
    fn by_name(&mut self) {
        let Some(directory) = self.world.directory else { return };
        for holder in 0..self.world.holders.len() {
            let client = self.world.holders[holder].program;
            if !self.handles(client, directory, Side::Importer) {
                continue;
            }
            for bound in self.bound[holder].clone() {
                let provider = self.world.holders[bound.provider].clone();
                // A folder gives files, and tells of changes.
                let all = if bound.contracts.contains(&directory) { provider.exports } else { bound.contracts };
                for contract in all {
                    self.add(contract, client, provider.program, Got::ByName);
                }
            }
        }
    }

    /// Endpoints between parents and their children.
    fn by_parents(&mut self) {
        let (root, instances) = (self.installed.system.root.as_str(), &self.installed.system.instances);
        for parent in 0..self.installed.programs.len() {
            let Some(manifest) = self.manifest(parent) else { continue };
            let named: Vec<&str> = named_programs(self.installed, manifest).into_iter().map(|(_, name)| name).collect();
            let is_started = |child: &Manifest| match manifest.quota.children {
                _ if manifest.name == root => instances.iter().any(|instance| instance.program == child.name),
                0 => false,
                // One whose parameters name programs starts those.
                _ => child.name != root && (named.is_empty() || named.contains(&child.name.as_str())),
            };
            let children: Vec<usize> = (0..self.installed.programs.len())
                .filter(|&child| self.manifest(child).is_some_and(is_started))
                .collect();
            for child in children {
                let slots = self.manifest(child).map(|child| child.endpoints.clone()).unwrap_or_default();
                for slot in slots {
                    self.give(parent, child, &slot);
                }
            }
        }
    }

    fn give(&mut self, parent: usize, child: usize, slot: &EndpointSlot) {
        let listed = self.manifest(child).and_then(|child| child.contracts.get(usize::from(slot.contract)));
        let Some(contract) = listed.and_then(|listed| self.world.contract(&listed.name)) else { return };
        match (&slot.source, slot.side) {
            (Source::Path(_), _) => {}
            (_, Side::Exporter) => drop(self.add(contract, parent, child, Got::OfChild)),
            (source, Side::Importer) => {
                self.add(contract, child, parent, Got::Given);
                if *source == Source::StandardOutput {
                    self.give_bound(parent, child, contract);
                }
            }
        }
    }

    /// The parent binds the standard output of its child.
    fn give_bound(&mut self, parent: usize, child: usize, contract: usize) {
        let holders: Vec<usize> = self.world.holders_of(parent).collect();
        for bound in holders.into_iter().flat_map(|holder| self.bound[holder].clone()).collect::<Vec<_>>() {
            let provider = self.world.holders[bound.provider].clone();
            if provider.exports.contains(&contract) {
                self.add(contract, child, provider.program, Got::Given);
            }
        }
    }

    /// Adds channels whose endpoints go over those found so far; returns whether there were new ones.
    fn in_messages(&mut self) -> bool {
        let mut grew = false;
        for pair in self.pairs.clone() {
            let messages = self.world.protocols[pair.contract].messages.iter();
            let carrying: Vec<Message> = messages.filter(|message| !message.arguments.is_empty()).cloned().collect();
            for message in carrying {
                let (sender, receiver) = match message.sender {
                    Side::Importer => (pair.importer, pair.exporter),
                    Side::Exporter => (pair.exporter, pair.importer),
                };
                grew |= self.pass(&message, sender, receiver);
            }
        }
        grew
    }

    fn registers(&self, sender: usize, receiver: usize) -> bool {
        let is_namespace = self.world.namespace.is_some_and(|holder| self.world.holders[holder].program == receiver);
        let mut registrars = self.world.registrars.iter().map(|(holder, _)| self.world.holders[*holder].program);
        let is_root = self.manifest(sender).is_some_and(|sender| sender.name == self.installed.system.root);
        is_namespace && (is_root || registrars.any(|registrar| registrar == sender))
    }

    /// The sender gives away one end of a channel that it makes, or an importing end that it has of another's service.
    fn pass(&mut self, message: &Message, sender: usize, receiver: usize) -> bool {
        let mut grew = false;
        for argument in &message.arguments {
            // An endpoint of any contract is one with which the namespace is asked: a bind.
            let Wanted::Known(contract) = argument.contract else { continue };
            match argument.side {
                // Any server of folders can be asked to register a name; only the namespace does it.
                Side::Importer if Some(contract) == self.world.provider && !self.registers(sender, receiver) => {}
                Side::Importer => {
                    grew |= self.add(contract, receiver, sender, Got::Sent);
                    let had = |pair: &&Pair| pair.contract == contract && pair.importer == sender;
                    let exporters: Vec<usize> = self.pairs.iter().filter(had).map(|pair| pair.exporter).collect();
                    for exporter in exporters {
                        grew |= self.add(contract, receiver, exporter, Got::Sent);
                    }
                }
                Side::Exporter => grew |= self.add(contract, sender, receiver, Got::Sent),
            }
        }
        grew
    }
}
