//! Explains step by step how a channel comes about.
//!
//! Every channel and every step of an end records the round of the search in which it was found, and depends on earlier
//! rounds only, so an explanation is finite. It has the shortest way of each end from the origin of the channel.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use manifest_model::Side;

use crate::installed::Installed;
use crate::reach::flows::Flows;
use crate::reach::protocols::Wanted;
use crate::reach::rules::Rule;
use crate::reach::world::{Origin, Seed, Service, World};

/// Explains channels.
pub struct Telling<'a> {
    installed: &'a Installed,
    world: &'a World,
    flows: &'a Flows,
    told: Vec<(usize, usize, usize)>,
    steps: Vec<String>,
    helpers: Vec<usize>,
}

/// Steps by which a channel comes about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chain {
    /// The steps, in order.
    pub steps: Vec<String>,
    /// Programs that take part.
    pub programs: Vec<usize>,
}

/// Whether a path is served under the requested contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Serves {
    It,
    Another,
}

/// A move of an end between holders.
#[derive(Clone, Copy)]
struct Move {
    contract: usize,
    side: Side,
    from: usize,
    to: usize,
    /// Whether `from` has just created the channel.
    is_new: bool,
    round: u16,
}

impl<'a> Telling<'a> {
    /// Explains a channel of the contract between two holders.
    pub fn chain(
        installed: &'a Installed,
        world: &'a World,
        flows: &'a Flows,
        contract: usize,
        (importer, exporter): (usize, usize),
    ) -> Chain {
        let mut telling = Telling { installed, world, flows, told: Vec::new(), steps: Vec::new(), helpers: Vec::new() };
        telling.channel(contract, (importer, exporter));
        let mut programs: Vec<usize> =
            telling.helpers.into_iter().map(|holder| world.holders[holder].program).collect();
        programs.sort_unstable();
        programs.dedup();
        Chain { steps: telling.steps, programs }
    }

    fn name(&self, holder: usize) -> &'a str {
        let program = self.world.holders.get(holder).and_then(|holder| self.installed.programs.get(holder.program));
        program.map_or("", |program| program.manifest.name.as_str())
    }

    fn say(&mut self, step: String) {
        if !self.steps.contains(&step) {
            self.steps.push(step);
        }
    }

    fn channel(&mut self, contract: usize, (importer, exporter): (usize, usize)) {
        let Some(round) = self.flows.links[contract].found_in(importer, exporter) else { return };
        if self.told.contains(&(contract, importer, exporter)) {
            return;
        }
        self.told.push((contract, importer, exporter));
        let importing = self.ways(contract, Side::Importer, importer, round);
        let exporting = self.ways(contract, Side::Exporter, exporter, round);
        let length = |seed: &&Seed| Some(importing[seed.importer]?.0 + exporting[seed.exporter]?.0);
        let seeds = self.world.seeds[contract].iter().filter(|seed| length(seed).is_some());
        let Some(seed) = seeds.min_by_key(length) else { return };
        self.begin(contract, seed);
        let is_created = seed.origin == Origin::Created;
        let mut is_new = is_created && seed.importer == importer;
        self.follow(contract, Side::Exporter, (seed.exporter, &exporting), &mut is_new, round);
        let mut is_new = is_created && seed.exporter == exporter;
        self.follow(contract, Side::Importer, (seed.importer, &importing), &mut is_new, round);
    }

    /// By holder: cost of moving an end from there to `to`, and the next step.
    fn ways(&self, contract: usize, side: Side, to: usize, before: u16) -> Vec<Option<(usize, usize)>> {
        let mut ways = vec![None; self.world.holders.len()];
        ways[to] = Some((0, to));
        let mut open = BTreeSet::from([(0, to)]);
        while let Some((cost, at)) = open.pop_first() {
            if ways[at].is_some_and(|(least, _)| least < cost) {
                continue;
            }
            for (from, way) in ways.iter_mut().enumerate() {
                let found = self.flows.step_found_in(contract, side, from, at).filter(|&round| round < before);
                let Some(round) = found.filter(|_| from != at) else { continue };
                let cost = cost + self.cost(contract, side, (from, at), round);
                if way.is_none_or(|(least, _)| cost < least) {
                    *way = Some((cost, at));
                    open.insert((cost, from));
                }
            }
        }
        ways
    }

    /// A step that needs a provider's collusion, which serves another contract at that path, is used only without an
    /// alternative.
    fn cost(&self, contract: usize, side: Side, (from, to): (usize, usize), round: u16) -> usize {
        let bound = (side == Side::Exporter).then(|| self.path_bound(contract, (from, to), round)).flatten();
        match bound {
            Some((_, Serves::It)) | None => 1,
            Some((_, Serves::Another)) => 8,
        }
    }

    fn begin(&mut self, contract: usize, seed: &Seed) {
        let contract = &self.world.protocols[contract].name;
        let (importer, exporter) = (self.name(seed.importer), self.name(seed.exporter));
        self.helpers.extend([seed.importer, seed.exporter]);
        match &seed.origin {
            Origin::Created => {}
            Origin::BoundByRoot(path) => {
                self.say(format!("`{importer}` is given {path} ({contract} of `{exporter}`) at its start"));
            }
            Origin::GivenByRoot(slot) => {
                let root = self.installed.system.root.as_str();
                let child = if importer == root { exporter } else { importer };
                self.say(format!("`{root}` can start `{child}` with its endpoint `{slot}` ({contract})"));
            }
        }
    }

    fn follow(
        &mut self,
        contract: usize,
        side: Side,
        (from, ways): (usize, &[Option<(usize, usize)>]),
        is_new: &mut bool,
        before: u16,
    ) {
        let mut at = from;
        while let Some((_, to)) = ways[at].filter(|(cost, _)| *cost > 0) {
            let round = self.flows.step_found_in(contract, side, at, to).unwrap_or(before);
            self.helpers.push(to);
            let moved = Move { contract, side, from: at, to, is_new: core::mem::take(is_new), round };
            let step = self.step(moved);
            self.say(step);
            at = to;
        }
    }

    fn step(&mut self, moved: Move) -> String {
        let contract = &self.world.protocols[moved.contract].name;
        let (from, to) = (self.name(moved.from), self.name(moved.to));
        let end = if moved.side == Side::Importer { "importing" } else { "exporting" };
        let what = if moved.is_new { "a new one" } else { "one that it has" };
        if moved.side == Side::Exporter
            && let Some((path, _)) = self.path_bound(moved.contract, (moved.from, moved.to), moved.round)
        {
            return format!("`{from}` binds {path} ({contract} of `{to}`), as a rule allows");
        }
        if let Some(slot) = self.slot(moved) {
            return format!("`{from}` can start `{to}` with its endpoint `{slot}` ({contract})");
        }
        if let Some((over, pair, message)) = self.carrier(moved) {
            self.channel(over, pair);
            let over = &self.world.protocols[over].name;
            return format!("`{from}` sends `{to}` the {end} end of {contract}, {what}, with {over}.{message}");
        }
        if let Some((path, _)) = self.path_bound(moved.contract, (moved.to, moved.from), moved.round) {
            return format!(
                "`{from}` gives `{to}`, which binds {path}, the {end} end of {contract} back, {what}, in place of its own"
            );
        }
        format!(
            "`{from}` asks the namespace to bind the {end} end of {contract}, {what}, and starts a program with that folder, so that `{to}` gets it"
        )
    }

    /// Returns a path served by `to` that rules let `from` bind, if `from` has the namespace by then; preferably one
    /// served under the contract.
    fn path_bound(&self, contract: usize, (from, to): (usize, usize), round: u16) -> Option<(&'a str, Serves)> {
        let (namespace, directory) = (self.world.namespace?, self.world.directory?);
        self.flows.links[directory].found_in(from, namespace).filter(|&found| found <= round)?;
        let bound = |service: &&Service| service.holder == to && self.world.may_bind(from, service);
        let services = || self.world.services.iter().filter(bound);
        let serves_it = |service: &&Service| service.contract.is_none_or(|served| served == contract);
        match services().find(serves_it) {
            Some(service) => Some((&service.path, Serves::It)),
            None => services().next().map(|service| (service.path.as_str(), Serves::Another)),
        }
    }

    fn slot(&self, moved: Move) -> Option<&'a str> {
        let (from, to) = (&self.world.holders[moved.from], &self.world.holders[moved.to]);
        if !from.starts || to.is_boot || !self.flows.follows(Rule::Start) {
            return None;
        }
        let mut slots = to.slots.iter().filter(|slot| slot.contract == moved.contract && slot.side == moved.side);
        slots.find(|slot| self.flows.comes_to(slot.contract, slot.state)).map(|slot| slot.name.as_str())
    }

    /// Returns the earliest channel that carries the end, and the message.
    fn carrier(&self, moved: Move) -> Option<(usize, (usize, usize), &'a str)> {
        let mut best: Option<(u16, usize, (usize, usize), &'a str)> = None;
        for (over, protocol) in self.world.protocols.iter().enumerate() {
            for (number, message) in protocol.messages.iter().enumerate() {
                let carries = message.arguments.iter().any(|argument| {
                    argument.side == moved.side
                        && (argument.contract == Wanted::Any || argument.contract == Wanted::Known(moved.contract))
                });
                if !carries || !self.flows.is_said(self.world, over, number) {
                    continue;
                }
                let pair = match message.sender {
                    Side::Importer => (moved.from, moved.to),
                    Side::Exporter => (moved.to, moved.from),
                };
                let Some(found) = self.flows.links[over].found_in(pair.0, pair.1) else { continue };
                if found <= moved.round && best.is_none_or(|(earliest, ..)| found < earliest) {
                    best = Some((found, over, pair, &message.name));
                }
            }
        }
        best.map(|(_, over, pair, message)| (over, pair, message))
    }
}
