//! Deaths of programs: what is kept of them, and the back traces that `cargo sing autopsy` makes of it.

use std::path::Path;
use std::process::Command;

use end_to_end::{BUILD_LIMIT, BareMachine, Machine, Run, built_system, finish, repository, sing};

use crate::trapping_module;

/// A program that panics with a block lent to it, and the shell's own record of it.
const DEATH: &str = "extensible-parent a crash; log crashing-extension; log --core crashing-extension";

/// The functions on the stack, the innermost first.
const FUNCTIONS: [&str; 4] =
    ["sip::entry::panicked", "core::panicking::panic_fmt", "crashing_extension::main", "sip::entry::run"];

fn autopsy(text: &str) -> Run {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), text).expect("it is written");
    autopsy_of(file.path())
}

fn autopsy_of(file: &Path) -> Run {
    let mut command = Command::new(sing());
    command.arg("autopsy").arg(file).current_dir(repository());
    finish(command, "autopsy", BUILD_LIMIT)
}

/// Whether the functions are frames, in this order.
#[track_caller]
fn has_back_trace(text: &str) {
    has_frames(text, &FUNCTIONS);
}

#[track_caller]
fn has_frames(text: &str, functions: &[&str]) {
    let mut rest = text;
    for function in functions {
        let at = rest
            .find(&format!(" {function} +"))
            .unwrap_or_else(|| panic!("no `{function}` after those before:\n{text}"));
        rest = &rest[at + function.len()..];
    }
}

#[test]
fn a_panic_is_traced_by_function_with_all_that_was_held() {
    let run = Machine::new().run(DEATH);
    run.orderly();
    let text = run.text();
    let (shown, core) = text.split_once("core of process ").expect("a core");
    for part in ["where it was and what it held", "  code 0x", "lent to it", "(Extension, READY)"] {
        assert!(shown.contains(part), "`log` does not show `{part}`:\n{run}");
    }
    let told = autopsy(&format!("noise\ncore of process {core}"));
    let text = told.text();
    has_back_trace(&text);
    for part in [
        "(crashing-extension)\n",
        "panicked at examples/crashing-extension/src/lib.rs:17:",
        "  block of 5 bytes, lent to it\n",
        ": Extension, exporter, in state ",
        "; its peer had extensible-parent (process ",
        "received Work on endpoint 1 (Extension, READY)\n",
    ] {
        assert!(text.contains(part), "`{part}` is missing:\n{told}");
    }
    assert!(!text.contains("missing"), "{told}");
    // A core of a package that no system here has shows addresses, and one that was cut says so.
    let identity = core.split_whitespace().nth(2).expect("an identity");
    let other = format!("core of process {core}").replace(identity, &"0".repeat(32));
    let (cut, _) = other.split_once("end of core").expect("an end");
    let told = autopsy(cut);
    assert!(told.text().contains("no built system has this package") && told.text().contains("is missing)"), "{told}");
    assert_eq!(autopsy("nothing\n").status, Some(1));
}

/// A trap is a fault of the processor in the module's code.
#[test]
fn a_fault_is_traced_to_the_instruction_with_all_that_was_held() {
    let (_folder, module) = trapping_module::written();
    // Builds the compiler in advance, so that it does not count against the timeout.
    built_system("wasm");
    let mut command = Command::new(sing());
    command.args(["run", "--wasm"]).arg(&module).args(["-c", "divide; log divide; log --core divide"]);
    command.current_dir(repository());
    let run = finish(command, "a trap", BUILD_LIMIT);
    let text = run.text();
    let (shown, core) = text.split_once("core of process ").expect("a core");
    for part in [": trap: integer divide by zero at divide+0x", "  faulted\n", " fault\n", "(Directory, START)"] {
        assert!(shown.contains(part), "`log` does not show `{part}`:\n{run}");
    }
    let told = autopsy(&format!("core of process {core}"));
    has_frames(&told.text(), &["divide", "start", "sip_wasm::instance::Instance::call_function", "sip::entry::run"]);
    for part in [
        "(divide)\n",
        ": trap: integer divide by zero at divide+0x",
        ": Directory, importer, in state READY; its peer had directory (process ",
        ": Pipe, importer, in state READY; its peer had console (process ",
        "received Success on endpoint 1 (Directory, START)\n",
        "  faulted\n",
    ] {
        assert!(told.text().contains(part), "`{part}` is missing:\n{told}");
    }
}

/// The shell holds it, since it has not waited for it: nothing of its core is missing for that.
#[test]
fn who_was_stopped_by_another_is_traced_while_its_parent_still_holds_it() {
    let run = Machine::new().run("sleep 1000 &; sleep 0.1; kill sleep; sleep 0.1; log sleep; log --core sleep");
    run.orderly();
    let text = run.text();
    let (shown, core) = text.split_once("core of process ").expect("a core");
    for part in [": ended; its parent still holds it\n", "where it was and what it held", "  was stopped\n"] {
        assert!(shown.contains(part), "`log` does not show `{part}`:\n{run}");
    }
    let told = autopsy(&format!("core of process {core}"));
    has_frames(&told.text(), &["system_apps::sleep::main", "sip::entry::run", "_start"]);
    assert!(told.text().contains(": stopped by kill\n") && told.text().contains("  was stopped\n"), "{told}");
}

#[test]
fn who_exits_leaves_no_core() {
    let run = Machine::new().run("ls /nowhere; log --core ls");
    assert!(run.errors.contains("no core of `ls` is kept"), "{run}");
}

#[test]
fn a_bare_machine_writes_a_core_to_its_serial_line() {
    let run = BareMachine::new("microvm").run(DEATH);
    run.orderly();
    let text = run.text();
    let (_, core) = text.split_once("core of process ").expect("a core");
    has_back_trace(&autopsy(&format!("core of process {core}")).text());
}

/// The service writes by itself, to a folder of the host that it creates.
#[test]
fn a_running_system_writes_cores_to_a_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let cores = folder.path().join("cores");
    let mut command = Command::new(sing());
    command.arg("run").arg("--cores").arg(&cores).current_dir(repository());
    command.args(["-c", "extensible-parent a crash; sleep 2"]);
    let run = finish(command, "a death", BUILD_LIMIT);
    let files: Vec<_> = std::fs::read_dir(&cores).expect("a folder").flatten().map(|entry| entry.path()).collect();
    let [file] = files.as_slice() else { panic!("{files:?}:\n{run}") };
    assert!(file.file_name().expect("a name").to_string_lossy().starts_with("crashing-extension-"), "{files:?}");
    has_back_trace(&autopsy_of(file).text());
}
