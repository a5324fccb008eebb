//! The contracts of a system as far as they move endpoints.
//!
//! Key types: [`Protocol`] (one contract), [`Message`], [`Argument`] (an endpoint in a message). They are read from the
//! automata in the manifests, which the kernel's monitor enforces. Blocks are omitted: they hold only plain data.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use abi::{Automaton, Direction, NO_TRANSITION, name_tag};
use manifest_model::Side;

use crate::installed::Installed;

/// A contract.
#[derive(Clone, Debug, Default)]
pub struct Protocol {
    /// Its name.
    pub name: String,
    /// Its messages, by tag.
    pub messages: Vec<Message>,
    /// By state and message: the next state.
    next: Vec<Vec<Option<usize>>>,
    /// By state: the end that sends.
    senders: Vec<Option<Side>>,
}

/// A message.
#[derive(Clone, Debug)]
pub struct Message {
    /// Its name.
    pub name: String,
    /// The end that sends it.
    pub sender: Side,
    /// The endpoints that it carries.
    pub arguments: Vec<Argument>,
}

/// An endpoint in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argument {
    /// Its contract.
    pub contract: Wanted,
    /// Side of the endpoint.
    pub side: Side,
    /// Its state; `None`: any in which it can be moved.
    pub state: Option<usize>,
}

/// The contract of an endpoint in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// This one.
    Known(usize),
    /// Any.
    Any,
    /// Not listed by any program of the system: no such channel can be created, so the message is never sent.
    Unlisted,
}

impl Protocol {
    /// Returns the contracts that programs of the system list. The first of a name is used: the kernel never has two of
    /// a name at once.
    pub fn all(installed: &Installed) -> Vec<Protocol> {
        let mut automata: Vec<(String, Option<Automaton>)> = Vec::new();
        for used in installed.programs.iter().flat_map(|program| &program.manifest.contracts) {
            if automata.iter().all(|(name, _)| *name != used.name) {
                automata.push((used.name.clone(), Automaton::decode(&used.automaton).ok()));
            }
        }
        let tags: Vec<u64> = automata.iter().map(|(name, _)| name_tag(name)).collect();
        let read = |(name, automaton): &(String, Option<Automaton>)| match automaton {
            Some(automaton) => Protocol::read(name, automaton, &tags),
            // The kernel runs no program that lists it.
            None => Protocol { name: name.clone(), ..Protocol::default() },
        };
        automata.iter().map(read).collect()
    }

    fn read(name: &str, automaton: &Automaton, tags: &[u64]) -> Protocol {
        let messages = automaton.messages.iter().map(|shape| {
            let arguments = shape.endpoints.iter().map(|endpoint| Argument {
                contract: match (endpoint.contract, tags.iter().position(|&tag| tag == endpoint.contract)) {
                    (0, _) => Wanted::Any,
                    (_, Some(contract)) => Wanted::Known(contract),
                    (_, None) => Wanted::Unlisted,
                },
                side: if endpoint.importer { Side::Importer } else { Side::Exporter },
                state: (endpoint.state != NO_TRANSITION).then_some(usize::from(endpoint.state)),
            });
            let sender = sender_of(shape.direction);
            Message { name: shape.name.to_string(), sender, arguments: arguments.collect() }
        });
        let next = |&state: &u16| (state != NO_TRANSITION).then_some(usize::from(state));
        let numbers = 0..u16::try_from(automaton.states.len()).unwrap_or(u16::MAX);
        Protocol {
            name: name.into(),
            messages: messages.collect(),
            next: automaton.states.iter().map(|row| row.next.iter().map(next).collect()).collect(),
            senders: numbers.map(|state| automaton.sender_in(state).map(sender_of)).collect(),
        }
    }

    /// Returns the number of states.
    pub fn states(&self) -> usize {
        self.next.len()
    }

    /// Returns the state after a message; `None` if it cannot be sent.
    pub fn next(&self, state: usize, message: usize) -> Option<usize> {
        *self.next.get(state)?.get(message)?
    }

    /// Returns the end that sends in a state.
    pub fn sender(&self, state: usize) -> Option<Side> {
        *self.senders.get(state)?
    }

    /// Returns the contracts whose importing ends its messages give importers, directly.
    pub fn given(&self) -> impl Iterator<Item = Wanted> + '_ {
        let sent = self.messages.iter().filter(|message| message.sender == Side::Exporter);
        let ends = sent.flat_map(|message| &message.arguments).filter(|argument| argument.side == Side::Importer);
        ends.map(|argument| argument.contract)
    }
}

fn sender_of(direction: Direction) -> Side {
    match direction {
        Direction::ToImporter => Side::Exporter,
        Direction::ToExporter => Side::Importer,
    }
}
