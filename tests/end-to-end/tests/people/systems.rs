//! Changes in a system show in every command.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use end_to_end::{Run, finish, repository, sing};

/// Timeout for building a system.
const LIMIT: Duration = Duration::from_secs(900);

/// Runs the tool with these arguments and a system as the last.
#[track_caller]
fn tool(words: &[&str], system: &Path) -> Run {
    let mut command = Command::new(sing());
    command.args(words).arg(system).current_dir(repository());
    finish(command, &format!("sing {} {}", words.join(" "), system.display()), LIMIT)
}

#[test]
fn what_was_changed_in_a_system_shows_in_every_command() {
    let folder = tempfile::tempdir().expect("a folder");
    let system = folder.path().join("mine.toml");
    fs::write(&system, "[system]\nname = \"mine\"\nbase = \"hosted\"\n").expect("a system manifest");
    // It is based on others of its folder.
    for entry in fs::read_dir(repository().join("systems")).expect("the systems").flatten() {
        fs::copy(entry.path(), folder.path().join(entry.file_name())).expect("a copy");
    }
    let greets = || tool(&["run", "-c", "greet Ada", "--system"], &system);
    let explains = || tool(&["explain", "greet", "--system"], &system);
    assert_eq!(greets().succeeded(), "Hello, Ada.\n");
    assert!(explains().succeeded().contains("greet.singularity"));

    assert!(tool(&["uninstall", "greet", "--system"], &system).succeeded().contains("is changed"));
    assert!(greets().errors.contains("no such program"), "{}", greets());
    explains().refused(&["program `greet` is not installed"]);
    let drawn = tool(&["graph", "--system"], &system).succeeded();
    assert!(!drawn.contains("greet") && drawn.contains("shell"), "{drawn}");
    let shown = tool(&["systems"], &system).succeeded();
    assert!(shown.contains("uninstalled greet") && !shown.contains("greet 0.1.0"), "{shown}");
    assert!(tool(&["check"], &system).succeeded().contains("all right"));

    // A rebuilt system keeps its changes.
    fs::write(&system, "[system]\nname = \"mine\"\nbase = \"hosted\"\n# Built anew.\n").expect("a system manifest");
    assert!(greets().errors.contains("no such program"), "{}", greets());

    tool(&["systems", "--as-built"], &system).succeeded();
    assert_eq!(greets().succeeded(), "Hello, Ada.\n");
    assert!(explains().succeeded().contains("greet.singularity"));
}

#[test]
fn the_tool_ends_quietly_when_its_reader_has_gone() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = Command::new(sing());
    command.args(["schema"]).current_dir(repository()).stdin(Stdio::null()).stdout(writer).stderr(Stdio::piped());
    let ended = command.output().expect("the tool starts");
    assert_eq!(String::from_utf8_lossy(&ended.stderr), "");
    assert_eq!(ended.status.code(), Some(141));
}
