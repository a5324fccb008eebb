//! The model of a circle of waits: its tasks, and all channels between them.

use abi::{Direction, name_tag};
use lang::{Carrier, SystemChannel};

use crate::deadlock::waits::{Wait, Waits};

/// Most channels of a model. The states to search grow exponentially with their number.
pub const CHANNELS_MAX: usize = 24;
/// Channels in the model where there can be any number of them.
const SEVERAL: usize = 2;

/// A channel of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Channel {
    /// The task with the importing end, an index of [`Waits::tasks`].
    pub importer: usize,
    /// The task with the exporting end.
    pub exporter: usize,
    /// Its contract.
    pub contract: String,
    /// Its state at the beginning.
    state: usize,
    /// The channel whose messages give its endpoints.
    given_over: Option<Carrier>,
}

/// The channels among the tasks of a circle.
#[derive(Debug)]
pub struct Model<'w> {
    waits: &'w Waits,
    names: Vec<String>,
    /// Its channels.
    pub channels: Vec<Channel>,
}

impl<'w> Model<'w> {
    /// Makes the model of a group of tasks.
    pub fn of(waits: &'w Waits, group: &[usize]) -> Model<'w> {
        let names = waits.tasks.iter().map(|task| task.name()).collect();
        let mut model = Model { waits, names, channels: Vec::new() };
        let within = waits.within(group);
        let (given, own): (Vec<_>, Vec<_>) =
            within.into_iter().partition(|wait| wait.in_messages && !waits.carriers(wait, group).is_empty());
        for wait in own {
            let state = if wait.is_forwarded { waits.ready(&wait.contract) } else { 0 };
            let contract = wait.contract.clone();
            let channel = Channel { importer: wait.from, exporter: wait.to, contract, state, given_over: None };
            // The namespace has one channel to each provider.
            model.add(channel, if wait.many && !wait.is_forwarded { SEVERAL } else { 1 });
        }
        for wait in given {
            for carrier in waits.carriers(wait, group) {
                model.add_given(wait.from, wait.to, &wait.contract, &carrier);
            }
        }
        model
    }

    fn add(&mut self, channel: Channel, count: usize) {
        self.channels.extend(std::iter::repeat_n(channel, count));
    }

    /// Adds a channel for each one over which its endpoints pass, which are added if they are no waits themselves.
    fn add_given(&mut self, importer: usize, exporter: usize, contract: &str, carrier: &Given) {
        let is_carrier = |channel: &Channel| {
            (channel.importer, channel.exporter, &channel.contract)
                == (carrier.importer, carrier.exporter, &carrier.contract)
        };
        if !self.channels.iter().any(is_carrier) {
            let count = if carrier.many { SEVERAL } else { 1 };
            let Given { importer, exporter, contract, .. } = carrier.clone();
            self.add(Channel { importer, exporter, contract, state: 0, given_over: None }, count);
        }
        let over: Vec<usize> =
            self.channels.iter().enumerate().filter(|(_, one)| is_carrier(one)).map(|(index, _)| index).collect();
        for channel in over {
            let given_over = Some(Carrier { channel, is_reversed: carrier.is_reversed });
            self.add(Channel { importer, exporter, contract: contract.into(), state: 0, given_over }, 1);
        }
    }

    /// Returns the model for `spin`; `None` if a contract's automaton is missing.
    pub fn text(&self) -> Option<String> {
        let channel = |channel: &Channel| {
            Some(SystemChannel {
                importer: self.names.get(channel.importer)?,
                exporter: self.names.get(channel.exporter)?,
                automaton: self.waits.automata.get(&channel.contract)?,
                state: channel.state,
                given_over: channel.given_over,
            })
        };
        let channels: Option<Vec<SystemChannel<'_>>> = self.channels.iter().map(channel).collect();
        channels.map(|channels| lang::emit_promela_system(&channels))
    }
}

/// A conversation that carries endpoints of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    importer: usize,
    exporter: usize,
    contract: String,
    many: bool,
    is_reversed: bool,
}

impl Waits {
    /// Returns the conversations between the same two programs whose messages carry endpoints of this one.
    pub fn carriers(&self, wait: &Wait, group: &[usize]) -> Vec<Given> {
        let (client, server) = (&self.tasks[wait.from].program, &self.tasks[wait.to].program);
        let mut found = Vec::new();
        for (conversation, exporter) in &self.conversations {
            let is_reversed = match (&conversation.importer, &conversation.exporter) {
                (importer, exporter) if importer == client && exporter == server => false,
                (importer, exporter) if importer == server && exporter == client => true,
                _ => continue,
            };
            if !self.carries(&conversation.contract, &wait.contract) {
                continue;
            }
            let of_importer = |task: &&usize| self.tasks[**task].program == conversation.importer;
            // A task outside the circle may have the endpoint of the carrier; the program's own stands for it.
            let importer = group.iter().find(of_importer).copied();
            found.extend(importer.map(|importer| Given {
                importer,
                exporter: *exporter,
                contract: conversation.contract.clone(),
                many: conversation.many,
                is_reversed,
            }));
        }
        found
    }

    /// Returns the first state of a contract with a name in which the importer sends.
    fn ready(&self, contract: &str) -> usize {
        let Some(automaton) = self.automata.get(contract) else { return 0 };
        let is_ready = |state: &usize| {
            let number = u16::try_from(*state).unwrap_or(u16::MAX);
            automaton.sender_in(number) == Some(Direction::ToExporter) && !lang::waits_alone(automaton, *state)
        };
        (0..automaton.states.len()).find(is_ready).unwrap_or(0)
    }

    fn carries(&self, carrier: &str, carried: &str) -> bool {
        let Some(automaton) = self.automata.get(carrier) else { return false };
        let tag = name_tag(carried);
        automaton.messages.iter().flat_map(|message| &message.endpoints).any(|endpoint| endpoint.contract == tag)
    }
}
