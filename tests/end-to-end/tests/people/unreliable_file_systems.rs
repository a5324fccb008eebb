//! File systems that fail or hang under the volume manager.

use std::time::Duration;

use end_to_end::{Machine, Run, built_system};

/// Runs shell commands in that system.
#[track_caller]
fn run(commands: &str) -> Run {
    let machine = Machine::new().system(built_system("volumes-check")).limit(Duration::from_secs(120));
    let run = machine.run(commands);
    run.orderly();
    run
}

/// Fields of the line for this mount point.
#[track_caller]
fn mounted<'a>(text: &'a str, point: &str) -> Vec<&'a str> {
    let line = text.lines().find(|line| line.split_whitespace().next() == Some(point));
    line.unwrap_or_else(|| panic!("{point} is not in the list:\n{text}")).split_whitespace().collect()
}

#[test]
fn a_file_system_that_failed_too_often_is_given_up_with_a_report() {
    let run = run("mount ram0 --type fat; sleep 2; mount; ls /fs; echo below; format ram0 --yes || echo busy; \
        umount /fs/ram0; format ram0 --yes && mount ram0 && echo text > /fs/ram0/file && cat /fs/ram0/file; mount");
    let text = run.text();
    let (before, after) = text.split_once("below\n").expect("the script goes on");
    let line = mounted(before, "/fs/ram0");
    assert_eq!(line[1..3], ["/dev/ram0", "fat"], "{run}");
    // It was restarted up to the manifest's limit, and no process of it remains.
    assert_eq!(line[4..6], ["-", "3"], "{run}");
    assert!(before.contains("unreliable-fs exited with status 1; it failed too often"), "{run}");
    assert!(before.ends_with("restarted\n"), "its name is to be gone:\n{run}");
    for part in ["/fs/ram0: unreliable-fs exited", "failed too often", "`umount /fs/ram0`", "`check /dev/ram0`"] {
        assert!(run.errors.contains(part), "`{part}` is missing:\n{run}");
    }
    // The disk stays in use until a user releases it.
    assert!(after.starts_with("busy\n") && after.contains("\ntext\n"), "{run}");
    assert_eq!(mounted(after, "/fs/ram0")[2], "ext2", "{run}");
}

#[test]
fn a_file_system_that_falls_silent_holds_up_nobody_else() {
    let run = run("mount ram1 /fs/silent --type fat\n\
        sync &\nsleep 100ms; format ram2 --yes && mount ram2 && echo text > /fs/ram2/file && cat /fs/ram2/file\n\
        umount /fs/silent &\nsleep 100ms; mount; kill unreliable-fs; sleep 200ms; kill unreliable-fs; wait; echo waited; mount");
    let text = run.text();
    let (before, after) = text.split_once("waited\n").expect("whoever waits is released when it is killed");
    assert!(before.contains("text\n"), "{run}");
    assert_eq!(mounted(before, "/fs/silent")[1..3], ["/dev/ram1", "fat"], "{run}");
    // After the kill it is restarted, and pending clients are notified of its end, one after the other.
    assert_eq!(mounted(after, "/fs/silent")[5], "2", "{run}");
    let ended = "/fs/silent: its file system ended during the request";
    let told = |program: &str| run.errors.contains(&format!("{program}: {ended}"));
    assert!(told("sync") && told("umount"), "{run}");
}

#[test]
fn a_system_ends_in_time_though_a_file_system_does_not() {
    let machine = Machine::new().system(built_system("volumes-check"));
    let run = machine.run("mount ram1 --type fat; sync &\nsleep 100ms; format ram2 --yes && mount ram2; exit 5");
    assert_eq!(run.status, Some(5), "{run}");
    assert!(run.took < Duration::from_secs(30), "{:?}\n{run}", run.took);
}
