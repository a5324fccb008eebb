//! A recording of a bare machine, which QEMU makes, is replayed to the same output.
#![forbid(unsafe_code)]

use std::process::Command;

use end_to_end::{repository, sing};

#[test]
fn a_bare_machine_does_the_same_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("machine.rec");
    let path = file.to_str().expect("a path of text");
    let run = |words: &[&str]| {
        let output = Command::new(sing()).args(words).current_dir(repository()).output().expect("the tool starts");
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{words:?}: {errors}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let commands = "ls /fs/disk0; random 8; ps";
    let first = run(&["run", "--machine", "qemu", "--processors", "1", "--record", path, "-c", commands]);
    assert!(first.contains("poems/"), "{first}");
    assert_eq!(run(&["replay", path]), first);
}

#[test]
fn what_qemu_does_not_record_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("machine.rec");
    let words = ["run", "--machine", "qemu", "--processors", "2", "-c", "true", "--record"];
    let output = Command::new(sing()).args(words).arg(&file).current_dir(repository()).output().expect("it starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && errors.contains("one processor only; add `--processors 1`"), "{errors}");
    assert!(!file.exists(), "a folder was left");
}
