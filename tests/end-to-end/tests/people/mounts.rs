//! Mounting, unmounting, formatting and checking, and failures of volume managers.

use std::path::Path;
use std::time::Duration;

use end_to_end::{Format, Image, Machine, Run};

test_needs::needs!(E2fsprogs);

/// A disk with a file `name` that contains `text`.
fn disk(name: &str, text: &str) -> Image {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    std::fs::write(folder.path().join(name), format!("{text}\n")).expect("a file can be written");
    Image::of(folder.path(), Format { mebibytes: 8, ..Format::default() })
}

/// An image of zeros.
fn empty(mebibytes: usize) -> Image {
    Image::with_bytes(&vec![0; mebibytes << 20])
}

fn run(disks: &[&Path], commands: &str) -> Run {
    let machine = disks.iter().fold(Machine::new(), |machine, path| machine.disk(path));
    let run = machine.limit(Duration::from_secs(120)).run(commands);
    run.orderly();
    run
}

/// The line of `mount`'s output for this mount point.
#[track_caller]
fn mounted<'a>(text: &'a str, point: &str) -> Vec<&'a str> {
    let line = text.lines().rfind(|line| line.split_whitespace().next() == Some(point));
    line.unwrap_or_else(|| panic!("{point} is not in the list:\n{text}")).split_whitespace().collect()
}

#[test]
fn each_disk_is_mounted_at_boot_by_its_name() {
    let (first, second) = (disk("one", "first"), disk("two", "second"));
    let run = run(&[&first.path(), &second.path()], "cat /fs/disk0/one /fs/disk1/two; mount; ls /status/volumes");
    let text = run.succeeded();
    assert!(text.starts_with("first\nsecond\n"), "{text}");
    assert_eq!(mounted(&text, "/fs/disk0")[1..3], ["/dev/disk0", "ext2"], "{text}");
    assert_eq!(mounted(&text, "/fs/disk1")[1..3], ["/dev/disk1", "ext2"], "{text}");
    assert!(text.contains("dev:disk0") && text.contains("fs:disk1"), "{text}");
}

#[test]
fn a_disk_is_unmounted_and_mounted_elsewhere() {
    let image = disk("one", "first");
    let commands = "umount /fs/disk0; ls /fs /status/volumes; mount disk0 /fs/data/here --read-only; \
        cat /fs/data/here/one; mount; umount /fs/data/here; ls /fs";
    let text = run(&[&image.path()], commands).succeeded();
    assert!(text.starts_with("/fs:\n\n/status/volumes:\n/dev/disk0 is at /fs/data/here"), "{text}");
    assert_eq!(mounted(&text, "/fs/data/here")[1..4], ["/dev/disk0", "ext2", "read"], "{text}");
    // The folder created for the mount point is removed with it.
    let last = text.lines().last().unwrap_or_default();
    assert!(last.starts_with("/fs/data/here"), "{text}");
}

#[test]
fn what_cannot_be_mounted_is_refused_with_the_reason() {
    let (image, other) = (disk("one", "first"), disk("two", "second"));
    let refused = |commands: &str, parts: &[&str]| {
        let run = run(&[&image.path(), &other.path()], commands);
        run.refused(parts);
    };
    refused("mount disk0 /fs/again", &["/dev/disk0", "mounted at /fs/disk0", "umount /fs/disk0"]);
    refused("umount /fs/disk1; mount disk1 /fs/disk0", &["/fs/disk0", "/dev/disk0 is mounted there"]);
    refused("umount /fs/disk1; mount disk1 /fs/disk0/inside", &["inside /fs/disk0"]);
    refused("umount /fs/disk0 /fs/disk1; mount disk0 /fs/a/b; mount disk1 /fs/a", &["mounted below it, at /fs/a/b"]);
    refused("mount nothing /fs/x", &["/dev/nothing", "no such disk", "ls /dev"]);
    refused("mount /dev /fs/x", &["no disk"]);
    refused("umount /fs/disk0; mount disk0 /dev/x", &["/dev/x", "below /fs"]);
    refused("umount /fs/disk0; mount disk0 /fs", &["cannot be a mount point"]);
    refused("umount /fs/nowhere", &["/fs/nowhere", "not a mount point"]);
    refused("mount disk0 --type xfs", &["no manager of xfs"]);
    refused("mount console /fs/x", &["/dev/console"]);
    refused("format disk0 --yes", &["/dev/disk0", "mounted at /fs/disk0"]);
    refused("check disk0", &["/dev/disk0", "mounted at /fs/disk0"]);
}

#[test]
fn an_empty_disk_is_no_error_at_boot_and_named_when_asked_for() {
    let image = empty(1);
    run(&[&image.path()], "mount; ls /fs").succeeded();
    run(&[&image.path()], "mount disk0").refused(&["disk0", "no known file system", "format"]);
    run(&[&image.path()], "mount disk0 --type ext2").refused(&["/dev/disk0", "not an ext2 disk"]);
    run(&[&image.path()], "check disk0").refused(&["disk0", "no known file system"]);
}

#[test]
fn a_format_wants_to_be_told_yes() {
    let image = disk("one", "first");
    let before = std::fs::read(image.path()).expect("the image can be read");
    run(&[&image.path()], "umount /fs/disk0; format disk0").refused(&["this erases /dev/disk0", "--yes"]);
    run(&[&image.path()], "format nothing --yes").refused(&["/dev/nothing", "no such disk"]);
    run(&[&image.path()], "umount /fs/disk0; format disk0 --yes --block-bytes 1000").refused(&["1000"]);
    assert!(std::fs::read(image.path()).expect("the image can be read") == before, "the disk was changed");
}

#[test]
fn a_disk_is_formatted_checked_and_used() {
    let image = empty(16);
    let commands = "format disk0 --label new --yes && mount disk0 && echo text > /fs/disk0/file && df -l /fs/disk0 \
        && umount /fs/disk0 && check disk0 && mount disk0 /fs/again && cat /fs/again/file";
    let text = run(&[&image.path()], commands).succeeded();
    assert!(text.contains("new") && text.contains("/dev/disk0 is at /fs/disk0 (ext2)"), "{text}");
    assert!(text.contains("/dev/disk0 (ext2): no fault\n") && text.ends_with("text\n"), "{text}");
    image.check();
}

#[test]
fn a_check_says_by_its_status_what_it_found() {
    let image = disk("one", "first");
    image.debugfs("set_inode_field one links_count 5");
    let text =
        run(&[&image.path()], "umount /fs/disk0; check disk0; echo it is $?; check disk0 --repair; echo now $?").text();
    assert!(text.contains("it is 4\n") && text.contains("now 1\n"), "{text}");
    run(&[&image.path()], "umount /fs/disk0; check disk0; exit $?").succeeded();
    image.check();
}

#[test]
fn a_file_system_that_is_killed_comes_back_each_time() {
    let image = disk("one", "first");
    let commands =
        "i=0; while test $i '<' 20; do kill ext2-fs; cat /fs/disk0/one || echo lost; i=$((i + 1)); end; mount";
    let run = run(&[&image.path()], commands);
    let text = run.text();
    assert_eq!(text.lines().filter(|line| *line == "first").count(), 20, "{run}");
    let restarts: u32 = mounted(&text, "/fs/disk0")[5].parse().unwrap_or_default();
    assert!(restarts > 10, "{restarts} restarts:\n{run}");
}

#[test]
fn what_was_mounted_is_mounted_again_after_the_managers_death() {
    let (image, other) = (disk("one", "first"), disk("two", "second"));
    let commands = "umount /fs/disk0; mount disk0 /fs/deep/er; umount /fs/disk1; \
        i=0; while test $i '<' 10; do kill volume-manager; cat /fs/deep/er/one || echo lost; i=$((i + 1)); end; \
        mount; mount disk1 && cat /fs/disk1/two; ls /status/volumes";
    let run = run(&[&image.path(), &other.path()], commands);
    let text = run.text();
    assert_eq!(text.lines().filter(|line| *line == "first").count(), 10, "{run}");
    assert!(!text.contains("lost"), "{run}");
    assert_eq!(mounted(&text, "/fs/deep/er")[1], "/dev/disk0", "{run}");
    assert!(text.contains("\nsecond\n"), "{run}");
    assert_eq!(text.lines().filter(|line| line.starts_with("dev:")).count(), 2, "{run}");
}

#[test]
fn a_manager_that_is_stopped_unmounts_and_mounts_again_when_started() {
    let image = disk("one", "first");
    let commands = "echo new > /fs/disk0/new; stop ext2-manager; ls /fs; start ext2-manager; cat /fs/disk0/new";
    assert_eq!(run(&[&image.path()], commands).succeeded(), "new\n");
    image.check();
}

#[test]
fn what_was_written_is_on_a_clean_disk_when_the_system_has_ended() {
    let image = disk("one", "first");
    run(&[&image.path()], "echo new > /fs/disk0/new").succeeded();
    image.check();
    assert_eq!(run(&[&image.path()], "cat /fs/disk0/new").succeeded(), "new\n");
}

#[test]
fn clients_that_have_something_open_hear_of_an_unmount() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    end_to_end::sparse(&folder.path().join("large"), 2 << 30).expect("a sparse file can be made");
    let image = Image::of(folder.path(), Format { mebibytes: 16, ..Format::default() });
    let commands = "cat /fs/disk0/large | wc &\nsleep 20ms\numount /fs/disk0 && echo gone\nwait 1\nls /fs\nps";
    let run = run(&[&image.path()], commands);
    assert!(run.text().contains("gone\n"), "{run}");
    assert!(run.errors.contains("cat: /fs/disk0/large"), "{run}");
    assert!(!run.text().contains("ext2-fs"), "its file system is to end:\n{run}");
}

#[test]
fn a_damaged_disk_is_reported_at_boot_and_the_others_are_mounted() {
    let (good, bad) = (disk("one", "first"), disk("two", "second"));
    // The number of blocks in each group.
    bad.overwrite(1024 + 32, &[0; 4]);
    let run = run(&[&bad.path(), &good.path()], "cat /fs/disk1/one; ls /fs");
    assert_eq!(run.text(), "first\ndisk1/\n", "{run}");
    assert!(run.errors.contains("volume-manager: not mounted: /dev/disk0"), "{run}");
}
