//! The C emitter: what it writes compiles without a warning, for all contracts of the system and all fixtures.

use std::path::{Path, PathBuf};
use std::process::Command;

use lang::{SourceFile, Unit};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn unit_of(files: &[PathBuf]) -> Option<Unit> {
    let read = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).expect("a contract file");
        SourceFile::new(path.display().to_string(), text)
    };
    lang::compile(&files.iter().map(read).collect::<Vec<_>>()).unit
}

fn contract_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "contract"));
    files.sort();
    files
}

/// Compiles the header of a unit, with a use of each of its functions; returns the compiler's complaint.
fn complaint(unit: &Unit) -> Option<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let names: Vec<&str> = unit.contracts.iter().map(|contract| contract.name.as_str()).collect();
    let header = lang::emit_c(unit, &names);
    std::fs::write(folder.path().join("sing_abi.h"), lang::emit_c_abi()).expect("a file can be written");
    let source = folder.path().join("contracts.c");
    std::fs::write(&source, format!("#include \"sing.h\"\n{header}\n")).expect("a file can be written");
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-ffreestanding", "-fsyntax-only", "-Wall", "-Wextra", "-Wno-unused-function", "-Werror"]);
    cc.arg("-isystem").arg(root().join("sip/c/include")).arg("-I").arg(folder.path()).arg(&source);
    let output = cc.output().expect("there is a C compiler, as Rust's linker");
    (!output.status.success()).then(|| format!("{}\n{header}", String::from_utf8_lossy(&output.stderr)))
}

#[test]
fn the_contracts_of_the_system_compile_as_c() {
    let unit = unit_of(&contract_files(&root().join("contracts"))).expect("they have no errors");
    assert!(unit.contracts.len() > 20);
    assert_eq!(complaint(&unit), None);
}

#[test]
fn each_fixture_without_errors_compiles_as_c() {
    let mut count = 0;
    for path in contract_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")) {
        let Some(unit) = unit_of(std::slice::from_ref(&path)) else { continue };
        count += 1;
        assert_eq!(complaint(&unit), None, "{}", path.display());
    }
    assert!(count > 5, "{count}");
}

#[test]
fn a_contract_becomes_functions_for_its_messages() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../contracts/pipe.contract");
    let unit = unit_of(&[path]).expect("it has no errors");
    let header = lang::emit_c(&unit, &["Pipe"]);
    let message = unit.contracts[0].automaton.messages.iter().position(|message| message.name == "Write");
    let tag = message.expect("the message");
    for part in [
        "typedef struct pipe_imp { uint64_t handle; uint16_t state; } pipe_imp;".to_string(),
        "static inline sing_status pipe_imp_send_write(pipe_imp *self, sing_block data)".into(),
        "static inline sing_status pipe_exp_send_failed(pipe_exp *self, pipe_pipe_error error)".into(),
        format!("    PIPE_WRITE = {tag},"),
        "#define PIPE_PIPE_ERROR_DEVICE_ERROR ((pipe_pipe_error)(1))".into(),
        format!("#define PIPE_WRITE_DATA_TYPE UINT64_C({:#x})", abi::type_tag("byte")),
    ] {
        assert!(header.contains(&part), "{part}:\n{header}");
    }
    // The functions of contracts that are not asked for are left out, but not their endpoints.
    let header = lang::emit_c(&unit, &[]);
    assert!(header.contains("} pipe_imp;") && !header.contains("pipe_imp_send_write"), "{header}");
}
