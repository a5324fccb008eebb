//! Who comes to what is served at a path.
//!
//! A program comes to a service if it can have the importing end of a channel whose exporting end the service's
//! processes can have, of the contract that is served or of one that its messages give; or if such an end was handed
//! out, in a message of the service's contracts, by whoever has taken the service's place: a provider may pass its
//! client on to another program. Key type: [`Guard`].

use alloc::vec::Vec;

use package::Side;

use crate::reach::flows::Flows;
use crate::reach::grid::Set;
use crate::reach::protocols::Wanted;
use crate::reach::world::{Service, World};

/// A service, and what speaks for it.
pub struct Guard<'a> {
    world: &'a World,
    flows: &'a Flows,
    service: &'a Service,
    /// Contracts whose channels to the service's processes count, those that are served first.
    direct: Vec<usize>,
    /// Contracts whose importing ends the service's messages give.
    given: Vec<usize>,
    /// Who may have clients of the service.
    servers: Set,
}

/// A channel by which a program comes to a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its contract.
    pub contract: usize,
    /// Who has the importing end: the program.
    pub importer: usize,
    /// Who has the exporting end.
    pub exporter: usize,
}

impl<'a> Guard<'a> {
    /// What speaks for a service.
    pub fn of(world: &'a World, flows: &'a Flows, service: &'a Service) -> Guard<'a> {
        let exported = || world.holders[service.holder].exports.clone();
        let served: Vec<usize> = service.contract.map_or_else(exported, |contract| Vec::from([contract]));
        let given = given(world, &served);
        let mut family = served;
        family.extend(given.iter().copied().filter(|contract| !family.contains(contract)).collect::<Vec<_>>());
        let mut direct = family.clone();
        if service.contract.is_none() {
            direct.extend((0..world.protocols.len()).filter(|contract| !family.contains(contract)));
        }
        let servers = servers(flows, service.holder, &family, &given, world.holders.len());
        Guard { world, flows, service, direct, given, servers }
    }

    /// A channel by which processes of a program come to the service; none where the program serves it itself.
    pub fn found(&self, program: usize) -> Option<Found> {
        if program == self.service.program {
            return None;
        }
        self.world.holders_of(program).find_map(|importer| self.directly(importer).or_else(|| self.handed(importer)))
    }

    fn directly(&self, importer: usize) -> Option<Found> {
        let exporter = self.service.holder;
        let mut contracts = self.direct.iter().copied();
        let contract = contracts.find(|&contract| self.flows.links[contract].has(importer, exporter))?;
        Some(Found { contract, importer, exporter })
    }

    /// An end that was given by who has taken the service's place.
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

/// The contracts whose importing ends messages of these give importers, and messages of those, and so on.
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

/// Who may have the exporting end of a channel that was the service's, or of one that was given over such a channel.
fn servers(flows: &Flows, holder: usize, family: &[usize], given: &[usize], count: usize) -> Set {
    let mut servers = Set::empty(count);
    servers.insert(holder);
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
