//! Runs the fuzz target `manifest` without a fuzzer.

mod body;
#[path = "../known/mod.rs"]
mod known;
#[path = "../../../../fuzz/replay.rs"]
mod replay;

use std::path::{Path, PathBuf};

use known::Known;

/// Corpus of a fuzzer, including its findings.
fn inputs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzzed/inputs")
}

#[test]
fn damaged_manifests_are_refused_in_words() {
    replay::replay(&inputs(), 200, body::run);
}

/// Otherwise a fuzzer covers little.
#[test]
fn the_seeds_are_manifests() {
    let text = |name: &str| std::fs::read_to_string(inputs().join(name)).expect("an input can be read");
    for name in ["driver.toml", "script.toml", "service.toml"] {
        let program = manifest::program(name, &text(name), Some(&Known)).unwrap_or_else(|errors| panic!("{errors}"));
        let findings = install::manifest_findings(&program.manifest);
        assert!(findings.is_empty(), "{name}: {findings:?}");
    }
    let file = manifest::SystemFile { file: "system.toml".into(), text: text("system.toml") };
    let programs: Vec<_> = body::programs().iter().collect();
    manifest::system(file, &|_| None, &programs).unwrap_or_else(|errors| panic!("{errors}"));
}
