//! The bytes of an automaton, as a package may carry them: decoded, encoded, drawn.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(automaton) = abi::Automaton::decode(bytes) else { return };
    contract_diagram::render(&automaton, |_| None);
    let again = abi::Automaton::decode(&automaton.encode());
    assert_eq!(again.as_ref(), Ok(&automaton));
});
