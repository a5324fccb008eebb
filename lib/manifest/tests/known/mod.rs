//! Contracts for the manifests of the tests.

use abi::{Automaton, Direction, MessageShape, NO_TRANSITION, StateRow};
use manifest::{Contract, Contracts};

/// Five contracts with the same states: `START: Ready!`, then `READY: Say? -> Said!`, then closed.
pub struct Known;

const NAMES: [&str; 5] = ["Echo", "Disk", "Directory", "Pipe", "ServiceProvider"];

impl Contracts for Known {
    fn find(&self, name: &str) -> Option<Contract> {
        NAMES.contains(&name).then(|| Contract { fingerprint: [1; 32], automaton: automaton(name) })
    }

    fn names(&self) -> Vec<String> {
        NAMES.map(String::from).into()
    }
}

/// Automaton of each contract.
pub fn automaton(name: &str) -> Automaton {
    let message = |name: &str, direction| MessageShape {
        name: name.into(),
        direction,
        scalar_words: 0,
        ranges: Vec::new(),
        blocks: Vec::new(),
        endpoints: Vec::new(),
    };
    let rows = [
        ("START", [1, NO_TRANSITION, NO_TRANSITION]),
        ("READY", [NO_TRANSITION, 2, NO_TRANSITION]),
        ("READY after Say", [NO_TRANSITION, NO_TRANSITION, 3]),
        ("OVER", [NO_TRANSITION; 3]),
    ];
    Automaton {
        name: name.into(),
        queue_to_importer: 1,
        queue_to_exporter: 1,
        messages: vec![
            message("Ready", Direction::ToImporter),
            message("Say", Direction::ToExporter),
            message("Said", Direction::ToImporter),
        ],
        states: rows.map(|(name, next)| StateRow { name: name.into(), next: next.to_vec() }).into(),
    }
}
