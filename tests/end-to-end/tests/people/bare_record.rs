//! Recordings of bare machines, replayed hosted: the same output, the same crashes, a machine that dies in the middle, and a
//! file that cannot be written.

use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use end_to_end::{BUILD_LIMIT, BareMachine, Run, finish, repository, sing};
use rustix::process::{Pid, Signal, kill_process};

test_needs::needs!(Qemu);

const WORK: &str = "ls /fs/disk0; cat /fs/disk0/poems/tyger.txt; echo hello | wc; random 4; ps";

/// The run of a machine with these words, recorded to a file.
fn recorded(kind: &str, words: &[&str], file: &Path) -> BareMachine {
    let path = file.to_str().expect("a path of text");
    BareMachine::new(kind).with(&["--record", path]).with(words)
}

fn replayed(file: &Path, words: &[&str]) -> Run {
    let mut command = Command::new(sing());
    command.arg("replay").arg(file).args(words).current_dir(repository());
    let mut run = finish(command, "replay", BUILD_LIMIT);
    // It waits for other builds, and says so.
    run.errors = run.errors.lines().filter(|line| !line.starts_with("sing: ")).flat_map(|line| [line, "\n"]).collect();
    run
}

/// Records [`WORK`], replays it twice and one of its programs alone.
#[track_caller]
fn work_is_replayed(kind: &str, words: &[&str]) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("run.rec");
    let run = recorded(kind, words, &file).run(WORK);
    assert_eq!(run.status, Some(0), "{run}");
    let whole = replayed(&file, &[]);
    assert_eq!(whole.status, Some(0), "{whole}");
    assert_eq!(whole.text(), run.text(), "{whole}");
    assert!(whole.errors.contains(" as recorded; hash "), "{whole}");
    assert!(whole.errors.contains("(virtio-blk) shares memory with a device from here on"), "{whole}");
    assert_eq!(replayed(&file, &[]).errors, whole.errors, "a second replay differs");

    let processes = replayed(&file, &["--processes"]).succeeded();
    let id = |name: &str| {
        let line = processes.lines().find(|line| line.trim_end().contains(&format!("  {name}: ")));
        line.and_then(|line| line.split_whitespace().next())
            .unwrap_or_else(|| panic!("{name}:\n{processes}"))
            .to_string()
    };
    for name in ["cat", "ext2-fs", "virtio-blk"] {
        let alone = replayed(&file, &["--process", &id(name)]);
        assert_eq!(alone.status, Some(0), "{alone}");
        assert!(alone.errors.contains(" of 1 process, as recorded; hash "), "{alone}");
    }
    let messages = replayed(&file, &["--messages"]).succeeded();
    assert!(
        messages.lines().any(|line| line.contains("virtio-blk (") && line.contains("; received by ")),
        "{messages}"
    );
}

#[test]
fn a_session_on_a_pc_is_replayed_hosted() {
    work_is_replayed("qemu", &["--smp", "1"]);
}

#[test]
fn a_session_on_two_processors_is_replayed_hosted() {
    work_is_replayed("microvm", &["--smp", "2"]);
}

#[test]
fn programs_in_ring_3_are_replayed_hosted() {
    work_is_replayed("microvm", &["--domains", "hip-r3-s", "--smp", "2"]);
}

#[test]
fn a_crash_on_a_bare_machine_is_the_same_crash_hosted() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("run.rec");
    let words = ["--system", "conformance", "--allow-unsafe-tests", "--smp", "2", "--parameter", "only=death"];
    let run = finish(recorded("qemu", &words, &file).command(None), "conformance", BUILD_LIMIT);
    assert_eq!(run.status, Some(0), "{run}");
    let whole = replayed(&file, &[]);
    assert_eq!(whole.status, Some(0), "{whole}");
    let processes = replayed(&file, &["--processes"]).text();
    let crashed: Vec<(&str, &str)> = processes
        .lines()
        .filter_map(|line| line.trim().split_once("  "))
        .filter_map(|(id, rest)| Some((id, rest.split_once(": ")?.1)))
        .filter(|(_, end)| !end.starts_with("exited") && !end.contains("stopped") && !end.contains("ran to the end"))
        .collect();
    assert!(crashed.iter().any(|(_, end)| end.contains("panic")), "{processes}");
    for (id, end) in crashed {
        let alone = replayed(&file, &["--process", id]);
        assert_eq!(alone.status, Some(1), "{alone}");
        assert!(alone.errors.contains(end), "no {end}:\n{alone}");
        assert_eq!(replayed(&file, &["--process", id]).errors, alone.errors, "a second replay of process {id} differs");
    }
}

/// The processes of the host with this parent.
fn children(parent: u32) -> Vec<Pid> {
    let stat =
        |entry: std::io::Result<std::fs::DirEntry>| std::fs::read_to_string(entry.ok()?.path().join("stat")).ok();
    let ids = |stat: String| {
        let (before, after) = stat.split_once(") ")?;
        let found = after.split_whitespace().nth(1)?.parse::<u32>().ok()?;
        let id = before.split_once(' ')?.0.parse().ok()?;
        (found == parent).then(|| Pid::from_raw(id))?
    };
    std::fs::read_dir("/proc").expect("processes").filter_map(stat).filter_map(ids).collect()
}

#[test]
fn a_recording_of_a_machine_that_was_killed_is_refused_as_cut() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("run.rec");
    let run = recorded("microvm", &[], &file).run("true");
    assert_eq!(run.status, Some(0), "{run}");
    let whole = std::fs::metadata(&file).expect("the file").len();
    std::fs::remove_file(&file).expect("removed");
    let mut command = recorded("microvm", &[], &file).command(Some("sleep 600"));
    let mut tool = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("starts");
    let started = Instant::now();
    // The system image is most of the file, and is written first.
    while std::fs::metadata(&file).map_or(0, |metadata| metadata.len()) < whole / 2 {
        assert!(started.elapsed() < BUILD_LIMIT, "nothing is recorded");
        thread::sleep(Duration::from_millis(20));
    }
    for machine in children(tool.id()) {
        kill_process(machine, Signal::KILL).expect("killed");
    }
    assert!(!tool.wait().expect("its end").success(), "the tool says that the machine died");
    replayed(&file, &[]).refused(&["run.rec is cut after", "record it again"]);
}

#[test]
fn a_full_disk_ends_the_recording_and_not_the_machine() {
    let run = recorded("microvm", &[], Path::new("/dev/full")).run("echo still here");
    assert_eq!((run.status, run.text().trim()), (Some(0), "still here"), "{run}");
    let told = "the recording cannot be written (No space left on device (os error 28)); it ends here and is of no use";
    assert!(run.errors.contains(told), "{run}");
    let missing = recorded("microvm", &[], Path::new("/no/such/folder/run.rec")).run("true");
    missing.refused(&["cannot create the recording", "/no/such/folder/run.rec"]);
}

#[test]
fn a_machine_under_a_debugger_is_not_recorded() {
    let mut command = Command::new(sing());
    command.args(["debug", "--machine", "qemu", "--record", "run.rec"]).current_dir(repository());
    finish(command, "debug", BUILD_LIMIT).refused(&["not recorded", "cargo sing debug --replay"]);
}
