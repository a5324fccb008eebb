//! WebAssembly programs that speak contracts: a client of the example `answer`, and what one does that means harm.

use std::process::Command;
use std::time::Duration;

use end_to_end::{BareMachine, Run, finish, repository, sing};

test_needs::needs!(Qemu);

/// Timeout for building the compiler, the template and the system.
const BUILD_LIMIT: Duration = Duration::from_secs(1200);

/// The module knocks; with arguments it does by their number what it must not, and checks how that is answered.
const COMMANDS: &str = "wasm-knock; echo $?; wasm-knock 1; echo $?; wasm-knock 1 2; echo $?; wasm-knock 1 2 3; echo $?; \
     wasm-knock 1 2 3 4; echo $?; wasm-knock 1 2 3 4 5; wasm-knock 1 2 3 4 5 6; knock 1";

/// A greeting, claims and bounds and what was sent are refused, a flood ends at the quota.
const OUTPUT: &str = "knock\n0\nas it must be\n0\nas it must be\n0\nas it must be\n0\nknock\n0\n";

fn it_knocks_and_what_breaks_the_contract_ends_it(run: &Run) {
    // A hosted machine has epitaphs on standard error.
    let text = (run.text() + "\n" + &run.errors).replace('\r', "");
    assert!(text.contains(OUTPUT), "{run}");
    let violations = text.lines().filter(|line| line.contains("wasm-knock") && line.contains("KnockAnswer"));
    assert_eq!(violations.count(), 2, "one out of state, one of another shape: {run}");
    assert!(text.contains("1 knocks"), "the server serves others: {run}");
    let looks = run.steady_counters();
    for name in ["blocks", "channels", "processes", "threads"] {
        assert_eq!(looks[0].get(name), looks[1].get(name), "{name}: {run}");
    }
}

fn watched() -> String {
    // The first run loads the images.
    format!("wasm-knock; knock 1; {0}; {COMMANDS}; {0}; true", Run::LOOKS)
}

#[test]
fn a_module_is_a_client_of_a_native_server() {
    let commands = watched();
    let mut hosted = Command::new(sing());
    hosted.args(["run", "--system", "wasm", "-c", &commands]).current_dir(repository());
    it_knocks_and_what_breaks_the_contract_ends_it(&finish(hosted, &commands, BUILD_LIMIT));
}

#[test]
fn a_module_is_a_client_on_a_bare_machine_too() {
    let machine = BareMachine::new("microvm").with(&["--system", "wasm-bare"]);
    let commands = watched();
    it_knocks_and_what_breaks_the_contract_ends_it(&finish(machine.command(Some(&commands)), &commands, BUILD_LIMIT));
}
