//! WebAssembly programs that speak contracts: clients and servers of `KnockAnswer`, and what one does that means harm.

use std::process::Command;
use std::time::Duration;

use end_to_end::{BareMachine, Run, built_system, finish, key, repository, sing};
use manifest_model::{Bounds, Code, Manifest};
use package_build::Signer;

use super::wasm_installs::{Trial, program_of};

test_needs::needs!(E2fsprogs, Qemu);

/// Timeout for building the compiler, the template and the system.
const BUILD_LIMIT: Duration = Duration::from_secs(1200);

/// A package of a module that speaks what `wasm-knock` does.
fn speaking(system: &[u8], name: &str, module: &[u8], change: impl Fn(&mut Manifest)) -> Vec<u8> {
    let code = Code::Wasm { digest: [0; 32], template: "wasi".into(), bounds: Bounds::Guarded };
    let mut manifest = Manifest { name: name.into(), code, ..program_of(system, "wasm-knock") };
    change(&mut manifest);
    package_build::build_unchecked(manifest, b"", module, &Signer::root(key())).expect("a package")
}

/// A system with a package of this module on its disk, called `guest`.
fn with_guest(module: &[u8], change: impl Fn(&mut Manifest)) -> Trial {
    let system = std::fs::read(built_system("wasm")).expect("a system image");
    Trial::with(&system, &[("guest", speaking(&system, "guest", module, change))])
}

fn example(path: &str) -> Vec<u8> {
    std::fs::read(repository().join(path)).expect("a module")
}

/// What a hostile module does, by the number of its arguments: what is answered by a status, and what ends it.
const ANSWERED: [usize; 7] = [0, 1, 2, 3, 4, 9, 5];
const FATAL: [usize; 3] = [6, 7, 8];

#[test]
fn what_breaks_a_contract_is_refused_or_ends_the_module_alone() {
    let trial = with_guest(include_bytes!("wasm_contracts/hostile.wasm"), |_| {});
    // The first run loads the images.
    let mut commands = format!("install guest.package > report; guest; knock 1; {0}", Run::LOOKS);
    for count in ANSWERED.into_iter().chain(FATAL) {
        commands += &format!("; guest {}; echo status $?", "x ".repeat(count));
    }
    commands += &format!("; {0}; knock 1; true", Run::LOOKS);
    let run = trial.run(&commands);
    let text = (run.text() + "\n" + &run.errors).replace('\r', "");
    let answered = "knock\nstatus 0\n".to_string() + &"as it must be\nstatus 0\n".repeat(5) + "knock\nstatus 0\n";
    assert!(text.contains(&answered), "{run}");
    let violations = text.lines().filter(|line| line.contains("guest") && line.contains("KnockAnswer"));
    assert_eq!(violations.count(), 3, "out of state, of another shape, of no message: {run}");
    assert_eq!(text.matches("1 knocks").count(), 2, "the server serves others: {run}");
    let looks = run.steady_counters();
    for name in ["blocks", "channels", "processes", "threads"] {
        assert_eq!(looks[0].get(name), looks[1].get(name), "{name}: {run}");
    }
}

#[test]
fn a_module_for_another_version_of_a_contract_is_not_installed() {
    let module = example("examples/wasm-knock/wasm-knock.wasm");
    let name = b"\x0bKnockAnswer";
    let at = module.windows(name.len()).rposition(|bytes| bytes == name).expect("a record") + name.len();
    let mut other = module.clone();
    other[at] ^= 0xff;
    let digits = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let (is, was) = (digits(&module[at..at + 8]), digits(&other[at..at + 8]));
    let run = with_guest(&other, |_| {}).run("install guest.package");
    let text = run.text();
    let refusal = text.lines().find(|line| line.starts_with("refused")).unwrap_or_else(|| panic!("{run}"));
    assert!(["`KnockAnswer`", &is, &was].iter().all(|part| refusal.contains(part)), "{refusal}");
    assert_eq!(run.status, Some(1), "{run}");
}

/// Native and WebAssembly clients of a native server and of one in WebAssembly, names that are not there, a client of
/// another contract, and a server that is ended under its clients.
const KNOCKS: &str = "wasm-knock; wasm-knock-c; wasm-knock /service/nobody; echo status $?; wasm-knock /dev/console; \
    wasm-knock /service/wasm-answer; wasm-knock-c /service/wasm-answer; knock --service /service/wasm-answer 10; \
    wasm-knock /service/wasm-answer/below; cat /service/wasm-answer; stop wasm-answer; start wasm-answer; \
    wasm-knock /service/wasm-answer; echo status $?";

fn knocks(run: &Run) {
    let text = (run.text() + "\n" + &run.errors).replace('\r', "");
    let native = "3 answers from /service/answer\n";
    assert!(text.contains(&native.repeat(2)), "{run}");
    assert!(text.contains("/service/nobody: not found") && text.contains("status 1\n"), "{run}");
    assert!(text.contains("/dev/console: the endpoint is not of the contract"), "{run}");
    let wasm = "3 answers from /service/wasm-answer\n";
    assert!(text.contains(&(wasm.repeat(2) + "10 knocks")), "{run}");
    assert!(text.contains("/service/wasm-answer/below: not found"), "{run}");
    assert!(text.contains("its provider speaks another contract"), "{run}");
    assert!(text.contains(&(wasm.to_string() + "status 0\n")), "it was started again: {run}");
}

#[test]
fn modules_are_clients_and_servers() {
    let mut hosted = Command::new(sing());
    hosted.args(["run", "--system", "wasm", "-c", KNOCKS]).current_dir(repository());
    knocks(&finish(hosted, KNOCKS, BUILD_LIMIT));
}

#[test]
fn modules_are_clients_and_servers_on_a_bare_machine_too() {
    let machine = BareMachine::new("microvm").with(&["--system", "wasm-bare"]);
    knocks(&finish(machine.command(Some(KNOCKS)), KNOCKS, BUILD_LIMIT));
}
