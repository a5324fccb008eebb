//! Disks, drivers and servers that fail or hang, in a system with such test servers.

use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use end_to_end::{Image, Run, finish, repository, sing};

/// Runs shell commands in that system; the timeout covers building it.
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

/// Requests of a killed driver have ended before its successor serves any.
#[test]
fn no_write_of_a_killed_driver_comes_after_those_of_the_next() {
    let image = blank(160);
    let run = run(&image.path(), &"late-writes /dev/disk0;".repeat(5));
    run.orderly();
    // The tool may report a build on standard error.
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

/// A disk that completes requests only after ten minutes.
#[test]
fn requests_to_a_disk_that_does_not_answer_end_with_an_error() {
    let image = blank(32);
    for system in ["ext2", "fat"] {
        // The file has cache pages that were not read with the root folder.
        let commands = format!(
            "format /dev/faulty0 --type {system} --yes && mount /dev/faulty0 /fs/faulty0; cd /fs/faulty0; \
             echo a line of some length that is doubled many times > a; i=0; \
             while test $i '<' 13; do cat a a > b; mv b a; i=$((i + 1)); end; \
             cd /; umount /fs/faulty0; mount /dev/faulty0 /fs/faulty0; \
             fault /check/faulty0 plan --delay-us 600000000; hash /fs/faulty0/a || echo failed; \
             fault /check/faulty0 plan; hash /fs/faulty0/a"
        );
        let run = run(&image.path(), &commands);
        let text = run.text();
        assert!(text.contains("failed\n") && text.ends_with("  /fs/faulty0/a\n"), "{system}: {run}");
        assert!(run.errors.contains("/dev/faulty0: the disk has not answered for 30 s"), "{system}: {run}");
    }
}

/// A folder, a file, a disk and a network interface whose server never responds, and a provider that accepts no client.
#[test]
fn requests_to_a_server_that_does_not_answer_end_with_an_error() {
    let image = blank(32);
    let run = run(
        &image.path(),
        "ask-mute &\ndd --from /check/mute-disk --count 1 || echo disk; nic /check/mute-nic --arp 10.0.2.2 || echo interface; \
         dd --from /check/mute-provider --count 1 || echo provider; ls /check; wait",
    );
    run.orderly();
    let text = run.text();
    let asked: Vec<&str> = text.lines().filter(|line| line.contains(" after ")).collect();
    assert_eq!(asked.len(), 10, "{run}");
    for line in &asked {
        let of_file = ["read after", "write after", "append after", "ask again after"];
        let contract = if of_file.iter().any(|words| line.starts_with(words)) { "File" } else { "Directory" };
        let said = format!("its server has not answered a {contract} request for 120 s");
        assert!(line.contains(&said), "{line}\n{run}");
    }
    for (word, said) in [
        ("disk\n", "/check/mute-disk: its server has not answered a Disk request for 30 s"),
        ("interface\n", "/check/mute-nic: its server has not answered a NicDevice request for 10 s"),
        ("provider\n", "/check/mute-provider: its provider has not accepted a client for 30 s"),
    ] {
        assert!(text.contains(word) && run.errors.contains(said), "{said}\n{run}");
    }
    assert!(text.contains("mute-folder"), "the directory service answers on:\n{run}");
}
