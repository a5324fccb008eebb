//! Bindings of contracts for WebAssembly programs: those in the examples are those of the contracts. With `UPDATE_GOLDEN`
//! set, they are written.

use std::path::{Path, PathBuf};

use lang::{SourceFile, Unit};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The contracts of a folder.
fn unit(folder: &str) -> Unit {
    let entries = std::fs::read_dir(repository().join(folder)).expect("a folder");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "contract"));
    paths.sort();
    let read =
        |path: &PathBuf| SourceFile::new(path.display().to_string(), std::fs::read_to_string(path).expect("text"));
    let files: Vec<SourceFile> = paths.iter().map(read).collect();
    lang::compile(&files).unit.expect("contracts without errors")
}

#[track_caller]
fn is_current(path: &str, made: &str) {
    let file = repository().join(path);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&file, made).expect("the bindings");
    }
    let kept = std::fs::read_to_string(&file).expect("the bindings");
    assert!(
        kept == made,
        "{path} is not what its contract makes: run this test with UPDATE_GOLDEN=1, and build.sh there"
    );
}

#[test]
fn the_bindings_of_the_examples_are_current() {
    let knock = unit("examples/knock-answer-contract");
    let rust = lang::emit_rust_guest(&knock, "KnockAnswer");
    is_current("examples/wasm-knock/src/contracts.rs", &rust);
    is_current("examples/wasm-answer/src/knock_answer.rs", &rust);
    is_current("examples/wasm-knock-c/knock_answer.h", &lang::emit_c_guest(&knock, "KnockAnswer"));
    let provider = lang::emit_rust_guest(&unit("contracts"), "ServiceProvider");
    is_current("examples/wasm-answer/src/service_provider.rs", &provider);
    let application = lang::emit_rust_guest(&unit("contracts"), "WebApplication");
    is_current("sip/guest-web/src/contracts.rs", &application);
}

#[test]
fn bindings_have_a_contract_and_what_its_messages_carry_and_nothing_else() {
    let contracts = unit("contracts");
    let modules = |name: &str| {
        let text = lang::emit_rust_guest(&contracts, name);
        let lines = text.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(" {").map(String::from));
        lines.collect::<Vec<_>>()
    };
    assert_eq!(modules("Pipe"), ["pipe"]);
    let directory = modules("Directory");
    assert!(directory.contains(&"directory".into()) && directory.contains(&"service_provider".into()), "{directory:?}");
    assert!(!directory.contains(&"tcp".into()), "{directory:?}");
    assert_eq!(lang::emit_rust_guest(&contracts, "Nothing"), "");
    assert_eq!(lang::emit_c_guest(&contracts, "Nothing"), "");
    for contract in &contracts.contracts {
        let text = lang::emit_rust_guest(&contracts, &contract.name);
        assert!(!text.contains("unsafe") && !text.contains("::sip::"), "{}", contract.name);
    }
}
