//! Debuggers of hosted and simulated machines.

use std::process::Command;
use std::time::Duration;

use end_to_end::{Run, finish, machine_program, repository, sing, system_image};
use serde_json::Value;

/// Timeout that covers building the simulated machine.
const LIMIT: Duration = Duration::from_secs(900);

fn is_missing(program: &str) -> bool {
    let is_missing = Command::new(program).arg("--version").output().is_err();
    if is_missing {
        println!("skipped: there is no {program}");
    }
    is_missing
}

fn debug(words: &[&str]) -> Run {
    // Builds in advance, so that it does not count against the timeout.
    machine_program();
    system_image();
    let mut command = Command::new(sing());
    command.arg("debug").args(words).current_dir(repository());
    finish(command, "debug", LIMIT)
}

const STOPS: &str = "break text_apps::echo::main\nrun\nbacktrace\ncontinue\ncontinue";

#[test]
fn gdb_stops_in_a_program_of_the_hosted_machine() {
    if is_missing("gdb") {
        return;
    }
    let run = debug(&["--machine", "hosted", "-c", "echo first; echo second", "--batch", STOPS]);
    let text = run.text();
    assert_eq!(text.matches("hit Breakpoint 1, ").count(), 2, "{run}");
    assert!(text.contains("in sip::entry::run ()") && text.contains("first\n") && text.contains("second\n"), "{run}");
}

#[test]
fn a_breakpoint_in_one_program_may_stop_that_one_alone() {
    if is_missing("gdb") {
        return;
    }
    let commands = "break text_apps::echo::main\nrun\ninfo threads";
    let run = debug(&["--machine", "hosted", "--stop", "program", "-c", "echo first", "--batch", commands]);
    let text = run.text();
    let processors: Vec<_> =
        text.lines().filter(|line| line.contains("\"processor ") && line.contains("(LWP ")).collect();
    assert_eq!(processors.len(), 2, "{run}");
    assert_eq!(processors.iter().filter(|line| line.contains("(running)")).count(), 1, "{run}");
    assert_eq!(processors.iter().filter(|line| line.contains("text_apps::echo::main")).count(), 1, "{run}");
}

/// The run of a seed is the same under the debugger: the hash of its trace says so.
#[test]
fn gdb_stops_in_the_run_of_a_seed_without_changing_it() {
    if is_missing("gdb") {
        return;
    }
    const COMMANDS: &str = "echo first; echo second";
    let report = tempfile::NamedTempFile::new().expect("a file");
    // gdb shows the machine's arguments between quotation marks.
    let with_report = format!(
        "python given = gdb.execute('show args', to_string=True).split('\"', 1)[1].rsplit('\"', 1)[0]\n\
         python gdb.execute('set args ' + given + ' --report {}')",
        report.path().display()
    );
    let run = debug(&["--seed", "3", "-c", COMMANDS, "--batch", &with_report, "--batch", STOPS]);
    let text = run.text();
    assert_eq!(text.matches("Breakpoint 1, 0x").count(), 2, "{run}");
    assert!(text.contains("in sip::entry::run ()") && text.contains("second\n"), "{run}");
    let report = std::fs::read_to_string(report.path()).expect("a report");
    let report: Value = serde_json::from_str(&report).expect("JSON");
    let mut command = Command::new(sing());
    command.args(["simulate", "--seed", "3", "--processors", "1", "--faults", "preempt,switch,delay", "--json"]);
    let undisturbed = finish(
        {
            command.args(["-c", COMMANDS]).current_dir(repository());
            command
        },
        "simulate",
        LIMIT,
    );
    let hash = report["hash"].as_str().expect("a hash");
    assert!(undisturbed.text().contains(hash), "{hash}: {undisturbed}\n{run}");
    let refused = debug(&["--seed", "3", "--faults", "step", "-c", "true", "--batch", "run"]);
    assert!(refused.errors.contains("trap flag"), "{refused}");
}

#[test]
fn lldb_stops_in_a_program_of_the_hosted_machine() {
    if is_missing("lldb") {
        return;
    }
    let commands = "singularity-launch\nbreakpoint set -r text_apps::echo::main\ncontinue\nthread backtrace\ncontinue";
    let run = debug(&["--machine", "hosted", "--debugger", "lldb", "-c", "echo first", "--batch", commands]);
    let text = run.text();
    assert!(text.contains("stop reason = breakpoint") && text.contains("echo`text_apps::echo::main"), "{run}");
    assert!(text.contains("\nfirst") && text.contains("exited with status = 0"), "{run}");
}
