//! `spin` accepts the models, and finds the expected errors.

use std::path::{Path, PathBuf};
use std::process::Command;

use lang::{Contract, SourceFile, SystemChannel, Unit};

test_needs::needs!(Spin);

const CONTRACTS: &str = "
contract Service {
  in message Ask(); out message Answer(); out message Ready();
  in message Burst(); in message More();
  state START: one { Ready! -> READY; }
  state READY: one { Ask? -> Answer! -> READY; Burst? -> More? -> More? -> Answer! -> READY; }
}
contract Events {
  out message Changed(); in message Next();
  state READY: one { Changed! -> Next? -> READY; }
}";

fn unit() -> Unit {
    let compiled = lang::compile(&[SourceFile::new("model.contract", CONTRACTS)]);
    compiled.unit.expect("the contracts are right")
}

fn contract<'a>(unit: &'a Unit, name: &str) -> &'a Contract {
    unit.contract(name).expect("a contract of the unit")
}

/// Runs `spin` on a model in a folder of its own; returns the verifier's output.
fn verify(name: &str, model: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("model.pml"), model).expect("the model is written");
    let run = |program: &Path, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).current_dir(&folder).output();
        let output = output.unwrap_or_else(|error| panic!("{} is needed to check models: {error}", program.display()));
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {text}\n{model}", program.display());
        text
    };
    let parsed = run(Path::new("spin"), &["-a", "model.pml"]);
    assert!(!parsed.contains("error"), "{parsed}\n{model}");
    run(Path::new("cc"), &["-w", "-DSAFETY", "-o", "pan", "pan.c"]);
    run(&folder.join("pan"), &["-m100000"])
}

#[test]
fn a_contract_alone_has_no_deadlock_and_keeps_its_bounds() {
    let unit = unit();
    for contract in &unit.contracts {
        let result = verify(&contract.name, &lang::emit_promela(contract));
        assert!(result.contains("errors: 0"), "{}: {result}", contract.name);
    }
}

#[test]
fn a_bound_that_is_too_small_is_found() {
    let mut unit = unit();
    assert_eq!(unit.contracts[0].automaton.queue_to_exporter, 3);
    unit.contracts[0].automaton.queue_to_exporter = 2;
    let result = verify("small-bound", &lang::emit_promela(&unit.contracts[0]));
    assert!(result.contains("assertion violated"), "{result}");
}

#[test]
fn layers_do_not_deadlock_and_circles_do() {
    let unit = unit();
    let service = contract(&unit, "Service");
    let layers = [
        SystemChannel { importer: "shell", exporter: "file-system", contract: service },
        SystemChannel { importer: "file-system", exporter: "disk", contract: service },
        SystemChannel { importer: "file-system", exporter: "shell", contract: contract(&unit, "Events") },
    ];
    let result = verify("layers", &lang::emit_promela_system(&layers));
    assert!(result.contains("errors: 0"), "{result}");
    let circle = [
        SystemChannel { importer: "shell", exporter: "file-system", contract: service },
        SystemChannel { importer: "file-system", exporter: "shell", contract: service },
    ];
    let result = verify("circle", &lang::emit_promela_system(&circle));
    assert!(result.contains("invalid end state"), "{result}");
}
