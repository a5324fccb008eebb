//! The fuzz target `contract` without a fuzzer.

mod body;
#[path = "../../../fuzz/replay.rs"]
mod replay;

use std::path::{Path, PathBuf};

use lang::SourceFile;

/// Seed inputs, findings among them.
fn inputs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzzed/inputs")
}

#[test]
fn damaged_contracts_are_refused_in_words() {
    replay::replay(&inputs(), 100, body::run);
}

/// Otherwise the fuzzer would reach little.
#[test]
fn the_seeds_are_contracts() {
    for name in ["disk.contract", "everything.contract"] {
        let text = std::fs::read_to_string(inputs().join(name)).expect("an input can be read");
        let compiled = lang::compile(&[SourceFile::new(name, &text)]);
        assert!(compiled.unit.is_some(), "{}", compiled.render(lang::Colours::Never));
    }
}
