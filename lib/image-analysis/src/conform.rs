//! Whether the messages that an image sends are those of its manifest.
//!
//! A send is a call of the kernel with a number that has the message's tag and shape. The stubs of a contract put it
//! there as a constant, so it is in the code. Two contracts can have messages of one tag and shape; those are not told
//! apart here, and the kernel does it at each send. Deliberately not here: receives, which say nothing of messages.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use abi::{Automaton, Direction};
use manifest_model::{ContractSide, Manifest};

use crate::assess::Fault;
use crate::calls::Target;
use crate::program::Program;
use crate::stack::Graph;

/// What was found of the messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conformance {
    /// Messages that the manifest does not let the program send.
    pub faults: Vec<Fault>,
    /// Number of places in the code that send.
    pub sends: usize,
    /// Functions that send a message of which the analysis does not see which.
    pub unknown: Vec<String>,
    /// Contracts of which the program sends no message, though it could: their stubs are not reachable. Empty where a
    /// send is unknown.
    pub unused: Vec<String>,
}

/// A message of a contract in the manifest.
struct Sendable {
    contract: String,
    message: String,
    word: u64,
    /// Whether the manifest lists the side that sends it.
    is_listed: bool,
}

/// Compares the sends of a program with the contracts of its manifest.
pub fn conform(program: &Program, manifest: &Manifest) -> Conformance {
    let all = sendable(manifest);
    let graph = Graph::of(program);
    let reached = graph.reached(&graph.roots);
    let mut found = Conformance::default();
    let mut sent = BTreeSet::new();
    for (index, function) in program.functions.iter().enumerate().filter(|(index, _)| reached[*index]) {
        for call in function.calls.iter().filter(|call| is_send(call.target)) {
            found.sends += 1;
            let Some(words) = call.second else {
                found.unknown.push(program.name(index));
                continue;
            };
            for &word in words.all() {
                sent.insert(word);
                if !all.iter().any(|message| message.is_listed && message.word == word) {
                    found.faults.push(fault(&program.name(index), word, &all));
                }
            }
        }
    }
    found.faults.dedup();
    found.unknown.dedup();
    if found.unknown.is_empty() {
        found.unused = unused(&all, &sent);
    }
    found
}

fn is_send(target: Target) -> bool {
    match target {
        Target::Kernel(index) => abi::FUNCTIONS.get(index).is_some_and(|function| function.name == "channel_send"),
        _ => false,
    }
}

fn sendable(manifest: &Manifest) -> Vec<Sendable> {
    let mut all = Vec::new();
    for used in &manifest.contracts {
        let Ok(automaton) = Automaton::decode(&used.automaton) else { continue };
        for (tag, message) in (0u16..).zip(&automaton.messages) {
            let is_listed = match message.direction {
                Direction::ToExporter => used.side != ContractSide::Export,
                Direction::ToImporter => used.side != ContractSide::Import,
            };
            all.push(Sendable {
                contract: used.name.clone(),
                message: message.name.to_string(),
                word: message.message_word(tag),
                is_listed,
            });
        }
    }
    all
}

fn fault(function: &str, word: u64, all: &[Sendable]) -> Fault {
    match all.iter().find(|message| message.word == word) {
        Some(Sendable { contract, message, .. }) => Fault {
            what: format!(
                "`{function}` sends {contract}.{message}, and the manifest lists the other side of {contract} only"
            ),
            remedy: format!("write `use = \"both\"` for {contract} in the manifest, or do not send it"),
        },
        None => Fault {
            what: format!(
                "`{function}` sends a message of tag {}, which is of no contract of the manifest",
                word & 0xffff
            ),
            remedy: "add a [[contract]] to the manifest, or do not send it".into(),
        },
    }
}

fn unused(all: &[Sendable], sent: &BTreeSet<u64>) -> Vec<String> {
    let mut unused: Vec<String> =
        all.iter().filter(|message| message.is_listed).map(|message| message.contract.clone()).collect();
    unused.dedup();
    let is_used = |name: &String| {
        all.iter().any(|message| message.is_listed && message.contract == *name && sent.contains(&message.word))
    };
    unused.retain(|name| !is_used(name));
    unused
}
