//! Ends: services that crash repeatedly, readers that close early, signals from the host.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use end_to_end::{Doctor, Machine, Run, finish, reseal};
use image_check::Image;
use manifest_model::{Manifest, Restart};
use rustix::process::{Pid, Signal, kill_process};

use crate::bad_input::{begin_with, boot, hosted};

/// An instruction that faults.
const FAULT: [u8; 2] = [0x0f, 0x0b];
/// A no-op.
const NOTHING: u8 = 0x90;

/// Makes an image crash at its entry; all its code can still be decoded.
fn crash_at_once(image: &mut Vec<u8>) {
    // Pad with no-ops up to the end of the last overwritten instruction.
    for length in FAULT.len()..24 {
        let mut instructions = FAULT.to_vec();
        instructions.resize(length, NOTHING);
        let mut changed = image.clone();
        begin_with(&mut changed, &instructions);
        if Image::check(&changed).is_ok() {
            *image = changed;
            return;
        }
    }
    panic!("the begin of the program cannot be written over");
}

/// The hosted system with a service `answer` that crashes at its entry.
#[track_caller]
fn with_crashing_answer(backoff_ms: u32, limit: Option<u32>, commands: &str) -> Run {
    let doctor = |manifest: &mut Manifest, image: &mut Vec<u8>| {
        crash_at_once(image);
        manifest.supervision.restart = Restart::Always;
        manifest.supervision.backoff_ms = backoff_ms;
        manifest.supervision.backoff_max_ms = 10_000;
        manifest.supervision.limit = limit;
    };
    let run = boot(&reseal(&hosted(), "answer", &Doctor::Resealed(&doctor)), commands);
    run.orderly();
    run
}

/// State and number of restarts of `answer`, as `services` shows them.
#[track_caller]
fn answer(run: &Run) -> (String, u32) {
    let text = run.text();
    let line = text.lines().find(|line| line.starts_with("answer ")).unwrap_or_default();
    // A state may be two words; columns are separated by two blanks.
    let words: Vec<&str> = line.split("  ").map(str::trim).filter(|word| !word.is_empty()).collect();
    assert!(words.len() > 4, "`services` has no line of answer:\n{run}");
    (words[2].into(), words[4].parse().unwrap_or_else(|_| panic!("no number of restarts in `{line}`:\n{run}")))
}

#[test]
fn a_service_that_crashes_is_given_up_after_its_limit() {
    let run = with_crashing_answer(1, Some(3), "sleep 500ms; services; echo the rest works");
    let (state, restarts) = answer(&run);
    assert!(state != "running" && restarts == 3, "answer is {state} after {restarts} restarts:\n{run}");
    assert!(run.text().ends_with("the rest works\n") && run.status == Some(0), "{run}");
    let said = run.errors.lines().any(|line| line.starts_with("service-manager: ") && line.contains("answer"));
    assert!(said, "nobody is told:\n{run}");
    assert!(run.errors.lines().count() < 12, "the person is told too often:\n{run}");
}

#[test]
fn each_restart_waits_longer_than_the_one_before() {
    // The waits are 100, 200, 400 ms and so on, in which dependents wait, too, at first.
    let begin = Instant::now();
    let run = with_crashing_answer(100, None, "sleep 1200ms; services");
    let (_, restarts) = answer(&run);
    let waited = Duration::from_millis(100) * ((1 << restarts) - 1);
    assert!(restarts >= 2 && waited < begin.elapsed(), "{restarts} restarts in {:?}:\n{run}", begin.elapsed());
}

#[test]
fn what_needs_a_service_that_is_given_up_says_so() {
    let run = with_crashing_answer(1, Some(1), "sleep 300ms; knock");
    assert!(run.status != Some(0) && run.errors.lines().any(|line| line.starts_with("knock: ")), "{run}");
}

#[test]
fn a_reader_that_goes_away_ends_who_writes_for_it() {
    let machine = Machine::new().command(Some("while true; do echo more || exit 9; end"));
    let mut shell = Command::new("sh");
    shell.args(["-c", "\"$@\" | head -n 3", "sh"]).arg(machine.get_program()).args(machine.get_args());
    let run = finish(shell, "an endless output into head", Duration::from_secs(20));
    assert_eq!(run.text(), "more\nmore\nmore\n", "{run}");
    run.orderly();
}

/// Starts a machine that sleeps, sends it the signal, and returns its exit status.
fn after_signal(signal: Signal) -> Option<i32> {
    let mut machine = Machine::new().command(Some("echo begun; sleep 100"));
    let mut child = machine.stdout(Stdio::piped()).spawn().expect("the machine starts");
    let mut word = [0; 5];
    child.stdout.as_mut().expect("it is a pipe").read_exact(&mut word).expect("the machine says a word");
    assert_eq!(&word, b"begun");
    kill_process(Pid::from_child(&child), signal).expect("the machine runs");
    for _ in 0..5000 {
        if let Some(status) = child.try_wait().expect("a child can be waited for") {
            return status.code();
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    // It may exit at this moment; the test fails anyway.
    let _ = child.kill();
    let _ = child.wait();
    panic!("{signal:?} does not end the machine");
}

#[test]
fn signals_of_the_host_end_the_machine_in_order() {
    assert_eq!(after_signal(Signal::INT), Some(130));
    assert_eq!(after_signal(Signal::TERM), Some(143));
}

#[test]
fn commands_are_read_from_a_pipe_as_well() {
    let machine = Machine::new().command(None);
    let mut shell = Command::new("sh");
    shell.args(["-c", "echo 'echo typed; exit 4' | \"$@\"", "sh"]).arg(machine.get_program()).args(machine.get_args());
    let run = finish(shell, "commands on standard input", Duration::from_secs(20));
    assert_eq!((run.text().as_str(), run.errors.as_str(), run.status), ("typed\n", "", Some(4)), "{run}");
}

#[test]
fn what_is_said_about_a_name_is_one_line_that_moves_nothing() {
    let name = "/no\u{1b}[2K\u{1b}[1A\u{202e}such\u{9b}\u{7}";
    let run = Machine::new().run(&format!("cat \"{name}\"; true"));
    run.orderly();
    assert_eq!(run.errors.lines().count(), 1, "{run}");
    assert!(run.errors.starts_with(r"cat: /no\x1b[2K\x1b[1A\u{202e}such\u{9b}\x07: "), "{run}");
}

#[test]
fn errors_that_nobody_reads_stop_nothing() {
    // More than a host pipe holds.
    let missing = format!("cat /{}\n", "missing".repeat(25)).repeat(800);
    let mut command = Machine::new().command(None);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the machine starts");
    let mut input = child.stdin.take().expect("it is a pipe");
    let writer = std::thread::spawn(move || input.write_all(format!("{missing}echo still here\n").as_bytes()));
    let mut text = String::new();
    child.stdout.take().expect("it is a pipe").read_to_string(&mut text).expect("the machine says text");
    assert_eq!(text, "still here\n");
    writer.join().expect("the writer ends").expect("the machine reads commands");
    // The pipe's content is complete lines.
    let mut errors = String::new();
    child.stderr.take().expect("it is a pipe").read_to_string(&mut errors).expect("the machine says text");
    let whole = errors.lines().filter(|line| line.starts_with("cat: /missing")).count();
    assert!(whole > 200, "{whole} lines:\n{errors}");
    child.wait().expect("the child ends");
}

#[test]
fn a_low_limit_of_open_files_that_may_be_raised_is_raised_without_a_word() {
    let machine = Machine::new().command(Some("hello; sysinfo"));
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -Sn 300 && exec \"$0\" \"$@\""]).arg(machine.get_program()).args(machine.get_args());
    assert!(finish(limited, "hello", Duration::from_secs(60)).succeeded().contains("Hello, world!"));
}
