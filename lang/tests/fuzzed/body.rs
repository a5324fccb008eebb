//! The body of the fuzz target `contract`: the input as contract text is compiled, rendered, printed and emitted.

use lang::{Colours, SourceFile};

/// Runs the longest prefix of the input that is text.
pub fn run(bytes: &[u8]) {
    let text = bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    let compiled = lang::compile(&[SourceFile::new("fuzz.contract", text)]);
    compiled.render(Colours::Never);
    let mut diagnostics = Vec::new();
    let first = lang::syntax::print(&lang::syntax::parse(0, text, &mut diagnostics));
    if diagnostics.is_empty() {
        let second = lang::syntax::print(&lang::syntax::parse(0, &first, &mut diagnostics));
        assert_eq!(first, second, "what is printed reads the same");
    }
    let Some(unit) = compiled.unit else { return };
    lang::emit_rust(&unit);
    for contract in &unit.contracts {
        lang::emit_svg(contract);
        lang::emit_promela(contract);
        let automaton = abi::Automaton::decode(&contract.automaton.encode());
        assert_eq!(automaton.as_ref(), Ok(&contract.automaton), "the kernel reads what the compiler writes");
    }
}
