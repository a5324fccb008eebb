//! What the simulation is worth: bugs put in on purpose (`bugs.toml`), and how many seeds it takes to find each.
//!
//! A bug is put into a copy of the tree, which is built by itself, so that it gets into no other build.
#![forbid(unsafe_code)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use end_to_end::{repository, target};
use serde::Deserialize;
use serde_json::Value;

/// First seeds of the three searches for each bug.
const STARTS: [u64; 3] = [0, 10_000, 20_000];
/// Maximum seeds of a search.
const MAX_SEEDS: u64 = 1_000;

#[derive(Deserialize)]
struct Bugs {
    bug: Vec<Bug>,
}

#[derive(Deserialize)]
struct Bug {
    name: String,
    about: String,
    file: PathBuf,
    find: String,
    replace: String,
    workload: String,
    faults: Option<String>,
    /// Seeds in which each search is known to find it; none if it is only looked for.
    within: Option<u64>,
}

fn bugs() -> Vec<Bug> {
    let path = repository().join("tests/end-to-end/bugs.toml");
    let text = fs::read_to_string(&path).expect("the list of bugs");
    toml::from_str::<Bugs>(&text).expect("a list of bugs").bug
}

impl Bug {
    /// Returns the file's text with the bug in it.
    fn put_into(&self, text: &str) -> String {
        let count = text.matches(&self.find).count();
        let Bug { name, file, .. } = self;
        assert_eq!(
            count,
            1,
            "bug {name}: the text that it replaces must be once in {}; mend bugs.toml",
            file.display()
        );
        text.replace(&self.find, &self.replace)
    }

    /// Runs seeds until one fails, in the tree with the bug. Returns how many it took, and what was found.
    fn search(&self, tree: &Path, start: u64) -> Option<(u64, String)> {
        let seeds = format!("{start}..{}", start + self.within.unwrap_or(MAX_SEEDS));
        let mut command = Command::new("cargo");
        command.args(["sing", "simulate", "--workload", &self.workload, "--seeds", &seeds]);
        command.args(["--first", "--no-shrink", "--json"]).current_dir(tree).env_remove("CARGO_TARGET_DIR");
        command.args(self.faults.iter().flat_map(|faults| ["--faults", faults]));
        let output = command.output().expect("cargo starts");
        let text = String::from_utf8_lossy(&output.stdout);
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mut runs = 0;
        let found = lines.inspect(|_| runs += 1).find_map(|line| Some(line["finding"].as_str()?.to_owned()));
        assert!(runs > 0, "bug {}: no seed was run: {}", self.name, String::from_utf8_lossy(&output.stderr));
        found.map(|finding| (runs, finding))
    }
}

/// Copies the files of the tree that git knows. The folder keeps what was built there before.
fn copy_tree() -> PathBuf {
    let tree = target().join("simulated-bugs");
    let listing = Command::new("git").arg("ls-files").current_dir(repository()).output().expect("git starts");
    for name in String::from_utf8_lossy(&listing.stdout).lines() {
        let (from, to) = (repository().join(name), tree.join(name));
        fs::create_dir_all(to.parent().expect("a folder")).expect("a folder is made");
        let Ok(bytes) = fs::read(&from) else { continue };
        // Unchanged files keep their time, and are not built again.
        if fs::read(&to).ok().as_ref() != Some(&bytes) {
            fs::write(&to, bytes).expect("a file is written");
        }
    }
    tree
}

#[test]
fn every_bug_of_the_list_can_be_put_in() {
    let bugs = bugs();
    assert!(bugs.len() >= 10, "{} bugs", bugs.len());
    for bug in bugs {
        let text = fs::read_to_string(repository().join(&bug.file)).expect("the file of the bug");
        assert_ne!(bug.put_into(&text), text, "{}", bug.name);
    }
}

#[test]
#[ignore = "long: ten builds, and thousands of seeds"]
fn bugs_are_found() {
    let tree = copy_tree();
    for bug in bugs() {
        let path = tree.join(&bug.file);
        let sound = fs::read_to_string(&path).expect("the file of the bug");
        fs::write(&path, bug.put_into(&sound)).expect("the bug is put in");
        let found = std::panic::catch_unwind(|| STARTS.map(|start| bug.search(&tree, start)));
        fs::write(&path, sound).expect("the bug is taken out");
        let found = found.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let is_found = found.iter().all(Option::is_some);
        assert!(is_found || bug.within.is_none(), "bug {} was not found within {:?} seeds", bug.name, bug.within);
        let seeds = found.each_ref().map(|found| found.as_ref().map_or("none".into(), |(seeds, _)| seeds.to_string()));
        let finding = found.iter().flatten().next().map_or("", |(_, finding)| finding);
        println!("{} ({}): {} seeds of {}; {finding}", bug.name, bug.about, seeds.join(", "), bug.workload);
    }
}
