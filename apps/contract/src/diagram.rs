//! A contract's automaton as lines of text: each state of the contract with a tree of what can be said there.
//!
//! `?` is a message to the exporter, `!` one to the importer, as in the contract language. Deliberately not here:
//! names of arguments, which the automaton does not carry.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use sip::diagnostics::Automaton;

/// What the compiler puts between the names of a state and of a message, to name the state in the middle of a sequence.
const BETWEEN: &str = " after ";

/// No sequence is drawn deeper than this.
const DEPTH: usize = 16;

/// The diagram, with a line end after each line.
pub fn render(contract: &Automaton) -> String {
    let mut out = format!(
        "contract {}: at most {} waiting for the importer, {} for the exporter\n",
        contract.name, contract.queue_to_importer, contract.queue_to_exporter
    );
    for (number, state) in contract.states.iter().enumerate() {
        if state.name.contains(BETWEEN) {
            continue;
        }
        let start = if number == 0 { "  (start)" } else { "" };
        out += &format!("\n{}{start}\n", state.name);
        let lines = branches(contract, number, "", 0);
        out += if lines.is_empty() { "└── the end: nothing more is said\n" } else { &lines };
    }
    out
}

fn branches(contract: &Automaton, state: usize, indent: &str, depth: usize) -> String {
    let mut out = String::new();
    let Some(row) = contract.states.get(state).filter(|_| depth < DEPTH) else { return out };
    let steps: Vec<(usize, u16)> =
        row.next.iter().copied().enumerate().filter(|&(_, next)| next != abi::NO_TRANSITION).collect();
    for (position, &(tag, next)) in steps.iter().enumerate() {
        let last = position + 1 == steps.len();
        let name = contract.states.get(next as usize).map_or("", |state| state.name.as_str());
        let arrow = if name.contains(BETWEEN) { String::new() } else { format!(" ──▶ {name}") };
        out += &format!("{indent}{}{}{arrow}\n", if last { "└── " } else { "├── " }, message(contract, tag));
        if arrow.is_empty() {
            let below = format!("{indent}{}", if last { "    " } else { "│   " });
            out += &branches(contract, next as usize, &below, depth + 1);
        }
    }
    out
}

fn message(contract: &Automaton, tag: usize) -> String {
    let Some(message) = contract.messages.get(tag) else { return String::new() };
    let sign = match message.direction {
        abi::Direction::ToImporter => '!',
        abi::Direction::ToExporter => '?',
    };
    let mut carried = Vec::new();
    if message.scalar_words > 0 {
        carried.push(counted(message.scalar_words.into(), "word"));
    }
    let (mut moved, mut lent, mut returned) = (0, 0, 0);
    for block in &message.blocks {
        match (block.lent, block.returned) {
            (true, _) => lent += 1,
            (_, true) => returned += 1,
            _ => moved += 1,
        }
    }
    for (count, kind) in [(moved, "block"), (lent, "lent block"), (returned, "returned block")] {
        if count > 0 {
            carried.push(counted(count, kind));
        }
    }
    if !message.endpoints.is_empty() {
        carried.push(counted(message.endpoints.len(), "endpoint"));
    }
    let carried = if carried.is_empty() { String::new() } else { format!(" ({})", carried.join(", ")) };
    format!("{}{sign}{carried}", message.name)
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { count.to_string() + " " + what + "s" }
}

#[cfg(test)]
mod tests {
    use abi::{BlockShape, Direction, MessageShape, NO_TRANSITION, StateRow};

    use super::*;

    fn said(name: &str, direction: Direction, blocks: Vec<BlockShape>) -> MessageShape {
        MessageShape { name: name.into(), direction, scalar_words: 0, ranges: Vec::new(), blocks, endpoints: Vec::new() }
    }

    #[test]
    fn a_sequence_is_drawn_as_a_tree() {
        let lent = BlockShape { type_tag: 1, lent: true, returned: false };
        let contract = Automaton {
            name: "Echo".into(),
            queue_to_importer: 1,
            queue_to_exporter: 1,
            messages: Vec::from([
                said("Say", Direction::ToExporter, Vec::from([lent])),
                said("Said", Direction::ToImporter, Vec::new()),
                said("Bye", Direction::ToExporter, Vec::new()),
            ]),
            states: Vec::from([
                StateRow { name: "READY".into(), next: Vec::from([2, NO_TRANSITION, 1]) },
                StateRow { name: "ENDED".into(), next: Vec::from([NO_TRANSITION; 3]) },
                StateRow { name: "READY after Say".into(), next: Vec::from([NO_TRANSITION, 0, NO_TRANSITION]) },
            ]),
        };
        let expected = "contract Echo: at most 1 waiting for the importer, 1 for the exporter\n\
            \nREADY  (start)\n├── Say? (1 lent block)\n│   └── Said! ──▶ READY\n└── Bye? ──▶ ENDED\n\
            \nENDED\n└── the end: nothing more is said\n";
        assert_eq!(render(&contract), expected);
    }
}
