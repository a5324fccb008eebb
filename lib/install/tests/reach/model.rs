//! The model: how endpoints move, one step at a time, as permitted by the kernel, the root and the namespace.
//!
//! Each step names its permission. The model is independent of the closure: it reads the [`Plan`] of a system and not
//! its manifests. Processes, channels, queues and states are those of the kernel; of messages it has only the
//! endpoints, and the path of a request to the namespace. Blocks carry no endpoints. Processes never end here: an exit
//! only takes endpoints away. All programs are hostile and collude; the root, which has finished when the model begins,
//! and the namespace are trusted.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::plan::{DIRECTORY, End, PROVIDER, Plan, ROOT_PATH};

pub const BIND: usize = 0;
const BOUND: usize = 1;
pub const NOT_BOUND: usize = 2;
pub const REGISTER: usize = 3;
const DONE: usize = 4;
const CONNECT: usize = 0;
const NACK: usize = 2;

/// Limits besides the root's own objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Limits {
    pub processes: usize,
    pub channels: usize,
}

/// A process's program, and whether the root started it.
pub type Class = (usize, bool);

/// An end of a channel.
pub type EndRef = (usize, End);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// Owned by a process.
    Owned(usize),
    /// In a message queued at another end.
    Queued(EndRef),
    /// Closed.
    Closed,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Message {
    pub tag: usize,
    pub ends: Vec<EndRef>,
    /// For the namespace.
    pub path: usize,
    /// Sending program.
    pub sender: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Half {
    pub place: Place,
    /// The contract's state seen from this end.
    pub state: usize,
    /// The program of the owner, or of the last owner.
    pub speaker: usize,
    /// Received messages.
    pub queue: VecDeque<Message>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Channel {
    pub contract: usize,
    pub halves: [Half; 2],
    /// Paths at which it was bound, or over whose channels its importing end was given.
    pub services: BTreeSet<usize>,
}

/// A step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Create {
        process: usize,
        contract: usize,
    },
    Send {
        process: usize,
        over: EndRef,
        tag: usize,
        ends: Vec<EndRef>,
        path: usize,
    },
    Receive {
        process: usize,
        at: EndRef,
    },
    Start {
        process: usize,
        program: usize,
        given: Vec<Option<EndRef>>,
    },
    /// The namespace receives a client's request.
    Serve {
        at: EndRef,
    },
    /// The namespace receives a provider's answer.
    Answer {
        at: EndRef,
    },
}

/// Observations: channels by the classes of their holders, and the paths that each program reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    pub channels: BTreeSet<(Class, usize, Class)>,
    pub reached: BTreeSet<(usize, usize)>,
}

/// A running system.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Model {
    pub processes: Vec<Class>,
    pub channels: Vec<Channel>,
    /// By path: the namespace's ends of channels to providers.
    providers: BTreeMap<usize, Vec<EndRef>>,
    /// By the namespace's end to a provider: the requester.
    pending: BTreeMap<EndRef, EndRef>,
    limits: Limits,
}

const NAMESPACE: usize = 0;

impl Model {
    /// The system after the root has started its instances: `wiring.rs` of the service manager.
    pub fn boot(plan: &Plan, limits: Limits, seen: &mut Seen) -> Model {
        let (processes, channels) = (Vec::new(), Vec::new());
        let (providers, pending) = (BTreeMap::new(), BTreeMap::new());
        let mut model = Model { processes, channels, providers, pending, limits };
        model.processes.push((plan.namespace(), true));
        let instances: Vec<usize> = (1..plan.programs.len()).filter(|&one| plan.programs[one].is_instance).collect();
        model.processes.extend(instances.iter().map(|&program| (program, true)));
        for (number, &program) in instances.iter().enumerate() {
            let process = number + 1;
            for &(path, _) in &plan.programs[program].provides {
                let channel = model.open(plan, PROVIDER, NAMESPACE, process);
                model.providers.entry(path).or_default().push((channel, End::Importer));
            }
        }
        for (number, &program) in instances.iter().enumerate() {
            for &(contract, path) in &plan.programs[program].bound {
                let provider = match path {
                    ROOT_PATH => Some(NAMESPACE),
                    _ => instances
                        .iter()
                        .position(|&other| plan.programs[other].provides.contains(&(path, contract)))
                        .map(|place| place + 1),
                };
                // It could not start.
                let Some(provider) = provider else { continue };
                let channel = model.open(plan, contract, number + 1, provider);
                model.channels[channel].services.extend((path != ROOT_PATH).then_some(path));
                model.note(plan, channel, seen);
            }
        }
        model.limits.processes += model.processes.len();
        model.limits.channels += model.channels.len();
        model
    }

    fn open(&mut self, plan: &Plan, contract: usize, importer: usize, exporter: usize) -> usize {
        let half = |process: usize| Half {
            place: Place::Owned(process),
            state: 0,
            speaker: self.processes[process].0,
            queue: VecDeque::new(),
        };
        let halves = [half(importer), half(exporter)];
        debug_assert!(contract < plan.contracts.len());
        self.channels.push(Channel { contract, halves, services: BTreeSet::new() });
        self.channels.len() - 1
    }

    pub fn half(&self, (channel, end): EndRef) -> &Half {
        &self.channels[channel].halves[end as usize]
    }

    fn half_mut(&mut self, (channel, end): EndRef) -> &mut Half {
        &mut self.channels[channel].halves[end as usize]
    }

    pub fn owned(&self, process: usize) -> impl Iterator<Item = EndRef> + '_ {
        let ends = (0..self.channels.len()).flat_map(|channel| [(channel, End::Importer), (channel, End::Exporter)]);
        ends.filter(move |&end| self.half(end).place == Place::Owned(process))
    }

    /// Records the holders of a channel's ends.
    fn note(&self, plan: &Plan, channel: usize, seen: &mut Seen) {
        let known = &self.channels[channel];
        let Place::Owned(importer) = known.halves[0].place else { return };
        let importer = self.processes[importer];
        let mut services = known.services.clone();
        if let Place::Owned(exporter) = known.halves[1].place {
            let exporter = self.processes[exporter];
            seen.channels.insert((importer, known.contract, exporter));
            // A channel to the boot-time provider of a path counts, whatever its origin; for a folder, any channel.
            let served = plan.programs[exporter.0].provides.iter().filter(|_| exporter.1);
            let counts = |contract: usize| contract == DIRECTORY || plan.family(contract).contains(&known.contract);
            let counted = served.filter(|(_, contract)| counts(*contract));
            services.extend(counted.map(|(path, _)| *path));
        }
        seen.reached.extend(services.into_iter().map(|path| (importer.0, path)));
    }

    /// `check_movable`: whether the end may be carried by a message with this argument.
    pub fn is_movable(&self, plan: &Plan, end: EndRef, argument: &crate::plan::Argument) -> bool {
        let (contract, half) = (self.channels[end.0].contract, self.half(end));
        argument.contract.is_none_or(|wanted| wanted == contract)
            && argument.end == end.1
            && argument.state.is_none_or(|state| state == half.state)
            && plan.contracts[contract].sender(half.state) == Some(end.1)
            && half.queue.is_empty()
    }

    /// `leads_to`: whether an end is queued in a message on its way to another.
    fn leads_to(&self, from: EndRef, target: EndRef) -> bool {
        let mut at = from;
        loop {
            if at == target {
                return true;
            }
            match self.half(at).place {
                Place::Queued(next) => at = next,
                _ => return false,
            }
        }
    }

    /// Returns whether the kernel permits the step; steps for which it would kill the process are excluded.
    pub fn allows(&self, plan: &Plan, step: &Step) -> bool {
        match step {
            Step::Create { process, contract } => {
                let (program, _) = self.processes[*process];
                self.channels.len() < self.limits.channels
                    && !plan.programs[program].is_mute
                    && plan.programs[program].lists.contains(contract)
            }
            Step::Send { process, over, tag, ends, .. } => {
                let contract = &plan.contracts[self.channels[over.0].contract];
                let half = self.half(*over);
                let message = contract.messages.get(*tag);
                half.place == Place::Owned(*process)
                    && contract.next(half.state, *tag).is_some()
                    && message.is_some_and(|message| {
                        message.sender == over.1
                            && message.arguments.len() == ends.len()
                            && message.arguments.iter().zip(ends).enumerate().all(|(number, (argument, &end))| {
                                end.0 != over.0
                                    && !ends[..number].contains(&end)
                                    && self.half(end).place == Place::Owned(*process)
                                    && self.is_movable(plan, end, argument)
                                    && !self.leads_to((over.0, over.1.other()), end)
                            })
                    })
            }
            Step::Receive { process, at } => {
                let half = self.half(*at);
                half.place == Place::Owned(*process) && !half.queue.is_empty()
            }
            // `process_create`, `process_give_endpoint`, `process_start`.
            Step::Start { process, program, given } => {
                let slots = &plan.programs[*program].slots;
                self.processes.len() < self.limits.processes
                    && plan.programs[self.processes[*process].0].starts
                    && slots.len() == given.len()
                    && slots.iter().zip(given).enumerate().all(|(number, (slot, given))| {
                        given.is_none_or(|end| {
                            self.half(end).place == Place::Owned(*process)
                                && !given_before(&given_ends(step), number, end)
                                && self.channels[end.0].contract == slot.contract
                                && end.1 == slot.end
                                && self.half(end).state == slot.state
                        })
                    })
            }
            Step::Serve { at } => self.half(*at).place == Place::Owned(NAMESPACE) && !self.half(*at).queue.is_empty(),
            Step::Answer { at } => self.pending.contains_key(at) && !self.half(*at).queue.is_empty(),
        }
    }

    /// Takes a permitted step.
    pub fn take(&mut self, plan: &Plan, step: &Step, seen: &mut Seen) {
        match step {
            Step::Create { process, contract } => {
                let channel = self.open(plan, *contract, *process, *process);
                self.note(plan, channel, seen);
            }
            Step::Send { process, over, tag, ends, path } => {
                let sender = self.processes[*process].0;
                self.send(plan, *over, Message { tag: *tag, ends: ends.clone(), path: *path, sender });
            }
            Step::Receive { process, at } => {
                let message = self.receive(plan, *at);
                for end in message.ends {
                    self.adopt(plan, *process, end, seen);
                }
            }
            Step::Start { process: _, program, given } => {
                self.processes.push((*program, false));
                let child = self.processes.len() - 1;
                for end in given.iter().flatten() {
                    self.adopt(plan, child, *end, seen);
                }
            }
            Step::Serve { at } => self.serve(plan, *at, seen),
            Step::Answer { at } => self.answer(plan, *at),
        }
    }

    /// `channel_send`.
    fn send(&mut self, plan: &Plan, over: EndRef, message: Message) {
        let contract = self.channels[over.0].contract;
        let to = (over.0, over.1.other());
        let state = self.half(over).state;
        self.half_mut(over).state = plan.contracts[contract].next(state, message.tag).expect("it is allowed");
        let gives = plan.contracts[contract].messages[message.tag].sender == End::Exporter;
        for &end in &message.ends {
            self.half_mut(end).place = Place::Queued(to);
            // An endpoint that a service's channel gives its client belongs to the service.
            if gives && end.1 == End::Importer {
                let services = self.giving(plan, over.0);
                self.channels[end.0].services.extend(services);
            }
        }
        if self.half(to).place == Place::Closed {
            for end in message.ends {
                self.half_mut(end).place = Place::Closed;
            }
            return;
        }
        self.half_mut(to).queue.push_back(message);
    }

    /// Returns the paths whose service acts through the exporting end of a channel.
    fn giving(&self, plan: &Plan, channel: usize) -> BTreeSet<usize> {
        let known = &self.channels[channel];
        let mut services = known.services.clone();
        if let Place::Owned(exporter) = known.halves[1].place {
            let (program, is_boot) = self.processes[exporter];
            services.extend(plan.programs[program].provides.iter().filter(|_| is_boot).map(|(path, _)| *path));
        }
        services.retain(|&path| plan.served(path).contains(&known.contract));
        services
    }

    /// `channel_receive`.
    fn receive(&mut self, plan: &Plan, at: EndRef) -> Message {
        let contract = self.channels[at.0].contract;
        let half = self.half_mut(at);
        let message = half.queue.pop_front().expect("it is allowed");
        half.state = plan.contracts[contract].next(half.state, message.tag).expect("the sender was let");
        message
    }

    /// `adopt_endpoint`: the receiver owns it, and speaks through it.
    fn adopt(&mut self, plan: &Plan, process: usize, end: EndRef, seen: &mut Seen) {
        let speaker = self.processes[process].0;
        let half = self.half_mut(end);
        half.place = Place::Owned(process);
        half.speaker = speaker;
        self.note(plan, end.0, seen);
    }

    /// The directory service: `server.rs`, `shared.rs`.
    fn serve(&mut self, plan: &Plan, at: EndRef, seen: &mut Seen) {
        let who = self.half((at.0, End::Importer)).speaker;
        if self.channels[at.0].contract != DIRECTORY {
            // Bound and not a folder: it was given to the provider, or returned.
            return;
        }
        let message = self.receive(plan, at);
        let reply = |tag: usize, ends: Vec<EndRef>| Message { tag, ends, path: 0, sender: plan.namespace() };
        match message.tag {
            BIND => {
                let end = message.ends[0];
                let may = plan.programs[who].rules.contains(&message.path);
                if message.path == ROOT_PATH && may && self.channels[end.0].contract == DIRECTORY {
                    self.adopt(plan, NAMESPACE, end, seen);
                    return self.send(plan, at, reply(BOUND, Vec::new()));
                }
                let idle =
                    |provider: &&EndRef| !self.pending.contains_key(provider) && self.half(**provider).queue.is_empty();
                let provider = self.providers.get(&message.path).and_then(|all| all.iter().rev().find(idle)).copied();
                match provider.filter(|_| may) {
                    Some(provider) => {
                        if plan.served(message.path).contains(&self.channels[end.0].contract) {
                            self.channels[end.0].services.insert(message.path);
                            self.note(plan, end.0, seen);
                        }
                        self.pending.insert(provider, at);
                        self.send(plan, provider, Message { tag: CONNECT, ..reply(0, Vec::from([end])) });
                    }
                    None => self.send(plan, at, reply(NOT_BOUND, Vec::from([end]))),
                }
            }
            REGISTER => {
                let provider = message.ends[0];
                let exporter = match self.half((provider.0, End::Exporter)).place {
                    Place::Owned(process) => Some(self.processes[process]),
                    _ => None,
                };
                let honest = |(program, _): Class| program == who || plan.programs[who].names.contains(&program);
                // A permitted program registers itself and those in its parameters only; a request of another program
                // in its name is not its own.
                let is_trusted = message.sender != who || exporter.is_some_and(honest);
                let path = message.path;
                if plan.programs[who].registers == Some(path) && is_trusted {
                    self.half_mut(provider).place = Place::Owned(NAMESPACE);
                    self.providers.entry(path).or_default().push(provider);
                } else {
                    self.half_mut(provider).place = Place::Closed;
                }
                self.send(plan, at, reply(DONE, Vec::new()));
            }
            _ => {
                for end in message.ends {
                    self.half_mut(end).place = Place::Closed;
                }
                self.send(plan, at, reply(DONE, Vec::new()));
            }
        }
    }

    /// The directory service: a provider's answer about a client.
    fn answer(&mut self, plan: &Plan, at: EndRef) {
        let client = self.pending.remove(&at).expect("it is allowed");
        let message = self.receive(plan, at);
        let (tag, ends) = if message.tag == NACK { (NOT_BOUND, message.ends) } else { (BOUND, Vec::new()) };
        self.send(plan, client, Message { tag, ends, path: 0, sender: plan.namespace() });
    }

    /// Returns the possible steps of the namespace.
    pub fn of_namespace(&self) -> Vec<Step> {
        let clients = self.owned(NAMESPACE).filter(|end| end.1 == End::Exporter);
        let clients = clients.filter(|end| self.channels[end.0].contract == DIRECTORY).map(|at| Step::Serve { at });
        let answers = self.pending.keys().map(|&at| Step::Answer { at });
        let waiting = |step: &Step| match step {
            Step::Serve { at } | Step::Answer { at } => {
                !self.half(*at).queue.is_empty() && !self.pending.values().any(|client| client == at)
            }
            _ => false,
        };
        clients.chain(answers).filter(waiting).collect()
    }
}

fn given_ends(step: &Step) -> Vec<Option<EndRef>> {
    match step {
        Step::Start { given, .. } => given.clone(),
        _ => Vec::new(),
    }
}

fn given_before(given: &[Option<EndRef>], number: usize, end: EndRef) -> bool {
    given[..number].contains(&Some(end))
}
