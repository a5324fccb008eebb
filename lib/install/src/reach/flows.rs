//! The least set of channels that can come about, as pairs of holders that can obtain their two ends.
//!
//! The two ends of a channel move independently, so the set is represented by two relations for each contract: holders
//! between which the importing end may pass, and the exporting end. The ends of a channel created by two holders can
//! pass to every holder reachable by those relations. New channels carry further endpoints, so both relations grow up
//! to a fixed point. The set contains every channel that can come about, and may contain some that never do. Key type:
//! [`Flows`]. Deliberately not here: data sent over the channels.

use alloc::vec;
use alloc::vec::Vec;

use manifest_model::Side;

use crate::reach::grid::{Grid, Set};
use crate::reach::protocols::{Argument, Message, Wanted};
use crate::reach::rules::Rule;
use crate::reach::world::{Bound, Origin, Service, World};

/// The two relations of each contract, and the channels.
#[derive(Clone, Debug)]
pub struct Flows {
    /// By contract: channels, from the holder of the importing end to that of the exporting end.
    pub links: Vec<Grid>,
    /// By end and contract: pairs of holders between which that end may pass in one step.
    steps: [Vec<Grid>; 2],
    /// By end: the same for endpoints of any contract.
    any: [Grid; 2],
    /// By end and contract: pairs of holders between which it may pass in any number of steps.
    reach: [Vec<Vec<Set>>; 2],
    /// By end and contract: holders that can have that end of some channel.
    held: [Vec<Set>; 2],
    /// By contract: the states in which a channel can be.
    states: Vec<Vec<bool>>,
    /// By holder: services that rules let it bind.
    bound: Vec<Vec<Bound>>,
    /// Whether providers accept clients of contracts that they do not serve, and return others. Enabled last, so that
    /// channels that do not need it are explained without it.
    is_collusive: bool,
    /// Pairs of parents and children: requests of the former to the namespace count as the latter's.
    underway: Vec<(usize, usize)>,
    rules: Vec<Rule>,
    round: u16,
}

/// Index of an end in arrays of two.
fn end(side: Side) -> usize {
    match side {
        Side::Importer => 0,
        Side::Exporter => 1,
    }
}

impl Flows {
    /// Applies these rules up to a fixed point. Services that come about on the way are added to the world.
    pub fn of(world: &mut World, rules: &[Rule]) -> Flows {
        let (count, contracts) = (world.holders.len(), world.protocols.len());
        let grids = || vec![Grid::empty(count); contracts];
        let reach = || vec![Vec::new(); contracts];
        let first = |states: usize| (0..states).map(|state| state == 0).collect();
        let mut flows = Flows {
            links: grids(),
            steps: [grids(), grids()],
            any: [Grid::empty(count), Grid::empty(count)],
            reach: [reach(), reach()],
            held: [vec![Set::empty(count); contracts], vec![Set::empty(count); contracts]],
            states: world.protocols.iter().map(|protocol| first(protocol.states())).collect(),
            bound: (0..count).map(|client| world.bound_by(client)).collect(),
            is_collusive: false,
            underway: Vec::new(),
            rules: rules.to_vec(),
            round: 0,
        };
        loop {
            let mut grew = flows.connect(world);
            grew |= flows.send(world);
            grew |= flows.start(world);
            grew |= flows.bind(world);
            flows.round = flows.round.saturating_add(1);
            if !grew && core::mem::replace(&mut flows.is_collusive, true) {
                return flows;
            }
        }
    }

    /// Returns the holders that an end of the holder may reach, itself included.
    pub fn reached(&self, contract: usize, side: Side, holder: usize) -> &Set {
        &self.reach[end(side)][contract][holder]
    }

    /// Returns the round in which an end was found to pass from one holder to another in one step.
    pub fn step_found_in(&self, contract: usize, side: Side, from: usize, to: usize) -> Option<u16> {
        let own = self.steps[end(side)][contract].found_in(from, to);
        let any = self.any[end(side)].found_in(from, to);
        own.into_iter().chain(any).min()
    }

    /// Returns whether a rule is followed.
    pub fn follows(&self, rule: Rule) -> bool {
        self.rules.contains(&rule)
    }

    /// Returns whether a channel of the contract can be in the state.
    pub fn comes_to(&self, contract: usize, state: usize) -> bool {
        self.states[contract].get(state).copied().unwrap_or(false)
    }

    /// Returns whether a message can be sent in some state, according to the states found so far.
    pub fn is_said(&self, world: &World, contract: usize, message: usize) -> bool {
        let protocol = &world.protocols[contract];
        (0..protocol.states()).any(|state| self.comes_to(contract, state) && protocol.next(state, message).is_some())
    }

    /// Returns whether the holder can have an endpoint that a message carries.
    fn has(&self, world: &World, movable: &[Set; 2], holder: usize, argument: &Argument) -> bool {
        match (argument.contract, argument.state) {
            (Wanted::Known(contract), _) => self.has_of(world, holder, contract, argument),
            (Wanted::Any, None) => movable[end(argument.side)].has(holder),
            (Wanted::Any, Some(_)) => {
                (0..self.links.len()).any(|contract| self.has_of(world, holder, contract, argument))
            }
            (Wanted::Unlisted, _) => false,
        }
    }

    fn has_of(&self, world: &World, holder: usize, contract: usize, argument: &Argument) -> bool {
        self.holds(holder, contract, argument.side) && self.is_movable(world, contract, argument)
    }

    /// Returns whether the holder can have that end of some channel.
    pub fn holds(&self, holder: usize, contract: usize, side: Side) -> bool {
        self.held[end(side)][contract].has(holder)
    }

    /// Returns whether an end of the contract can be in a state in which it is the sender and can move with a message.
    pub fn is_movable(&self, world: &World, contract: usize, argument: &Argument) -> bool {
        let protocol = &world.protocols[contract];
        let fits = |state: usize| argument.state.is_none_or(|wanted| wanted == state);
        let mut states = (0..protocol.states()).filter(|&state| fits(state) && self.comes_to(contract, state));
        states.any(|state| protocol.sender(state) == Some(argument.side))
    }

    /// Closes the relations and adds the channels that follow.
    fn connect(&mut self, world: &World) -> bool {
        let mut grew = false;
        let any = [self.any[0].closed_with(None), self.any[1].closed_with(None)];
        for contract in 0..self.links.len() {
            for side in [Side::Importer, Side::Exporter] {
                let argument = Argument { contract: Wanted::Any, side, state: None };
                let goes_anyhow = self.is_movable(world, contract, &argument);
                let steps = &self.steps[end(side)][contract];
                self.reach[end(side)][contract] = match (steps.is_empty(), goes_anyhow) {
                    (true, true) => any[end(side)].clone(),
                    (_, true) => steps.closed_with(Some(&any[end(side)])),
                    (_, false) => steps.closed_with(None),
                };
            }
            for seed in &world.seeds[contract] {
                let rule = if seed.origin == Origin::Created { Rule::Create } else { Rule::Root };
                if !self.rules.contains(&rule) {
                    continue;
                }
                let exporters = &self.reach[1][contract][seed.exporter];
                for importer in self.reach[0][contract][seed.importer].iter() {
                    grew |= self.links[contract].insert_all(importer, exporters, self.round);
                }
                self.held[0][contract].add(&self.reach[0][contract][seed.importer]);
                self.held[1][contract].add(exporters);
            }
        }
        grew
    }

    /// By end: holders of a movable endpoint of some contract.
    fn movable(&self, world: &World) -> [Set; 2] {
        let mut movable = [Set::empty(world.holders.len()), Set::empty(world.holders.len())];
        for side in [Side::Importer, Side::Exporter] {
            let argument = Argument { contract: Wanted::Any, side, state: None };
            for contract in (0..self.links.len()).filter(|&contract| self.is_movable(world, contract, &argument)) {
                movable[end(side)].add(&self.held[end(side)][contract]);
            }
        }
        movable
    }

    /// Adds the endpoints carried by messages, and the states that channels enter by them.
    fn send(&mut self, world: &World) -> bool {
        let mut grew = false;
        let movable = self.movable(world);
        for (contract, protocol) in world.protocols.iter().enumerate() {
            for (number, message) in protocol.messages.iter().enumerate() {
                if !self.is_said(world, contract, number) {
                    continue;
                }
                let mut is_sent = false;
                for sender in 0..world.holders.len() {
                    let is_trusted = world.holders[sender].is_trusted;
                    if !self.holds(sender, contract, message.sender) {
                        continue;
                    }
                    if is_trusted
                        || message.arguments.iter().all(|argument| self.has(world, &movable, sender, argument))
                    {
                        is_sent = true;
                        // The root and the namespace pass on endpoints by the other rules only.
                        grew |= !is_trusted && self.carry(contract, message, sender);
                    }
                }
                if is_sent {
                    grew |= self.advance(world, contract, number);
                }
            }
        }
        grew
    }

    fn carry(&mut self, over: usize, message: &Message, sender: usize) -> bool {
        let receivers = match message.sender {
            Side::Importer => self.links[over].row(sender).clone(),
            Side::Exporter => {
                let mut receivers = Set::empty(self.reach[1][over].len());
                self.links[over].column(sender).for_each(|receiver| receivers.insert(receiver));
                receivers
            }
        };
        let mut grew = false;
        for argument in &message.arguments {
            let (rule, grid) = match argument.contract {
                Wanted::Known(contract) => (Rule::Message, &mut self.steps[end(argument.side)][contract]),
                Wanted::Any => (Rule::AnyMessage, &mut self.any[end(argument.side)]),
                Wanted::Unlisted => continue,
            };
            grew |= self.rules.contains(&rule) && grid.insert_all(sender, &receivers, self.round);
        }
        grew
    }

    fn advance(&mut self, world: &World, contract: usize, message: usize) -> bool {
        let protocol = &world.protocols[contract];
        let mut grew = false;
        for state in 0..protocol.states() {
            if let Some(next) = protocol.next(state, message).filter(|_| self.comes_to(contract, state))
                && let Some(place) = self.states[contract].get_mut(next)
            {
                grew |= !core::mem::replace(place, true);
            }
        }
        grew
    }

    /// Adds endpoints that parents give children.
    fn start(&mut self, world: &mut World) -> bool {
        let mut grew = false;
        for child in 0..world.holders.len() {
            for slot in world.holders[child].slots.clone() {
                if world.holders[child].is_boot || !self.comes_to(slot.contract, slot.state) {
                    continue;
                }
                for parent in 0..world.holders.len() {
                    if !world.holders[parent].starts || !self.holds(parent, slot.contract, slot.side) {
                        continue;
                    }
                    if self.follows(Rule::Start) {
                        let steps = &mut self.steps[end(slot.side)][slot.contract];
                        grew |= steps.insert(parent, child, self.round);
                    }
                    let is_underway = Some(slot.contract) == world.directory
                        && slot.side == Side::Importer
                        && is_asked(world, slot.contract, slot.state);
                    if is_underway && self.follows(Rule::Underway) {
                        grew |= self.hand_over(world, parent, child);
                    }
                }
            }
        }
        grew
    }

    /// Handles a parent's request to the namespace during which its child gets the folder: the child is taken for the
    /// requester.
    fn hand_over(&mut self, world: &mut World, parent: usize, child: usize) -> bool {
        let (Some(namespace), Some(directory)) = (world.namespace, world.directory) else { return false };
        if !self.links[directory].has(parent, namespace) {
            return false;
        }
        if !self.underway.contains(&(parent, child)) {
            self.underway.push((parent, child));
        }
        let mut grew = self.any[1].insert(parent, child, self.round);
        for bound in self.bound[child].clone() {
            for provider in self.successors(world, bound.provider) {
                grew |= self.any[1].insert(parent, provider, self.round);
            }
        }
        let paths: Vec<_> = world.registrars.iter().filter(|(holder, _)| *holder == child).cloned().collect();
        let Some(provider) = world.provider.filter(|_| !paths.is_empty()) else { return grew };
        for holder in self.links[provider].row(parent).iter() {
            for (_, path) in &paths {
                let program = world.holders[holder].program;
                let service = Service { path: path.clone(), contract: None, program, holder };
                if !world.services.contains(&service) {
                    world.services.push(service);
                    grew = true;
                }
            }
        }
        if grew {
            self.bound = (0..world.holders.len()).map(|client| world.bound_by(client)).collect();
        }
        grew
    }

    /// Adds endpoints that the namespace hands to providers, and those they return.
    fn bind(&mut self, world: &World) -> bool {
        let (Some(namespace), Some(directory)) = (world.namespace, world.directory) else { return false };
        let mut grew = false;
        for client in self.links[directory].column(namespace).collect::<Vec<_>>() {
            if world.holders[client].is_trusted {
                continue;
            }
            for Bound { provider, contracts } in self.bound[client].clone() {
                if !self.is_registered(world, namespace, provider) {
                    continue;
                }
                for provider in self.successors(world, provider) {
                    grew |= self.hand(world, client, provider, &contracts);
                }
            }
            // Folders of the namespace itself.
            if self.rules.contains(&Rule::Bind) && !world.holders[client].rules.is_empty() {
                grew |= self.any[1].insert(client, namespace, self.round);
            }
        }
        grew
    }

    /// Returns whether the namespace can have a channel to a provider, or either the namespace or the root is the
    /// provider.
    fn is_registered(&self, world: &World, namespace: usize, provider: usize) -> bool {
        let has_channel = |contract: usize| self.links[contract].has(namespace, provider);
        world.holders[provider].is_trusted || world.provider.is_none_or(has_channel)
    }

    /// Lets the namespace hand a client to a provider of these contracts.
    fn hand(&mut self, world: &World, client: usize, provider: usize, contracts: &[usize]) -> bool {
        let mut grew = false;
        for &contract in contracts.iter().filter(|_| self.rules.contains(&Rule::Bind)) {
            grew |= self.steps[1][contract].insert(client, provider, self.round);
        }
        if self.follows(Rule::Bind) && self.is_collusive {
            grew |= self.any[1].insert(client, provider, self.round);
        }
        if self.follows(Rule::Return) && self.is_collusive && !world.holders[provider].is_trusted {
            grew |= self.any[1].insert(provider, client, self.round);
        }
        grew
    }

    /// Returns a provider, and all holders that may get the end at which it is handed clients.
    pub fn successors(&self, world: &World, provider: usize) -> Vec<usize> {
        match world.provider.filter(|_| self.follows(Rule::Succeed)) {
            Some(contract) => self.reached(contract, Side::Exporter, provider).iter().collect(),
            None => Vec::from([provider]),
        }
    }

    /// Returns whether a holder may bind the service, or request it in the name of one that may.
    pub fn binds(&self, world: &World, client: usize, service: &Service) -> bool {
        let (Some(namespace), Some(directory)) = (world.namespace, world.directory) else { return false };
        let asked = self.underway.iter().filter(|(parent, _)| *parent == client).map(|(_, child)| *child);
        self.links[directory].has(client, namespace)
            && asked.chain([client]).any(|asking| world.may_bind(asking, service))
    }
}

/// Returns whether a folder is in this state after a request with an endpoint of any contract, or of a provider.
pub fn is_asked(world: &World, directory: usize, state: usize) -> bool {
    let protocol = &world.protocols[directory];
    let carries = |message: &Message| message.sender == Side::Importer && !message.arguments.is_empty();
    let leads = |number: usize| (0..protocol.states()).any(|from| protocol.next(from, number) == Some(state));
    protocol.messages.iter().enumerate().any(|(number, message)| carries(message) && leads(number))
}
