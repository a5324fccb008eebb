//! `sing check --deadlock`: all systems, and what it can tell without `spin`.

use std::process::Command;

use end_to_end::{BUILD_LIMIT, Run, finish, repository, sing};
use serde_json::Value;

fn check(words: &[&str]) -> Command {
    let mut command = Command::new(sing());
    command.args(["check", "--deadlock"]).args(words).current_dir(repository());
    command
}

#[track_caller]
fn checked(command: Command) -> Run {
    finish(command, "sing check --deadlock", BUILD_LIMIT)
}

#[test]
fn no_system_of_the_repository_can_deadlock() {
    let run = checked(check(&["--json"]));
    assert_eq!(run.status, Some(0), "{run}");
    let analyses: Vec<Value> = serde_json::from_str(&run.text()).expect("a list");
    assert!(analyses.len() > 20, "{} systems", analyses.len());
    for analysis in &analyses {
        let system = &analysis["system"];
        assert_eq!(analysis["ok"], true, "{system}: {}", analysis["circles"]);
        // A system of one program has no layers.
        assert!(analysis["layers"].is_array(), "{system}");
    }
    // A client of a file system waits for more than the disk does.
    let hosted = analyses.iter().find(|analysis| analysis["system"] == "hosted").expect("there is one");
    let layer = |task: &str| {
        let layers = hosted["layers"].as_array().expect("a list").iter();
        let has = |layer: &Value| layer.as_array().is_some_and(|tasks| tasks.iter().any(|other| other == task));
        layers.into_iter().position(has).unwrap_or_else(|| panic!("{task} is in no layer: {hosted}"))
    };
    assert!(layer("file-disk") < layer("ext2-fs (File)") && layer("ext2-fs (File)") < layer("installer (Installer)"));
}

#[test]
fn a_circle_is_shown_where_spin_is_missing() {
    let folder = tempfile::tempdir().expect("a folder");
    let system = folder.path().join("mine.toml");
    let text = "[system]\nname = \"mine\"\nroot = \"service-manager\"\nprimary = \"last\"\n\n\
                [[program]]\nname = \"directory\"\n\n[[program]]\nname = \"circle-worker\"\n\n\
                [[program]]\nname = \"circle-lender\"\ninstance = \"last\"\n\n\
                [[bind]]\nwho = \"circle-lender.singularity\"\npath = \"/service/worker\"\n";
    std::fs::write(&system, text).expect("a file");
    let mut command = check(&[]);
    command.arg(&system).env("PATH", folder.path());
    let run = checked(command);
    assert_eq!(run.status, Some(1), "{run}");
    for part in ["circle-worker` on", "not decided: `spin`", "is not installed", "directory"] {
        assert!(run.text().contains(part), "{part}: {run}");
    }
    checked(check(&["hosetd"])).refused(&["hosetd"]);
}
