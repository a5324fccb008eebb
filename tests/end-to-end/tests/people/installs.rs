//! Installing and uninstalling in the running system, and the persistent state.

#[path = "installs/bad_packages.rs"]
mod bad_packages;
#[path = "installs/running.rs"]
mod running;
#[path = "installs/stores.rs"]
mod stores;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use end_to_end::{Format, Image, Machine, Run, key, reseal_system};
use manifest_model::{Code, Manifest, Permission, Version};
use package::Package;
use package_build::{SecretKey, Signer};
use tempfile::TempDir;

use crate::bad_input::hosted;

test_needs::needs!(E2fsprogs);

/// The system, with the tests' key as its root, and a disk with packages.
struct Trial {
    folder: TempDir,
    image: Image,
}

/// Manifest and image of one of the system's programs.
fn of_system(name: &str) -> (Manifest, Vec<u8>) {
    let system = hosted();
    let image = package_check::verify_system(&system).expect("it is whole");
    let mut packages = image.packages.iter().map(|bytes| Package::parse(bytes).expect("a package"));
    let package = packages.find(|package| package.manifest.name == name).expect("the system has the program");
    let image = package.image_bytes.to_vec();
    (package.manifest, image)
}

/// A script with this name that prints its version.
fn greeter(version: &str) -> Manifest {
    let (mut manifest, _) = of_system("greet");
    manifest.name = "greeter".into();
    manifest.version = Version::parse(version).expect("a version");
    manifest.code = Code::Script { text: format!("echo this is {version}\n") };
    manifest.parameters.clear();
    manifest
}

/// A modified package of one of the system's compiled programs.
fn program(name: &str, change: impl FnOnce(&mut Manifest, &mut Vec<u8>)) -> Vec<u8> {
    let (mut manifest, mut image) = of_system(name);
    change(&mut manifest, &mut image);
    package_build::build_unchecked(manifest, b"", &image, &Signer::root(key())).expect("a package")
}

fn packed(manifest: Manifest, key: SecretKey) -> Vec<u8> {
    package_build::build_unchecked(manifest, b"", b"", &Signer::root(key)).expect("a package")
}

/// Asserts that the command failed with a report that contains all of `parts`.
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
        Trial::with(&hosted(), &[])
    }

    /// Runs in this system, with additional files.
    fn with(system: &[u8], more: &[(&str, Vec<u8>)]) -> Trial {
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        let system = reseal_system(system, &|_| {});
        fs::write(folder.path().join("trial.system"), system).expect("a system image");
        let files = folder.path().join("files");
        fs::create_dir(&files).expect("a folder");
        let write = |name: &str, bytes: Vec<u8>| fs::write(files.join(name), bytes).expect("a file");
        write("one.package", packed(greeter("1.0.0"), key()));
        write("two.package", packed(greeter("1.1.0"), key()));
        let mut greedy = greeter("1.2.0");
        greedy.permissions = vec![Permission::Power];
        write("greedy.package", packed(greedy, key()));
        for (name, bytes) in more {
            write(name, bytes.clone());
        }
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

    /// Contents of the store by name.
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
    assert!(report.contains("accepted; nothing was changed") && trial.store().is_empty(), "{report}");

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

    trial.run("install nothing.package").refused(&["nothing.package: not found"]);
    let unknown = trial.run("uninstall nobody").text();
    assert!(unknown.contains("no program `nobody` is installed; name one of: acl, "), "{unknown}");

    trial.run("uninstall greeter").succeeded();
    trial.run("greeter").refused(&["greeter"]);
    told(&trial.run("uninstall greeter"), &["I104"]);
    // Uninstalling a program of the system image lasts, too.
    trial.run("uninstall greet").succeeded();
    trial.run("greet Ada").refused(&["greet"]);
    trial.image.check();
}

/// Refused arguments of `uninstall`: invalid names and required programs, with the expected message.
const STAYING: [(&str, &[&str]); 12] = [
    ("nobody", &["I104"]),
    ("ext2-manager", &["I104"]),
    ("greetre", &["I104"]),
    ("Greeter", &["I101"]),
    ("greeter.singularity", &["I101"]),
    ("../greeter", &["I101"]),
    ("/fs/disk0/system/greeter-1.0.0.package", &["I101"]),
    ("'greeter '", &["I101"]),
    ("'*'", &["I101"]),
    ("service-manager", &["I217"]),
    ("directory", &["I136", "I214", "I222"]),
    ("shell", &["I183", "I213", "I222"]),
];

/// Each is refused by the service with its codes and an audit line, and changes neither the store nor the programs.
#[test]
fn bad_packages_change_nothing_on_the_disk() {
    let table = bad_packages::table();
    assert!(table.len() >= 60, "{} packages", table.len());
    let files: Vec<(&str, Vec<u8>)> = table.iter().map(|bad| (bad.fault, bad.bytes.clone())).collect();
    let trial = Trial::with(&hosted(), &files);
    trial.run("install one.package").succeeded();
    let before = trial.store();
    assert_eq!(before.len(), 2, "a package and the list");
    let asked = table.iter().map(|bad| (bad.fault, format!("{} {}", bad.command, bad.fault), bad.codes));
    let staying = STAYING.iter().map(|(name, codes)| (*name, format!("uninstall {name}"), *codes));
    let asked: Vec<(&str, String, &[&str])> = asked.chain(staying).collect();
    let mut commands = String::from("ls -l system\n");
    for (fault, command, _) in &asked {
        commands.push_str(&format!("echo == \"{fault}\"\n{command}\n"));
    }
    commands.push_str("echo == end\nls -l system; greeter; cat /status/audit");
    let run = trial.run(&commands);
    run.orderly();
    let text = run.text();
    let mut parts = text.split("== ");
    let listing = parts.next().unwrap_or_default();
    let mut wrong = Vec::new();
    for ((fault, _, codes), part) in asked.iter().zip(parts.by_ref()) {
        let lines = part.lines().filter_map(|line| line.strip_prefix("refused "));
        let mut found: Vec<&str> = lines.filter_map(|line| line.split(' ').next()).collect();
        found.sort_unstable();
        found.dedup();
        if found != *codes || !part.contains("nothing was changed") {
            wrong.push(format!("{fault}: {codes:?} were to be:\n{part}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let end = parts.next().unwrap_or_default();
    assert!(end.contains(listing) && end.contains("this is 1.0.0\n"), "{listing}\n{end}");
    for line in [
        "shell.singularity + install.singularity refused install on extra (I108)",
        "shell.singularity + upgrade.singularity refused upgrade on greeter (I107)",
        "shell.singularity + upgrade.singularity refused upgrade on package (I223)",
        "shell.singularity + uninstall.singularity refused uninstall on directory (I136 I214 I222)",
        "shell.singularity + uninstall.singularity refused uninstall on invalid name (I101)",
    ] {
        assert!(end.contains(line), "`{line}` is not in:\n{end}");
    }
    assert_eq!(trial.store(), before);
    assert_eq!(trial.run("greeter").succeeded(), "this is 1.0.0\n");
    trial.image.check();
}

/// A dry run is open to all and leaves no audit line.
#[test]
fn what_is_only_looked_at_is_no_line_of_the_audit() {
    let trial = Trial::new();
    let text = trial.run("upgrade --dry-run one.package; uninstall --dry-run shell; cat /status/audit").text();
    assert!(
        text.contains("I104") && !text.contains("refused upgrade") && !text.contains("refused uninstall"),
        "{text}"
    );
}

#[test]
fn what_is_not_kept_is_said_to_last_until_a_restart() {
    let trial = Trial::new();
    // The disk is mounted elsewhere, so that the store has no volume.
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
