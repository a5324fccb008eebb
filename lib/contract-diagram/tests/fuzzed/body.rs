//! The body of the fuzz target `automaton`: decodes the input as an automaton, draws it and encodes it again.

use abi::Automaton;

/// Runs one input.
pub fn run(bytes: &[u8]) {
    let Ok(automaton) = Automaton::decode(bytes) else { return };
    contract_diagram::render(&automaton, |_| None);
    let again = Automaton::decode(&automaton.encode());
    assert_eq!(again.as_ref(), Ok(&automaton));
}
