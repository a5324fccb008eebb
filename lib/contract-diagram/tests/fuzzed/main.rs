//! The fuzz target `automaton` without a fuzzer.
//!
//! `UPDATE_GOLDEN=1 cargo test -p contract-diagram --test fuzzed` rewrites its seed inputs.

mod body;
#[path = "../../../../fuzz/replay.rs"]
mod replay;

use std::path::{Path, PathBuf};

use abi::{Automaton, BlockShape, Direction, EndpointShape, MessageShape, ScalarRange, StateRow};

/// Seed inputs, findings among them.
fn inputs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzzed/inputs")
}

fn message(name: &str, direction: Direction) -> MessageShape {
    MessageShape {
        name: name.into(),
        direction,
        scalar_words: 0,
        ranges: Vec::new(),
        blocks: Vec::new(),
        endpoints: Vec::new(),
    }
}

fn automaton(name: &str, messages: Vec<MessageShape>, states: &[(&str, &[u16])]) -> Automaton {
    let states = states.iter().map(|(name, next)| StateRow { name: (*name).into(), next: next.to_vec() }).collect();
    Automaton { name: name.into(), queue_to_importer: 1, queue_to_exporter: 1, messages, states }
}

/// Automata with all features.
fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let none = u16::MAX;
    let ask = MessageShape {
        scalar_words: 2,
        ranges: vec![ScalarRange { word: 1, max: 7 }],
        blocks: vec![BlockShape { type_tag: 9, lent: true, returned: false }],
        endpoints: vec![EndpointShape { contract: 3, importer: true, state: 0 }],
        ..message("Ask", Direction::ToExporter)
    };
    let answer = MessageShape {
        blocks: vec![BlockShape { type_tag: 9, lent: false, returned: true }],
        ..message("Answer", Direction::ToImporter)
    };
    let talk = automaton(
        "Talk",
        vec![message("Hello", Direction::ToImporter), ask, answer],
        &[("START", &[1, none, none]), ("READY", &[none, 2, none]), ("READY after Ask", &[none, none, 1])],
    );
    let joints = automaton(
        "Odd",
        vec![message("Ask", Direction::ToExporter), message("Answer", Direction::ToImporter)],
        &[("A after B", &[1, none]), ("B after A", &[none, 0])],
    );
    [("talk", talk), ("joints", joints)].map(|(name, automaton)| (name, automaton.encode())).into()
}

#[test]
fn damaged_automata_are_refused_or_drawn() {
    replay::replay(&inputs(), 400, body::run);
}

/// Otherwise the fuzzer would reach little.
#[test]
fn the_seeds_are_automata() {
    replay::hold_seeds(&inputs(), &seeds());
    for (name, bytes) in seeds() {
        assert!(Automaton::decode(&bytes).is_ok(), "{name}");
    }
}
