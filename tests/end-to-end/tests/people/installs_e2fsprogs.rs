//! Programs that come into the running system and go, and what is left of them on a disk.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use end_to_end::{Format, Image, Machine, Run, key, reseal_system};
use package::{Code, Manifest, Package, Permission, SecretKey, Signer, SystemImage, Version};
use tempfile::TempDir;

use crate::bad_input::hosted;

/// Holds the system, whose root the tests' key is, and a disk with packages.
struct Trial {
    folder: TempDir,
    image: Image,
}

/// A script by this name that says which version it is.
fn greeter(version: &str) -> Manifest {
    let system = hosted();
    let image = SystemImage::parse(&system).expect("it is whole");
    let packages = image.packages.iter().map(|bytes| Package::parse(bytes).expect("a package"));
    let greet = packages.map(|package| package.manifest).find(|manifest| manifest.name == "greet");
    let mut manifest = greet.expect("the system has the example");
    manifest.name = "greeter".into();
    manifest.version = Version::parse(version).expect("a version");
    manifest.code = Code::Script { text: format!("echo this is {version}\n") };
    manifest.parameters.clear();
    manifest
}

fn packed(manifest: Manifest, key: SecretKey) -> Vec<u8> {
    Package::build_unchecked(manifest, b"", b"", &Signer::root(key)).expect("a package")
}

/// The command must have failed with a report that has all of `parts`.
#[track_caller]
fn told(run: &Run, parts: &[&str]) {
    run.orderly();
    assert!(matches!(run.status, Some(1..=127)), "an exit status from 1 to 127 was to be expected:\n{run}");
    for part in parts {
        assert!(run.text().contains(part), "`{part}` is not in:\n{run}");
    }
}

impl Trial {
    fn new() -> Trial {
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        let system = reseal_system(&hosted(), &|_| {});
        fs::write(folder.path().join("trial.system"), system).expect("a system image");
        let files = folder.path().join("files");
        fs::create_dir(&files).expect("a folder");
        let write = |name: &str, bytes: Vec<u8>| fs::write(files.join(name), bytes).expect("a file");
        write("one.package", packed(greeter("1.0.0"), key()));
        write("two.package", packed(greeter("1.1.0"), key()));
        let mut greedy = greeter("1.2.0");
        greedy.permissions = vec![Permission::Power];
        write("greedy.package", packed(greedy, key()));
        write("strange.package", packed(greeter("1.3.0"), SecretKey::from_bytes(&[7; 32])));
        let mut other = greeter("1.4.0");
        other.publisher = "somebody".into();
        write("other.package", packed(other, key()));
        let mut alike = greeter("1.0.0");
        (alike.name, alike.publisher) = ("alike".into(), "singu1arity".into());
        write("alike.package", packed(alike, key()));
        let mut changed = packed(greeter("1.5.0"), key());
        let script = changed.windows(4).position(|window| window == b"this").expect("the script");
        changed[script] = b'T';
        write("changed.package", changed);
        let whole = packed(greeter("1.6.0"), key());
        write("cut.package", whole[..whole.len() / 2].to_vec());
        write("empty.package", Vec::new());
        let image = Image::of(&files, Format { mebibytes: 16, ..Format::default() });
        Trial { folder, image }
    }

    fn system(&self) -> PathBuf {
        self.folder.path().join("trial.system")
    }

    fn run(&self, commands: &str) -> Run {
        let machine = Machine::new().system(self.system()).disk(self.image.path()).limit(Duration::from_secs(120));
        machine.run(&format!("cd /fs/disk0; {commands}"))
    }

    /// What is in the store, by name.
    fn store(&self) -> Vec<(String, Vec<u8>)> {
        let contents = self.image.contents();
        let store: &Path = &contents.path().join("system");
        let Ok(names) = fs::read_dir(store) else { return Vec::new() };
        let mut files: Vec<(String, Vec<u8>)> = names
            .map(|entry| entry.expect("a name").path())
            .map(|path| (path.file_name().unwrap_or_default().to_string_lossy().into_owned(), fs::read(&path)))
            .map(|(name, bytes)| (name, bytes.expect("a file")))
            .collect();
        files.sort();
        files
    }
}

#[test]
fn a_program_is_installed_upgraded_and_taken_out_and_stays_so() {
    let trial = Trial::new();
    trial.run("greeter").refused(&["greeter"]);
    let report = trial.run("install --dry-run one.package").succeeded();
    assert!(report.contains("nothing speaks against it") && trial.store().is_empty(), "{report}");

    let report = trial.run("install one.package; greeter").succeeded();
    for part in ["proved  signature", "can reach: ", "kept in /fs/disk0/system", "installed\n", "this is 1.0.0"] {
        assert!(report.contains(part), "`{part}` is not in:\n{report}");
    }
    assert_eq!(trial.run("greeter").succeeded(), "this is 1.0.0\n", "it is there after a restart");
    told(&trial.run("install one.package"), &["I103"]);

    let report = trial.run("upgrade two.package; greeter; explain greeter").succeeded();
    assert!(report.contains("this is 1.1.0") && report.contains("greeter.singularity 1.1.0"), "{report}");
    assert_eq!(trial.run("greeter").succeeded(), "this is 1.1.0\n");
    told(&trial.run("upgrade one.package"), &["I105"]);
    told(&trial.run("upgrade greedy.package"), &["I200", "power"]);
    assert!(trial.run("verify").succeeded().contains("`greeter` as it is kept in /fs/disk0/system"));

    trial.run("uninstall greeter").succeeded();
    trial.run("greeter").refused(&["greeter"]);
    told(&trial.run("uninstall greeter"), &["I104"]);
    // One of the system image's own stays out, too.
    trial.run("uninstall greet").succeeded();
    trial.run("greet Ada").refused(&["greet"]);
    trial.image.check();
}

#[test]
fn bad_packages_change_nothing_on_the_disk() {
    let trial = Trial::new();
    trial.run("install one.package").succeeded();
    let before = trial.store();
    assert_eq!(before.len(), 2, "a package and the list");
    for (command, words) in [
        ("upgrade strange.package", "trust"),
        ("upgrade other.package", "I107"),
        ("install alike.package", "I108"),
        ("upgrade changed.package", "I223"),
        ("upgrade cut.package", "I223"),
        ("upgrade empty.package", "I223"),
        ("uninstall directory", "I222"),
        ("uninstall nobody", "I104"),
    ] {
        told(&trial.run(command), &[words, "nothing was changed"]);
    }
    assert_eq!(trial.store(), before);
    assert_eq!(trial.run("greeter").succeeded(), "this is 1.0.0\n");
    trial.image.check();
}

#[test]
fn what_is_not_kept_is_said_to_last_until_a_restart() {
    let trial = Trial::new();
    // The disk is at another point, so that the store has no volume.
    let report = trial
        .run("cd /; umount /fs/disk0; mount /dev/disk0 /fs/other; install /fs/other/one.package; greeter")
        .succeeded();
    assert!(report.contains("lasts until the machine restarts") && report.contains("this is 1.0.0"), "{report}");
    trial.run("greeter").refused(&["greeter"]);
}

#[test]
fn an_installer_that_ends_in_the_middle_leaves_the_old_or_the_new() {
    let trial = Trial::new();
    trial.run("install one.package").succeeded();
    for pause_ms in [0, 1, 2, 4, 8, 16, 32] {
        trial.run(&format!("upgrade two.package & sleep {pause_ms}ms; stop installer; start installer; sleep 200ms"));
        trial.image.check();
        let said = trial.run("greeter; verify").succeeded();
        assert!(said.contains("the system is sound"), "after {pause_ms} ms: {said}");
        let store = trial.store();
        let names: Vec<&str> = store.iter().map(|(name, _)| name.as_str()).collect();
        if said.starts_with("this is 1.1.0\n") {
            assert_eq!(names, ["greeter-1.1.0.package", "installed"]);
            trial.run("uninstall greeter; install one.package").succeeded();
        } else {
            assert!(said.starts_with("this is 1.0.0\n"), "after {pause_ms} ms: {said}");
        }
    }
}

#[test]
fn damaged_stores_are_told_of_and_stop_nothing() {
    let trial = Trial::new();
    trial.run("install one.package").succeeded();
    trial.run("echo nonsense > system/greeter-1.0.0.package").succeeded();
    trial.run("greeter").refused(&["greeter"]);
    told(&trial.run("verify"), &["I224", "greeter-1.0.0.package is damaged"]);
    // The log tells of it at the start.
    let run = trial.run("install one.package; greeter");
    assert!(run.text().contains("this is 1.0.0") && run.errors.contains("is damaged"), "{run}");
    trial.run("echo nonsense > system/installed").succeeded();
    trial.run("greeter").refused(&["greeter"]);
    let run = trial.run("install one.package; greeter");
    assert!(run.text().contains("its file `installed` is damaged") && run.text().contains("this is 1.0.0"), "{run}");
}
