//! Replacement of a system image interrupted after each of its steps, and in the middle of each write: a reader then
//! finds the old file or the new one, complete.

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::*;
use install::{ImageError, Medium, Request, name_beside, replace};
use manifest_model::ContractSide::Import;
use manifest_model::{Manifest, Version};

/// An operation of the medium.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Write(String, Vec<u8>),
    Sync(String),
    Rename(String, String),
    SyncFolder,
    Remove(String),
}

/// A medium that records each step, and fails at step number `fails`.
#[derive(Clone, Debug, Default)]
struct Recorder {
    steps: Vec<Step>,
    fails: Option<usize>,
}

impl Recorder {
    fn step(&mut self, step: Step) -> Result<(), usize> {
        let number = self.steps.len();
        if self.fails == Some(number) {
            self.fails = None;
            return Err(number);
        }
        self.steps.push(step);
        Ok(())
    }
}

impl Medium for Recorder {
    type Error = usize;

    fn write(&mut self, name: &str, bytes: &[u8]) -> Result<(), usize> {
        self.step(Step::Write(name.into(), bytes.to_vec()))
    }

    fn sync(&mut self, name: &str) -> Result<(), usize> {
        self.step(Step::Sync(name.into()))
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), usize> {
        self.step(Step::Rename(from.into(), to.into()))
    }

    fn sync_folder(&mut self) -> Result<(), usize> {
        self.step(Step::SyncFolder)
    }

    fn remove(&mut self, name: &str) -> Result<(), usize> {
        self.step(Step::Remove(name.into()))
    }
}

/// State of a disk after a power failure: names refer to files, whose bytes are there as far as they were written back.
type Names = BTreeMap<String, usize>;

/// A file: its bytes, and how many of them are durable at least.
#[derive(Clone, Debug, Default)]
struct Content {
    bytes: Vec<u8>,
    is_safe: bool,
}

/// A disk with a volatile cache: renames are ordered, each may or may not be durable unless it was flushed; data may be
/// partially durable.
#[derive(Clone, Debug)]
struct Disk {
    contents: Vec<Content>,
    names: Names,
    /// The names at the last flush, and after each change since.
    possible: Vec<Names>,
}

impl Disk {
    fn with(name: &str, bytes: &[u8]) -> Disk {
        let names = Names::from([(name.to_string(), 0)]);
        let content = Content { bytes: bytes.to_vec(), is_safe: true };
        Disk { contents: vec![content], possible: vec![names.clone()], names }
    }

    fn apply(&mut self, step: &Step) {
        match step {
            Step::Write(name, bytes) => {
                self.contents.push(Content { bytes: bytes.clone(), is_safe: false });
                self.names.insert(name.clone(), self.contents.len() - 1);
            }
            Step::Sync(name) => {
                let content = self.names[name];
                self.contents[content].is_safe = true;
                return;
            }
            Step::Rename(from, to) => {
                let content = self.names.remove(from).expect("only what is there is renamed");
                self.names.insert(to.clone(), content);
            }
            Step::SyncFolder => self.possible.clear(),
            Step::Remove(name) => {
                self.names.remove(name);
            }
        }
        self.possible.push(self.names.clone());
    }

    /// Returns all possible contents under the name after a power failure.
    fn findable(&self, name: &str) -> BTreeSet<Option<Vec<u8>>> {
        let mut found = BTreeSet::new();
        for names in &self.possible {
            let Some(content) = names.get(name).map(|&content| &self.contents[content]) else {
                found.insert(None);
                continue;
            };
            let length = content.bytes.len();
            if content.is_safe {
                found.insert(Some(content.bytes.clone()));
                continue;
            }
            for part in [0, 1, length / 2, length.saturating_sub(1), length] {
                found.insert(Some(content.bytes[..part].to_vec()));
                // The length is durable, and the bytes are not.
                let mut holes = content.bytes.clone();
                holes[part..].fill(0);
                found.insert(Some(holes));
            }
        }
        found
    }
}

const NAME: &str = "small.system";

/// Compares the state after a crash at each moment of a request with the two valid images.
fn cut_everywhere(old: &[u8], request: &Request<'_>) {
    let mut recorder = Recorder::default();
    install::change_file(&mut recorder, NAME, old, request, &key()).unwrap_or_else(|error| panic!("{error:?}"));
    let (new, _) = install::changed(old, request, &key()).unwrap_or_else(|report| panic!("{report}"));
    assert_ne!(new, old);
    let whole = BTreeSet::from([Some(old.to_vec()), Some(new.clone())]);
    let mut disk = Disk::with(NAME, old);
    let mut seen = BTreeSet::new();
    for step in &recorder.steps {
        disk.apply(step);
        let found = disk.findable(NAME);
        assert!(found.is_subset(&whole), "half a system after {}", step_in_words(step));
        seen.extend(found);
    }
    assert_eq!(seen, whole, "the cut is looked at before and after the change");
    assert_eq!(disk.findable(NAME), BTreeSet::from([Some(new.clone())]), "what is done stays done");
    assert!(install::system_of(&new).is_ok_and(|(_, installed)| install::verify(&installed).is_accepted()));
}

fn step_in_words(step: &Step) -> String {
    match step {
        Step::Write(name, bytes) => format!("writing {} bytes to {name}", bytes.len()),
        step => format!("{step:?}"),
    }
}

fn newer_cat() -> Manifest {
    Manifest { version: Version { major: 1, minor: 1, patch: 0 }, ..command("cat", &[("File", Import)]) }
}

#[test]
fn an_install_that_is_cut_off() {
    let package = signed(&command("extra", &[("File", Import)]));
    cut_everywhere(&system_image(), &Request::Install { package: &package, at_boot: false, allow: &[] });
}

#[test]
fn an_upgrade_that_is_cut_off() {
    let package = signed(&newer_cat());
    cut_everywhere(&system_image(), &Request::Upgrade { package: &package, more: false });
}

#[test]
fn a_removal_that_is_cut_off() {
    cut_everywhere(&system_image(), &Request::Uninstall { name: "cat" });
}

#[test]
fn what_an_interrupted_change_left_is_in_nobodys_way() {
    let old = system_image();
    let package = signed(&newer_cat());
    let request = Request::Upgrade { package: &package, more: false };
    let mut recorder = Recorder::default();
    install::change_file(&mut recorder, NAME, &old, &request, &key()).unwrap_or_else(|error| panic!("{error:?}"));
    for cut in 0..recorder.steps.len() {
        let mut disk = Disk::with(NAME, &old);
        recorder.steps[..cut].iter().for_each(|step| disk.apply(step));
        // Again, on the new state.
        recorder.steps.iter().for_each(|step| disk.apply(step));
        let (new, _) = install::changed(&old, &request, &key()).unwrap_or_else(|report| panic!("{report}"));
        assert_eq!(disk.findable(NAME), BTreeSet::from([Some(new)]), "cut after {cut} steps");
        assert!(!disk.names.contains_key(&name_beside(NAME)));
    }
}

#[test]
fn a_medium_that_fails_leaves_the_old_file_or_the_new_one() {
    let (old, new) = (b"the old system".to_vec(), b"the new system, which is longer".to_vec());
    let mut whole = Recorder::default();
    assert_eq!(replace(&mut whole, NAME, &new), Ok(()));
    for fails in 0..whole.steps.len() {
        let mut recorder = Recorder { fails: Some(fails), ..Recorder::default() };
        assert_eq!(replace(&mut recorder, NAME, &new), Err(fails), "a failure is told");
        let mut disk = Disk::with(NAME, &old);
        recorder.steps.iter().for_each(|step| disk.apply(step));
        let found = disk.findable(NAME);
        let may: BTreeSet<_> = [&old, &new].map(|bytes| Some(bytes.clone())).into();
        assert!(found.is_subset(&may), "after failure {fails}");
        let renamed = recorder.steps.iter().any(|step| matches!(step, Step::Rename(..)));
        if !renamed {
            assert_eq!(found, BTreeSet::from([Some(old.clone())]));
            assert!(!disk.names.contains_key(&name_beside(NAME)), "nothing is left after failure {fails}");
        }
    }
}

/// The order of the steps is essential: omitting or advancing any of them is detected.
#[test]
fn the_disk_of_this_test_is_a_hard_one() {
    let (old, new) = (b"old".to_vec(), b"new and longer".to_vec());
    let mut recorder = Recorder::default();
    assert_eq!(replace(&mut recorder, NAME, &new), Ok(()));
    let whole = BTreeSet::from([Some(old.clone()), Some(new.clone())]);
    for left_out in [Step::Sync(name_beside(NAME)), Step::SyncFolder] {
        let mut disk = Disk::with(NAME, &old);
        recorder.steps.iter().filter(|step| **step != left_out).for_each(|step| disk.apply(step));
        let found = disk.findable(NAME);
        let holds = found.is_subset(&whole) && found == BTreeSet::from([Some(new.clone())]);
        assert!(!holds, "without {left_out:?} it would hold too");
    }
    let mut disk = Disk::with(NAME, &old);
    disk.apply(&Step::Write(NAME.into(), new.clone()));
    assert!(!disk.findable(NAME).is_subset(&whole), "writing over the old file would hold too");
}

#[test]
fn what_is_refused_touches_no_medium() {
    let mut recorder = Recorder::default();
    let old = system_image();
    let request = Request::Uninstall { name: "manager" };
    let result = install::change_file(&mut recorder, NAME, &old, &request, &key());
    assert!(matches!(result, Err(ImageError::Refused(_))));
    assert_eq!(recorder.steps, []);
}
