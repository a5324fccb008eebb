//! Determines which programs reach the service at a path.
//!
//! A program reaches a service if it can have the importing end of a channel whose exporting end
//! - can be held by the service's processes, or bound to the path by any holder, wherever it moves then; of the
//!   contract that is served or of one that its messages give;
//! - any holder has, if that importing end was given, in a message of the service's contracts, by a holder of the
//!   service's clients: a provider may pass them on.
//!
//! Key type: [`Guard`].

use alloc::vec::Vec;

use manifest_model::Side;

use crate::reach::flows::Flows;
use crate::reach::grid::Set;
use crate::reach::protocols::Wanted;
use crate::reach::rules::Rule;
use crate::reach::world::{Service, World};

/// A service and the endpoints that act for it.
pub struct Guard<'a> {
    world: &'a World,
    flows: &'a Flows,
    service: &'a Service,
    /// Contracts whose channels to the service's processes count, the served ones first; for a folder, all.
    direct: Vec<usize>,
    /// The contracts that are served, and those that their messages give.
    family: Vec<usize>,
    /// Holders that may bind the path.
    binders: Set,
    /// Contracts whose importing ends the service's messages give.
    given: Vec<usize>,
    /// Holders that may have clients of the service.
    servers: Set,
}

/// A channel by which a program reaches a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its contract.
    pub contract: usize,
    /// Holder of the importing end: the program.
    pub importer: usize,
    /// Holder of the exporting end.
    pub exporter: usize,
}

impl<'a> Guard<'a> {
    /// Computes the endpoints that act for a service.
    pub fn of(world: &'a World, flows: &'a Flows, service: &'a Service) -> Guard<'a> {
        // Everything below a folder is served with it, under any contract.
        let is_folder = service.path != "/" && (service.contract.is_none() || service.contract == world.directory);
        let mut served: Vec<usize> = service.contract.into_iter().collect();
        let exports = world.holders[service.holder].exports.iter().filter(|_| is_folder);
        served.extend(exports.copied().filter(|&contract| Some(contract) != service.contract));
        let given = given(world, &served);
        let mut family = served;
        family.extend(given.iter().copied().filter(|contract| !family.contains(contract)).collect::<Vec<_>>());
        let mut direct = family.clone();
        if is_folder {
            direct.extend((0..world.protocols.len()).filter(|contract| !family.contains(contract)));
        }
        let servers = servers(world, flows, service.holder, &family, &given);
        let mut binders = Set::empty(world.holders.len());
        let clients = (0..world.holders.len()).filter(|&client| flows.binds(world, client, service));
        clients.for_each(|client| binders.insert(client));
        Guard { world, flows, service, direct, family, binders, given, servers }
    }

    /// Returns a channel by which processes of a program reach the service; `None` if the program serves it itself.
    pub fn found(&self, program: usize) -> Option<Found> {
        if program == self.service.program {
            return None;
        }
        self.world.holders_of(program).find_map(|importer| {
            self.directly(importer).or_else(|| self.bound(importer)).or_else(|| self.handed(importer))
        })
    }

    fn directly(&self, importer: usize) -> Option<Found> {
        let exporter = self.service.holder;
        let mut contracts = self.direct.iter().copied();
        let contract = contracts.find(|&contract| self.flows.links[contract].has(importer, exporter))?;
        Some(Found { contract, importer, exporter })
    }

    /// Finds a channel whose exporting end can be bound to the path, and may then move on.
    fn bound(&self, importer: usize) -> Option<Found> {
        for &contract in &self.family {
            for seed in &self.world.seeds[contract] {
                if !self.flows.reached(contract, Side::Importer, seed.importer).has(importer) {
                    continue;
                }
                let exporters = self.flows.reached(contract, Side::Exporter, seed.exporter);
                let mut binding = exporters.iter().filter(|&exporter| self.binders.has(exporter));
                if let Some(exporter) = binding.next().filter(|_| self.flows.follows(Rule::Succeed)) {
                    return Some(Found { contract, importer, exporter });
                }
            }
        }
        None
    }

    /// Finds an end given by a holder that has taken the service's place.
    fn handed(&self, importer: usize) -> Option<Found> {
        let own = self.world.holders[importer].program;
        let others = self.servers.iter().filter(|&server| self.world.holders[server].program != own);
        for server in others {
            for &contract in &self.given {
                let comes = self.flows.holds(server, contract, Side::Importer)
                    && self.flows.reached(contract, Side::Importer, server).has(importer);
                let exporter = self.flows.links[contract].row(importer).iter().next();
                if let Some(exporter) = exporter.filter(|_| comes) {
                    return Some(Found { contract, importer, exporter });
                }
            }
        }
        None
    }
}

/// Returns the contracts whose importing ends messages of these give importers, transitively.
pub fn given(world: &World, served: &[usize]) -> Vec<usize> {
    let mut found: Vec<usize> = Vec::new();
    let mut open: Vec<usize> = served.to_vec();
    while let Some(contract) = open.pop() {
        for wanted in world.protocols[contract].given() {
            let given = match wanted {
                Wanted::Known(contract) => contract..contract + 1,
                Wanted::Any => 0..world.protocols.len(),
                Wanted::Unlisted => continue,
            };
            let fresh: Vec<usize> = given.filter(|contract| !found.contains(contract)).collect();
            found.extend(&fresh);
            open.extend(fresh);
        }
    }
    found
}

/// Returns the holders that may have the exporting end of a channel to the service, or of one given over such a
/// channel.
fn servers(world: &World, flows: &Flows, holder: usize, family: &[usize], given: &[usize]) -> Set {
    let mut servers = Set::empty(world.holders.len());
    flows.successors(world, holder).into_iter().for_each(|successor| servers.insert(successor));
    loop {
        let mut more = servers.clone();
        for server in servers.iter() {
            for &contract in family {
                more.add(flows.reached(contract, Side::Exporter, server));
            }
            for &contract in given {
                more.add(flows.links[contract].row(server));
            }
        }
        if more == servers {
            return servers;
        }
        servers = more;
    }
}
