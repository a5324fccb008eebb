//! WebAssembly modules as programs: they run, their traps end them with an epitaph, and what is no module is refused.

use std::process::Command;
use std::time::Duration;

use end_to_end::{BareMachine, Run, finish, repository, sing};

test_needs::needs!(Qemu);

/// Timeout for building the compiler, the template and the system.
const BUILD_LIMIT: Duration = Duration::from_secs(1200);

/// The module fails in a way that depends on the number of its arguments.
const COMMANDS: &str =
    "wasm-hello; echo $?; wasm-hello 1; wasm-hello 1 2; wasm-hello 1 2 3; wasm-hello 1 2 3 4; wasm-hello 1 2 3 4 5 6 7";

const EPITAPHS: [(&str, &str); 5] = [
    ("trap: integer divide by zero at wasm-hello+0x", " in divide"),
    ("used up its stack at wasm-hello+0x", " in recurse"),
    ("trap: out of bounds memory access at wasm-hello+0x", " in reach"),
    ("trap: unreachable at wasm-hello+0x", " in unreachable"),
    ("trap: undefined element at wasm-hello+0x", " in _start"),
];

fn it_greets_and_each_trap_has_its_epitaph(run: &Run) {
    // A hosted machine has epitaphs on standard error.
    let text = run.text() + "\n" + &run.errors;
    assert!(text.replace('\r', "").contains("hello from wasm\n0\n"), "{run}");
    for (kind, function) in EPITAPHS {
        let told = |line: &str| line.contains(kind) && line.trim_end().ends_with(function);
        assert!(text.lines().any(told), "{kind}{function}: {run}");
    }
    let looks = run.steady_counters();
    for name in ["blocks", "channels", "processes", "threads"] {
        assert_eq!(looks[0].get(name), looks[1].get(name), "{name}: {run}");
    }
}

fn watched() -> String {
    // The first run loads the image.
    format!("wasm-hello; {0}; {COMMANDS}; {0}; true", Run::LOOKS)
}

#[test]
fn a_module_runs_as_a_process_and_its_traps_end_that_process_alone() {
    let commands = watched();
    let mut hosted = Command::new(sing());
    hosted.args(["run", "--system", "wasm", "-c", &commands]).current_dir(repository());
    it_greets_and_each_trap_has_its_epitaph(&finish(hosted, &commands, BUILD_LIMIT));
}

#[test]
fn a_bare_machine_runs_the_same_module() {
    let machine = BareMachine::new("microvm").with(&["--system", "wasm-bare"]);
    let commands = watched();
    it_greets_and_each_trap_has_its_epitaph(&finish(machine.command(Some(&commands)), &commands, BUILD_LIMIT));
}

#[test]
fn a_module_that_loops_is_stopped() {
    let mut hosted = Command::new(sing());
    let commands = "wasm-hello 1 2 3 4 5 & sleep 1; kill %1; sleep 1; echo over";
    hosted.args(["run", "--system", "wasm", "-c", commands]).current_dir(repository());
    let run = finish(hosted, commands, BUILD_LIMIT);
    assert!(run.text().contains("over"), "{run}");
}
