//! gdb in the replay of a recording, forwards and backwards.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use end_to_end::{Run, built_system, finish, repository, sing, system_image};
use tempfile::TempDir;

use crate::trapping_module;

/// Timeout that covers building a program with line tables.
const LIMIT: Duration = Duration::from_secs(900);

fn is_gdb_missing() -> bool {
    let is_missing = Command::new("gdb").arg("--version").output().is_err();
    if is_missing {
        println!("skipped: there is no gdb");
    }
    is_missing
}

/// Records a run with these words and returns its file, in a folder.
fn recorded(words: &[&str]) -> (TempDir, PathBuf) {
    // Builds in advance, so that it does not count against the timeout.
    system_image();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("run.rec");
    let mut command = Command::new(sing());
    command.args(["run", "--record"]).arg(&file).args(words).current_dir(repository());
    finish(command, "a recorded run", LIMIT);
    (folder, file)
}

fn debugged(file: &Path, words: &[&str], batch: &[&str]) -> Run {
    let mut command = Command::new(sing());
    command.args(["debug", "--replay"]).arg(file).args(words).args(["--batch", &batch.join("\n")]);
    command.current_dir(repository());
    finish(command, "debug --replay", LIMIT)
}

fn replayed(file: &Path, words: &[&str]) -> Run {
    let mut command = Command::new(sing());
    command.arg("replay").arg(file).args(words).current_dir(repository());
    finish(command, "replay", LIMIT)
}

/// Asserts that the run shows these parts, in this order.
#[track_caller]
fn shows(run: &Run, parts: &[&str]) {
    let text = run.text();
    let mut rest = text.as_str();
    for part in parts {
        let at = rest.find(part).unwrap_or_else(|| panic!("no `{part}` after those before:\n{run}"));
        rest = &rest[at + part.len()..];
    }
}

fn crashed() -> (TempDir, PathBuf) {
    built_system("wasm");
    let (_module_folder, module) = trapping_module::written();
    recorded(&["--wasm", module.to_str().expect("a path of text"), "-c", "divide"])
}

/// From the fault back to what it loaded, to who wrote that, and to who wrote it before.
#[test]
fn a_fault_is_followed_back_to_the_instruction_that_wrote_the_bad_value() {
    if is_gdb_missing() {
        return;
    }
    let (_folder, file) = crashed();
    let run = debugged(
        &file,
        &[],
        &[
            "set language c",
            "continue",
            "printf \"fault %lx %x\\n\", $pc, $r8d",
            "reverse-stepi 3",
            "x/i $pc",
            "eval \"watch *(unsigned int *) %lu\", $r8 + 64",
            "reverse-continue",
            "backtrace",
            "reverse-finish",
            "reverse-continue",
            "stepi",
            "delete",
            "singularity-sender",
            "continue",
            "printf \"fault %lx %x\\n\", $pc, $r8d",
            "continue",
            "continue",
        ],
    );
    shows(
        &run,
        &[
            "received signal SIGFPE",
            "in divide ()",
            "fault ",
            " 0\n",
            "mov    0x40(%r8),%r8d",
            "Old value = 0\nNew value = 3\n",
            "in spoil ()",
            "in start ()",
            "in start ()",
            "Old value = 3\nNew value = 0\n",
            "in start ()",
            "Old value = 0\nNew value = 3\n",
            "; received by divide (",
            "received signal SIGFPE",
            "fault ",
            "The replay has ended.",
        ],
    );
    let text = run.text();
    let mut faults = text.lines().filter(|line| line.starts_with("fault "));
    assert_eq!(faults.next(), faults.next(), "another fault after going back:\n{run}");
    // All that went on is as it was recorded.
    let end = |run: &Run| run.errors.lines().find_map(|line| line.split_once("hash ").map(|(_, hash)| hash.to_owned()));
    let hash = end(&replayed(&file, &[])).expect("a hash");
    assert_eq!(end(&run), Some(hash), "{run}");
    assert_eq!(run.errors.matches("(divide) trap: ").count(), 1, "shown again:\n{run}");
}

/// Breakpoints of several programs, and the beginning and the end of the recording.
#[test]
fn going_back_stops_at_breakpoints_from_the_end_to_the_beginning() {
    if is_gdb_missing() {
        return;
    }
    let (_folder, file) = recorded(&["-c", "echo first; echo second"]);
    let steps = [
        "break text_apps::echo::main",
        "continue",
        "printf \"at %lx %lx\\n\", $pc, $sp",
        "continue",
        "continue",
        "reverse-continue",
        "reverse-continue",
        "printf \"at %lx %lx\\n\", $pc, $sp",
        "reverse-nexti",
        "reverse-continue",
        "reverse-stepi",
        "continue",
        "run",
        "reverse-stepi",
        "continue",
    ];
    let run = debugged(&file, &[], &steps);
    shows(
        &run,
        &[
            "hit Breakpoint 1",
            "at ",
            "hit Breakpoint 1",
            "The replay has ended.",
            "Breakpoint 1\n#0 ",
            "in text_apps::echo::main ()",
            "Breakpoint 1\n#0 ",
            "in text_apps::echo::main ()",
            "at ",
            "#0 ",
            "No more reverse-execution history.",
            "No more reverse-execution history.",
            "hit Breakpoint 1",
            "No more reverse-execution history.",
            "hit Breakpoint 1",
        ],
    );
    let text = run.text();
    let mut places = text.lines().filter(|line| line.starts_with("at "));
    assert_eq!(places.next(), places.next(), "the first stop, from both sides:\n{run}");
    assert_eq!(text.matches("first\n").count(), 1, "shown again:\n{run}");

    let processes = replayed(&file, &["--processes"]).text();
    let echo = processes.lines().filter_map(|line| line.trim().split_once("  echo: ")).next_back().expect("an echo").0;
    let alone = debugged(&file, &["--process", echo], &["break text_apps::echo::main", "continue", "reverse-continue"]);
    shows(&alone, &["hit Breakpoint 1", "in text_apps::echo::main ()", "No more reverse-execution history."]);
    let from_end = debugged(&file, &["--process", echo], &["continue", "reverse-stepi", "reverse-finish"]);
    shows(&from_end, &["The replay has ended.", "in sip::process::exit ()", "in sip::entry::run ()"]);
}

/// Questions at the prompt.
#[test]
fn gdb_tells_when_a_block_changed_its_owner_before_now_and_after() {
    if is_gdb_missing() {
        return;
    }
    let (_folder, file) = recorded(&["-c", "echo first"]);
    let reader = recording::Reader::new(&std::fs::read(&file).expect("the file")).expect("a recording");
    let receives = recording::effects::function("channel_receive").expect("a function") as u8;
    let received = |event: &&recording::Event| {
        event.kind == recording::EventKind::Returned && event.function == receives && !event.blocks.is_empty()
    };
    let event = reader.events().iter().find(received).expect("a block that was received");
    let asked = format!("singularity-block {:#x}", event.blocks[0].address);
    let run = debugged(&file, &[], &[&asked, "break text_apps::echo::main", "continue", &asked]);
    shows(&run, &["now: event 0\n", "sends, at endpoint", "receives", "hit Breakpoint 1", "receives", "now: event "]);
}

/// By source lines, and out of functions.
#[test]
#[ignore = "builds a program again, with line tables"]
fn lines_are_stepped_back() {
    if is_gdb_missing() {
        return;
    }
    let (_folder, file) = recorded(&["-c", "extensible-parent a crash"]);
    let steps = ["break sip::entry::panicked", "continue", "reverse-finish", "reverse-finish", "reverse-finish"];
    let run =
        debugged(&file, &["--lines", "crashing-extension"], &[&steps[..], &["reverse-step", "reverse-next"]].concat());
    let assertion = "in main () at src/lib.rs:17\n";
    shows(
        &run,
        &["hit Breakpoint 1", "rust_begin_unwind", "panic_fmt", assertion, "main () at src/lib.rs:17\n", "#0 "],
    );
    let other = debugged(&file, &[], &[&steps[..], &["reverse-step"]].concat());
    assert!(other.errors.contains("no source lines: use reverse-stepi, or start with --lines PROGRAM"), "{other}");
}

#[test]
fn what_cannot_be_debugged_backwards_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("no.rec");
    std::fs::write(&file, "no recording").expect("it is written");
    let refused = |words: &[&str], why: &str| {
        let run = debugged(&file, words, &["continue"]);
        assert!(run.status != Some(0) && run.errors.contains(why), "{run}");
    };
    refused(&[], "is no recording");
    refused(&["--debugger", "lldb"], "lldb cannot go back");
    refused(&["--stop", "program"], "one program at a time");
    refused(&["--seed", "3"], "cannot be used with");
}
