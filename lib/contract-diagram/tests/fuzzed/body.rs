//! What the fuzz target `automaton` does with its bytes: they are an automaton as a package may carry it, which is
//! decoded, drawn, and encoded again.

use abi::Automaton;

/// Does it.
pub fn run(bytes: &[u8]) {
    let Ok(automaton) = Automaton::decode(bytes) else { return };
    contract_diagram::render(&automaton, |_| None);
    let again = Automaton::decode(&automaton.encode());
    assert_eq!(again.as_ref(), Ok(&automaton));
}
