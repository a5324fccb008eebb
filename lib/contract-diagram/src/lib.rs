//! Contracts drawn as text, from their automata alone.
//!
//! [`render`] draws a tree for each named state; states inside sequences are the joints of its branches. Neighbours:
//! the contract compiler makes automata, the shell displays them. Deliberately not here: colours, and information not
//! in an automaton (argument names, comments).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod messages;
mod tree;

use alloc::string::String;
use alloc::vec::Vec;

use abi::Automaton;

/// Draws a contract. `contract_name` looks up another contract's name by its [`name_tag`](abi::name_tag).
pub fn render(automaton: &Automaton, contract_name: impl Fn(u64) -> Option<String>) -> String {
    let mut out = String::new();
    out.push_str("contract ");
    out.push_str(&automaton.name);
    out.push_str("\n\n");
    let mut names = Vec::new();
    for message in &automaton.messages {
        names.push(messages::signature(message, &contract_name));
    }
    messages::list(&mut out, automaton, &names);
    tree::states(&mut out, automaton);
    out.push_str(&alloc::format!(
        "\nAt most {} for the importer and {} for the exporter wait at a time.\n",
        count(automaton.queue_to_importer),
        count(automaton.queue_to_exporter)
    ));
    out
}

fn count(messages: u16) -> String {
    match messages {
        0 => "no message".into(),
        1 => "1 message".into(),
        more => alloc::format!("{more} messages"),
    }
}
