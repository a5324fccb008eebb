//! `spin` accepts the models, and finds the expected errors.

use std::path::{Path, PathBuf};
use std::process::Command;

use lang::{Carrier, Contract, SourceFile, SystemChannel, Unit};

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
    let channel = |importer, exporter, contract: &str| SystemChannel {
        importer,
        exporter,
        automaton: &self::contract(&unit, contract).automaton,
        state: 0,
        given_over: None,
    };
    let layers = [
        channel("shell", "file-system", "Service"),
        channel("file-system", "disk", "Service"),
        channel("file-system", "shell", "Events"),
    ];
    let result = verify("layers", &lang::emit_promela_system(&layers));
    assert!(result.contains("errors: 0"), "{result}");
    let circle = [channel("shell", "file-system", "Service"), channel("file-system", "shell", "Service")];
    let result = verify("circle", &lang::emit_promela_system(&circle));
    assert!(result.contains("invalid end state (at depth"), "{result}");
}

/// A worker is given a job, and asks back while it does it.
const JOBS: &str = "
contract Ask {
  in message Question(); out message Answer();
  state READY: one { Question? -> Answer! -> READY; }
}
contract Job {
  in message Start(Ask.Imp:READY back); out message Finished(Ask.Imp:READY back);
  in message Prepare(); out message Prepared();
  state READY: one { Prepare? -> Prepared! -> READY; Start? -> RUNNING; }
  state RUNNING: one { Finished! -> READY; }
}
contract Whole {
  in message Do(Ask.Imp:READY back); out message Done(Ask.Imp:READY back);
  state READY: one { Do? -> Done! -> READY; }
}
contract Kept {
  in message Start(Ask.Imp:READY back); out message Started();
  in message Again(); out message Running();
  state READY: one { Start? -> Started! -> RUNNING; }
  state RUNNING: one { Again? -> Running! -> RUNNING; }
}
contract Greeting {
  out message Hello(); in message Question(); out message Answer();
  state START: one { Hello! -> READY; }
  state READY: one { Question? -> Answer! -> READY; }
}";

/// From the client to the worker, over the first channel.
const BACK: Option<Carrier> = Some(Carrier { channel: 0, is_reversed: true });

/// Checks a client and a worker, which talk over this contract and over `Ask`, in the other direction.
fn asks_back(name: &str, ask: &str, given_over: Option<Carrier>) -> String {
    let compiled = lang::compile(&[SourceFile::new("jobs.contract", JOBS)]);
    let unit = compiled.unit.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics));
    let channels = [
        SystemChannel {
            importer: "client",
            exporter: "worker",
            automaton: &contract(&unit, name).automaton,
            state: 0,
            given_over: None,
        },
        SystemChannel {
            importer: "worker",
            exporter: "client",
            automaton: &contract(&unit, ask).automaton,
            state: 0,
            given_over,
        },
    ];
    let folder = format!("back-{name}-{ask}-{}", given_over.is_some());
    verify(&folder, &lang::emit_promela_system(&channels))
}

#[test]
fn an_endpoint_that_is_lent_for_the_time_of_a_job_does_no_harm() {
    // The worker has the endpoint only while the client waits for everything.
    let result = asks_back("Job", "Ask", BACK);
    assert!(result.contains("errors: 0"), "{result}");
    for (name, given_over) in [("Job", None), ("Whole", BACK), ("Kept", BACK)] {
        let result = asks_back(name, "Ask", given_over);
        assert!(result.contains("invalid end state (at depth"), "{name} {given_over:?}: {result}");
    }
}

#[test]
fn who_binds_waits_for_the_greeting() {
    let unit = lang::compile(&[SourceFile::new("jobs.contract", JOBS)]).unit.expect("the contracts are right");
    let automaton = |name: &str| &contract(&unit, name).automaton;
    assert!(lang::waits_alone(automaton("Greeting"), 0) && !lang::waits_alone(automaton("Greeting"), 1));
    assert!(!lang::waits_alone(automaton("Job"), 0) && lang::has_calls(automaton("Whole")));
    let events = lang::compile(&[SourceFile::new("model.contract", CONTRACTS)]).unit.expect("the contracts are right");
    assert!(!lang::has_calls(&contract(&events, "Events").automaton));
    let result = asks_back("Greeting", "Greeting", None);
    assert!(result.contains("invalid end state (at depth"), "{result}");
}

#[test]
fn events_are_read_as_they_are_printed() {
    use lang::{Deed, Event};
    let event = Event { deed: Deed::Send, by_importer: true, channel: 3, message: 1, waits: true };
    assert_eq!(Event::read("          @event send importer 3 1 1"), Some(event));
    for other in ["", "@event", "@event stop importer 3 1 1", "@event send importer 3", "spin: trail ends"] {
        assert_eq!(Event::read(other), None, "{other}");
    }
}
