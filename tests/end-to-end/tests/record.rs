//! Recordings, as people use them: a run with crashes is recorded and replayed, whole and one program alone, the same
//! each time; a file that cannot be replayed is refused in one sentence; and a recording answers who sent what.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use end_to_end::{machine_program, repository, sing, target, without_notes};
use recording::{Chunk, EventKind, Filling, HEADER_BYTES, Reader, chunk_of, complete_chunk};
use tempfile::TempDir;

fn run(words: &[&str]) -> Output {
    Command::new(sing()).args(words).current_dir(repository()).output().expect("the tool starts")
}

fn errors(output: &Output) -> String {
    without_notes(&String::from_utf8_lossy(&output.stderr))
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Records a run with these words and returns its file, in a folder.
fn recorded(words: &[&str]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("run.rec");
    let path = file.to_str().expect("a path of text");
    let output = run(&[&["run", "--record", path], words].concat());
    assert!(output.status.success(), "{}{}", text(&output), errors(&output));
    (folder, file)
}

/// Runs `sing replay` of a file; returns its exit status, output and last line of errors.
fn replayed(file: &Path, words: &[&str]) -> (Option<i32>, String, String) {
    let path = file.to_str().expect("a path of text");
    let output = run(&[&["replay", path], words].concat());
    (output.status.code(), text(&output), errors(&output))
}

fn conformance(only: &str) -> (TempDir, PathBuf) {
    let only = format!("only={only}");
    recorded(&["--system", "conformance", "--allow-unsafe-tests", "--processors", "2", "--parameter", &only])
}

#[test]
fn a_crash_is_replayed_whole_and_alone() {
    let (_folder, file) = conformance("death");
    let whole = replayed(&file, &[]);
    assert_eq!(whole.0, Some(0), "{}", whole.2);
    assert!(whole.2.contains(" as recorded; hash "), "{}", whole.2);
    assert_eq!(replayed(&file, &[]), whole, "a second replay differs");

    let (_, processes, _) = replayed(&file, &["--processes"]);
    let crashed: Vec<(&str, &str)> = processes
        .lines()
        .filter_map(|line| line.trim().split_once("  "))
        .filter_map(|(id, rest)| Some((id, rest.split_once(": ")?.1)))
        .filter(|(_, end)| !end.starts_with("exited") && !end.contains("stopped") && !end.contains("ran to the end"))
        .collect();
    assert!(crashed.len() >= 2, "{processes}");
    for (id, end) in crashed {
        let alone = replayed(&file, &["--process", id]);
        assert_eq!(alone.0, Some(1), "{}", alone.2);
        assert!(alone.2.contains(end), "{} does not have: {end}", alone.2);
        assert_eq!(replayed(&file, &["--process", id]), alone, "a second replay of process {id} differs");
    }
}

#[test]
fn a_session_at_the_shell_shows_the_same_again() {
    let commands = "ls /fs/disk0; echo hello | wc; random 4; ps";
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("run.rec");
    let first = run(&["run", "--record", file.to_str().expect("text"), "-c", commands]);
    assert!(first.status.success(), "{}", errors(&first));
    let (status, output, errors) = replayed(&file, &[]);
    assert_eq!(status, Some(0), "{errors}");
    assert_eq!(output, text(&first));

    let (_, messages, _) = replayed(&file, &["--messages"]);
    let from_shell = messages.lines().filter(|line| line.contains(": shell (") && line.contains("; received by "));
    assert!(from_shell.count() > 10, "{messages}");
    assert_blocks_have_a_story(&file);
}

/// Some block of the recording was sent by one process and received by another, and the query says so.
fn assert_blocks_have_a_story(file: &Path) {
    let reader = Reader::new(&std::fs::read(file).expect("the file")).expect("a recording");
    let receives = recording::effects::function("channel_receive").expect("a function") as u8;
    let received = |event: &&recording::Event| {
        event.kind == EventKind::Returned && event.function == receives && !event.blocks.is_empty()
    };
    let event = reader.events().iter().find(received).expect("a block that was received");
    let address = format!("{:#x}", event.blocks[0].address);
    let (_, story, _) = replayed(file, &["--block", &address]);
    for verb in ["allocates", "sends, at endpoint", "receives"] {
        assert!(story.contains(verb), "{story}");
    }
}

/// The suite calls every function in the scenes in which it kills the caller; those that end the machine are refused there.
#[test]
fn the_answer_of_every_function_is_recorded() {
    conformance("process_panic");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("run.rec");
    let mut machine = Command::new(machine_program());
    machine.arg("--system").arg(target().join("sing/systems/conformance.system"));
    machine.args(["--simulated-device", "--processors", "2", "--parameter", "only=killed in:"]);
    let output = machine.args(["--parameter", "kills=1", "--record"]).arg(&file).output().expect("the machine starts");
    assert!(output.status.success(), "{}", errors(&output));
    let whole = replayed(&file, &[]);
    assert_eq!(whole.0, Some(0), "{}", whole.2);
    let complete = folder.path().join("complete.rec");
    let mut machine = Command::new(machine_program());
    let output = machine.arg("--replay").arg(&file).arg("--complete").arg(&complete).output().expect("a replay");
    assert!(output.status.success(), "{}", errors(&output));
    let reader = Reader::new(&std::fs::read(&complete).expect("the file")).expect("a recording");
    let of = |kind| -> BTreeSet<u8> {
        reader.events().iter().filter(|event| event.kind == kind).map(|event| event.function).collect()
    };
    let name = |number: &u8| abi::FUNCTIONS[usize::from(*number)].name;
    let all: BTreeSet<u8> = (0..abi::FUNCTIONS.len() as u8).collect();
    let missing: Vec<&str> = all.difference(&of(EventKind::Called)).map(name).collect();
    assert_eq!(missing, [""; 0], "functions that nothing calls");
    let silent: Vec<&str> = all.difference(&of(EventKind::Returned)).map(name).collect();
    assert_eq!(silent, ["process_exit", "process_panic", "thread_exit"], "functions without a recorded answer");
}

#[test]
fn a_file_that_is_no_whole_recording_is_refused_in_one_sentence() {
    let (_folder, file) = conformance("process_panic");
    let whole = std::fs::read(&file).expect("the file");
    let refused = |bytes: &[u8], why: &str| {
        std::fs::write(&file, bytes).expect("written");
        for words in [&[][..], &["--messages"]] {
            let (status, _, errors) = replayed(&file, words);
            assert_eq!(status, Some(1), "{errors}");
            let told: Vec<&str> = errors
                .lines()
                .filter(|line| !line.starts_with("sing: building") && !line.starts_with("sing: waiting"))
                .collect();
            assert_eq!(told.len(), 1, "{errors}");
            assert!(errors.contains(why), "{errors}");
        }
    };
    refused(&whole[..whole.len() - 100], "is cut after");
    refused(&whole[..whole.len() / 2], "is cut after");
    let mut damaged = whole.clone();
    damaged[whole.len() - 2_000] ^= 4;
    refused(&damaged, "is damaged");
    let mut other = whole.clone();
    other[4] += 1;
    refused(&other, "replay it with the build that recorded it");
    refused(b"#!/bin/sh\n", "is no recording");
    // The image of a program, with its checksum put right.
    let system = HEADER_BYTES + 10 * 8;
    let words = u64::from_le_bytes(whole[system + 8..system + 16].try_into().expect("a word")) as usize;
    let mut changed = whole.clone();
    let mut chunk = changed[system..system + HEADER_BYTES + words * 8].to_vec();
    let middle = chunk.len() / 2;
    chunk[middle] ^= 1;
    complete_chunk(Chunk::System, &mut chunk);
    changed[system..system + chunk.len()].copy_from_slice(&chunk);
    std::fs::write(&file, &changed).expect("written");
    let (status, _, errors) = replayed(&file, &[]);
    assert!(matches!(status, Some(1 | 125)), "{errors}");
    assert!(errors.lines().count() == 1 && errors.contains("program"), "{errors}");
}

/// Changes a call of a recording, and returns what its replay says.
fn replayed_with(change: impl FnOnce(&mut recording::Event)) -> String {
    let (_folder, file) = conformance("process_panic");
    let bytes = std::fs::read(&file).expect("the file");
    let reader = Reader::new(&bytes).expect("a recording");
    let mut events = reader.events().to_vec();
    let allocate = recording::effects::function("heap_allocate").expect("a function") as u8;
    let is_allocate = |event: &&mut recording::Event| event.kind == EventKind::Called && event.function == allocate;
    change(events.iter_mut().find(is_allocate).expect("a block that was allocated"));
    let mut chunk = Filling::default();
    let known = recording::Known::new();
    events.iter().for_each(|event| event.write(&mut chunk, &known));
    let system = HEADER_BYTES + 10 * 8;
    let words = u64::from_le_bytes(bytes[system + 8..system + 16].try_into().expect("a word")) as usize;
    let mut changed = bytes[..system + HEADER_BYTES + words * 8].to_vec();
    changed.extend(chunk.complete().expect("events"));
    changed.extend(chunk_of(Chunk::End, [events.len() as u64]));
    std::fs::write(&file, changed).expect("written");
    let (status, _, errors) = replayed(&file, &[]);
    assert_eq!(status, Some(125), "{errors}");
    let (status, messages, told) = replayed(&file, &["--messages"]);
    assert_eq!(status, Some(if messages.is_empty() { 1 } else { 0 }), "{told}");
    assert!(told.contains("what programs did afterwards is not known"), "{told}");
    errors
}

#[test]
fn a_program_that_does_something_else_is_told_with_both_calls() {
    let errors = replayed_with(|call| call.check = call.check.map(|check| check ^ 1));
    assert!(errors.contains("recorded: heap_allocate with other arguments, or another message; "), "{errors}");
    assert!(errors.contains("replayed: heap_allocate(0x"), "{errors}");
    let sleep = recording::effects::function("thread_sleep").expect("a function") as u8;
    let errors = replayed_with(|call| call.function = sleep);
    assert!(errors.contains("recorded: thread_sleep; replayed: heap_allocate(0x"), "{errors}");
}
