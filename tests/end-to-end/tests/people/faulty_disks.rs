//! Disks and drivers that fail, in the system that has a disk for that.

use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use end_to_end::{Image, Run, finish, repository, sing};

/// Runs shell commands in that system. What has to be built counts.
#[track_caller]
fn run(disk: &Path, commands: &str) -> Run {
    let mut command = Command::new(sing());
    command.args(["run", "--system", "faulty", "--disk"]).arg(disk).args(["-c", commands]).current_dir(repository());
    finish(command, commands, Duration::from_secs(600))
}

#[track_caller]
fn blank(mebibytes: u64) -> Image {
    let image = Image::empty();
    File::options()
        .write(true)
        .open(image.path())
        .and_then(|file| file.set_len(mebibytes << 20))
        .expect("a file grows");
    image
}

/// What a killed driver had asked of the machine is over before its successor is asked for anything.
#[test]
fn no_write_of_a_killed_driver_comes_after_those_of_the_next() {
    let image = blank(160);
    let run = run(&image.path(), &"late-writes /dev/disk0;".repeat(5));
    run.orderly();
    // The tool may tell on standard error that it builds something first.
    assert_eq!(run.text(), "kept\n".repeat(5), "{run}");
}

#[test]
fn a_faulty_disk_fails_as_it_is_told() {
    let image = blank(32);
    let commands = "fault /check/faulty1 counts; fault /check/faulty0 plan --fail-write 1 --fail-writes 1000000; \
                    format /dev/faulty0 --yes || echo failed; fault /check/faulty0 plan; format /dev/faulty0 --yes && echo done; \
                    fault /check/faulty0 cut 1; fault /check/faulty0 counts; fault /check/faulty0 on";
    let run = run(&image.path(), commands);
    run.orderly();
    let text = run.text();
    assert!(text.starts_with("reads 0\nwrites 0\n"), "{run}");
    assert!(text.contains("failed\n") && text.contains("done\n") && text.contains("is-off 1\n"), "{run}");
}
